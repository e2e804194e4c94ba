"""What an OpenCode session asks, shown in WhatsApp and answered there."""

from tests.slack.test_foreign_questions import server, source
from tests.standins.opencode import OpenCodeStandIn
from tests.waiting import until
from tests.whatsapp.conftest import StartRoom

__all__ = ["server"]


async def test_a_permission_of_opencode_is_a_card_that_who_may_allows(
    start_room: StartRoom, server: OpenCodeStandIn
) -> None:
    room = await start_room(source(server))
    asked_id = server.ask_permission(server.session("Clean up"), "rm -rf build")
    card = await room.told("rm -rf build", "Allow once")
    [asked] = await room.host.listed(1, "team")

    room.eve.say(room.chat, f"deny {asked['short_id']}", quote=card)
    room.ana.say(room.chat, f"approve {asked['short_id']}", quote=card)

    await until(lambda: server.replies, "the answer to reach OpenCode")
    assert server.replies == [(f"/permission/{asked_id}/reply", {"reply": "once"})]
    await room.told("allow", "Ana", quoting=card)
    closed = await room.host.closed(asked["request_id"])
    assert (closed["ending"]["channel"], closed["delivered"]) == ("whatsapp", "live")
