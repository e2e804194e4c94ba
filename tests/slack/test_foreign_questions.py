"""What an OpenCode session asks, shown in Slack and answered there."""

import json
from collections.abc import AsyncIterator

import pytest
from tests.slack.conftest import StartRoom
from tests.standins.opencode import OpenCodeStandIn
from tests.standins.slack import look
from tests.waiting import until


@pytest.fixture
async def server() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn() as server:
        yield server


def source(server: OpenCodeStandIn) -> str:
    """Return the table that has the server's questions asked in the group."""
    urls = json.dumps([server.url])
    return f'[sources.opencode]\ngroup = "team"\nurls = {urls}\ndiscover = false\npoll = "200ms"\n'


async def test_a_question_of_opencode_is_a_card_that_who_may_answers(
    start_room: StartRoom, server: OpenCodeStandIn
) -> None:
    room = await start_room(source(server))
    asked_id = server.ask(server.session("Paint it"), "Which colour?", "Red", "Green")
    card = await room.card()
    [asked] = await room.host.listed(1, "team")
    for word in ("Which colour?", "Red", "Green", "opencode", asked["short_id"]):
        assert word in look(card).text

    room.eve.press(card, "Red")
    await room.told(room.eve, "not")
    assert server.replies == []
    room.ana.press(card, "Green")

    await until(lambda: server.replies, "the answer to reach OpenCode")
    assert server.replies == [(f"/question/{asked_id}/reply", {"answers": [["Green"]]})]
    await room.settled(card, "Which colour?", "Answered", "Green", "Ana")
    closed = await room.host.closed(asked["request_id"])
    assert (closed["ending"]["channel"], closed["delivered"]) == ("slack", "live")


async def test_a_permission_of_opencode_that_was_decided_there_settles_its_card(
    start_room: StartRoom, server: OpenCodeStandIn
) -> None:
    room = await start_room(source(server))
    session = server.session("Clean up")
    asked_id = server.ask_permission(session, "rm -rf build")
    card = await room.card()
    [asked] = await room.host.listed(1, "team")
    assert "rm -rf build" in look(card).text

    server.permissions.clear()
    await server.publish("permission.replied", sessionID=session, requestID=asked_id)

    await room.settled(card, "answered in OpenCode")
    assert (await room.host.closed(asked["request_id"]))["ending"]["outcome"] == "cleared"
