"""How Slack reaches us: a start without Slack, sockets that fall silent, HTTP instead of one."""

import asyncio
import copy
import socket

import pytest
from tests.acceptance.support import Host
from tests.slack.conftest import StartRoom
from tests.slack.support import ANA, BEN, DEPLOY, Room
from tests.standins.slack import OTHER_TEAM, Fault, SlackStandIn, api, look
from tests.waiting import until

from agent_runner.asking import Question

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - not a real one


def problems(host: Host) -> str:
    return " ".join(host.http("GET", "/healthz").body["problems"])


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


async def test_a_slack_that_is_slow_at_the_start_leaves_no_problem_behind(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    slack.fail("auth.test", Fault(slow_seconds=2.0))
    room = await start_room('send_timeout = "1s"', channels=("slack", "local"))

    await until(lambda: "slack" not in problems(room.host), "no problem")

    asked, card = await room.asked(DEPLOY)
    room.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)


async def test_a_socket_that_falls_silent_is_replaced(troubled: Room) -> None:
    room = troubled
    asked, card = await room.asked(DEPLOY)
    opened = room.slack.sockets.opened

    room.slack.fall_silent()
    lost = room.ana.press(card, "No")
    await until(lambda: room.slack.sockets.opened > opened, "a new socket")
    assert not asked.call.done()
    assert lost.sent_at == []
    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)


async def test_a_slack_that_stays_away_for_long_is_tried_until_it_is_back(troubled: Room) -> None:
    room = troubled
    asked, card = await room.asked(DEPLOY)
    other, second = await room.asked(Question("What name?"))

    def failures() -> int:
        return room.host.log.read_text().count("event=slack.disconnected")

    before = failures()
    room.slack.go_away()
    room.ana.reply(second, "Rosi")
    # The first says that the socket is gone; the library and we try to open another, in vain.
    await until(lambda: failures() >= before + 2, "the attempts to fail")
    assert "slack" in problems(room.host)
    assert not other.call.done()
    room.slack.come_back()

    assert await other.answer() == ((), "Rosi")
    room.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)
    await until(lambda: "slack" not in problems(room.host), "no problem any more")


async def test_an_odd_page_of_a_thread_does_not_end_the_catching_up(
    troubled: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = troubled
    asked, card = await room.asked(DEPLOY)
    served = []

    async def odd(_: object, arguments: object) -> dict[str, object]:
        served.append(arguments)
        return {"messages": [None, 7, {"ts": {}, "thread_ts": [], "user": card.ts}]}

    with monkeypatch.context() as patch:
        patch.setitem(api._METHODS, "conversations.replies", odd)  # noqa: SLF001 - no other way
        room.slack.disconnect("refresh_requested")
        await until(lambda: served, "a page to be read")
    room.slack.go_away()
    room.ana.reply(card, "No")
    room.slack.come_back()

    assert await asked.answer() == (("No",), None)


async def test_a_guests_reply_is_refused_also_when_it_is_caught_up(troubled: Room) -> None:
    room = troubled
    asked, card = await room.asked(DEPLOY)
    guest = copy.copy(room.ana)
    guest.user = type(room.ana.user)(room.ana.user.id, "Guest", OTHER_TEAM)

    room.slack.go_away()
    guest.reply(card, "Yes")
    room.slack.come_back()
    await room.told(guest, "not known to be of this workspace")

    assert not asked.call.done()
    room.ben.press(card, "No")
    assert (await asked.result()).answered_by == "Ben"


async def test_where_slack_does_not_name_the_team_it_is_asked_for(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    slack.workspace.add_user(BEN, "Ben", OTHER_TEAM)
    room = await start_room()
    asked, card = await room.asked(DEPLOY)
    for person in (room.ana, room.ben):
        person.user = type(person.user)(person.user.id, person.user.name, "")

    room.ben.press(card, "Yes")
    await room.told(room.ben, "not known to be of this workspace")
    room.ben.reply(card, "Yes")
    await room.told(room.ben, "not known to be of this workspace", count=2)
    assert not asked.call.done()
    room.ana.reply(card, "No")

    assert await asked.answer() == (("No",), None)


async def test_a_reply_that_was_taken_is_not_taken_again_by_the_next_host(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    room = await start_room()
    asked = await room.ask(Question("What name?"), Question("Which colour?"))
    card = await room.shown(asked)
    room.ana.reply(card, "1: Rosi")
    await room.told(room.ana, "Noted")
    [reply] = slack.thread(card)
    await until(lambda: reply.reactions, "the sign that it was taken")

    await room.kill()
    await room.start()
    await until(lambda: slack.calls("conversations.replies"), "the thread to be read")
    room.ana.reply(card, "2: red")

    result = await asked.result()
    assert [answer.text for answer in result.answers] == ["Rosi", "red"]
    assert len([e for e in room.ana.told if "Noted" in look(e).text]) == 1


async def test_over_http_a_click_and_a_reply_answer(
    start_room: StartRoom, slack: SlackStandIn, tokens: pytest.MonkeyPatch
) -> None:
    port = free_port()
    tokens.setenv("SLACK_SIGNING_SECRET", SIGNING_SECRET)
    slack.call_back(f"http://127.0.0.1:{port}/slack/events", SIGNING_SECRET)
    room = await start_room(connected=False, mode="http", http_port=port)
    await until(lambda: "slack" not in problems(room.host), "the endpoint")

    asked, card = await room.asked(DEPLOY)
    click = room.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)
    assert await asyncio.to_thread(click.wait)
    await room.settled(card, "Answered", "Ana")
    other, second = await room.asked(Question("What name?"))
    room.ana.reply(second, "Rosi & <Co>")
    assert await other.answer() == ((), "Rosi & <Co>")
    # With the wrong secret nobody gets in.
    third, last = await room.asked(Question("And now?"))
    slack.call_back(f"http://127.0.0.1:{port}/slack/events", "x" * 32)
    assert not await asyncio.to_thread(room.ana.reply(last, "forged").wait, 1.0)
    slack.call_back(f"http://127.0.0.1:{port}/slack/events", SIGNING_SECRET)
    room.ana.reply(last, "true")
    assert await third.answer() == ((), "true")


async def test_every_call_that_slack_slows_down_is_made_again(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    slow = Fault(status=429, retry_after_seconds=1)
    for method in ("users.info", "auth.test", "apps.connections.open"):
        slack.fail(method, slow)
    room = await start_room()
    slack.fail("chat.postMessage", Fault(drop=True))
    for method in ("conversations.history", "reactions.add", "chat.update", "chat.postEphemeral"):
        slack.fail(method, slow)

    asked, card = await room.asked(DEPLOY)
    room.eve.reply(card, "Yes")
    await room.told(room.eve, "list")
    room.ana.reply(card, "No")

    assert await asked.answer() == (("No",), None)
    await room.settled(card, "Answered", "Ana")
    [reply] = [m for m in slack.thread(card) if m.user == ANA]
    await until(lambda: reply.reactions, "the sign that it was taken")
    await room.host.closed(asked.request_id)
    assert len(room.cards()) == 1
    limited = {call.method for call in slack.api.calls if call.error == "429"}
    assert {"conversations.history", "reactions.add", "chat.update", "users.info"} <= limited


async def test_a_card_links_to_the_page_of_its_question(start_room: StartRoom) -> None:
    public = "https://pynchy.example"
    room = await start_room(f'[http]\npublic_url = "{public}"')
    asked, card = await room.asked(DEPLOY)

    [url] = [element["url"] for _, element in card.elements if "url" in element]
    page = room.host.page(url.removeprefix(public))
    room.ana.press(card, "Yes")

    assert url.startswith(f"{public}/q/team/{asked.request_id}")
    assert "Deploy?" in page
    assert await asked.answer() == (("Yes",), None)
