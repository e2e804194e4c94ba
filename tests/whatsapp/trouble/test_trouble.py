"""WhatsApp, its library or its child process fails: nothing hangs, and nothing is lost."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.acceptance.support import MailboxAgent, Runs
from tests.slack.support import DEPLOY
from tests.standins.whatsapp import WhatsAppStandIn
from tests.waiting import until
from tests.whatsapp.conftest import StartRoom
from tests.whatsapp.support import Room, pair

from agent_runner.asking import Outcome
from pynchy.channels.whatsapp.inbound_queue import InboundQueue
from pynchy.channels.whatsapp.supervisor import Supervisor


async def problem(room: Room, *words: str) -> str:
    """Wait until the host complains of WhatsApp in these words."""

    def look() -> str | None:
        told = room.host.http("GET", "/healthz").body.get("problems", [])
        fits = [t for t in told if all(word in t.lower() for word in ("whatsapp", *words))]
        return fits[0] if fits else None

    found: str = await until(look, f"a problem with {words}")
    return found


async def well(room: Room) -> None:
    await until(lambda: not room.host.http("GET", "/healthz").body["problems"], "no problems")


NODE: dict[str, Any] = {"Tag": "failure", "Attrs": []}
ENDINGS: list[tuple[str, dict[str, Any], str]] = [
    ("LoggedOut", {"OnConnect": False, "Reason": "LOGGED_OUT"}, "pynchy whatsapp pair"),
    ("StreamReplaced", {}, "another program has taken over"),
    ("TemporaryBan", {"Code": 1, "Expire": 7_200_000_000_000}, "banned"),
    ("ClientOutdated", {}, "update it"),
]


@pytest.mark.parametrize(("kind", "body", "words"), ENDINGS, ids=[e[0] for e in ENDINGS])
async def test_when_whatsapp_ends_the_session_the_agent_hears_it_at_once(
    start_room: StartRoom, kind: str, body: dict[str, Any], words: str
) -> None:
    room = await start_room()
    await well(room)

    room.whatsapp.emit(kind, **body)
    await problem(room, words)
    result = await (await room.ask()).result()

    assert result.outcome is Outcome.UNDELIVERABLE
    assert words in (result.error or str(result)).lower()
    assert room.texts() == []
    code, told, _ = await room.host.cli("whatsapp", "status", "--config", str(room.host.config))
    assert (code, words in told.lower()) == (1, True)


async def test_a_question_goes_to_the_next_channel_when_whatsapp_is_down(
    start_room: StartRoom,
) -> None:
    room = await start_room(channels=("whatsapp", "local"))
    room.whatsapp.emit("StreamReplaced")
    await problem(room, "taken over")

    asked = await room.ask()
    await room.host.state(asked.request_id, "open")
    await until(
        lambda: room.host.question(asked.request_id)["channel_name"] == "local", "the next channel"
    )
    room.host.answer(asked.request_id, "Yes")

    assert await asked.answer() == (("Yes",), None)


async def test_a_ban_outlives_the_host_that_met_it(start_room: StartRoom) -> None:
    room = await start_room()
    room.whatsapp.emit("TemporaryBan", Code=1, Expire=3600)
    await problem(room, "banned", "until")
    pids = len(room.whatsapp.pids)

    await room.host.restart()

    await problem(room, "banned", "until")
    assert len(room.whatsapp.pids) == pids


async def test_an_interrupted_connection_is_told_and_mends_itself(start_room: StartRoom) -> None:
    room = await start_room()
    room.whatsapp.emit("Disconnected", status=True)
    await problem(room, "interrupted")

    asked = await room.ask()
    room.whatsapp.emit("Connected", status=True)
    [card] = await room.said(1)
    room.ana.say(room.chat, "1", quote=card)

    assert await asked.answer() == (("Yes",), None)
    await well(room)


async def test_a_library_that_gives_up_is_started_again(start_room: StartRoom) -> None:
    room = await start_room()
    body = {"Reason": "SERVICE_UNAVAILABLE", "Message": "try later", "Raw": NODE}

    room.whatsapp.emit("ConnectFailure", **body)
    await problem(room, "try later")
    room.whatsapp.end("websocket: bad handshake")
    await until(lambda: len(room.whatsapp.pids) == 2, "another child")
    await well(room)
    asked, card = await room.asked()
    room.ana.say(room.chat, "1", quote=card)

    assert await asked.answer() == (("Yes",), None)


async def test_without_a_pairing_the_host_waits_for_one_and_says_so(
    start_room: StartRoom,
) -> None:
    room = await start_room()
    room.whatsapp.paired = False
    room.whatsapp.emit("LoggedOut", OnConnect=False, Reason="LOGGED_OUT")
    await problem(room, "pair")
    config = str(room.host.config)

    pairing = asyncio.create_task(room.host.cli("whatsapp", "pair", "--config", config))
    await until(lambda: len(room.whatsapp.pids) == 2 and room.whatsapp.connected, "its child")
    room.whatsapp.scan()
    code, told, _ = await pairing

    assert (code, "Paired with +491700000000" in told) == (0, True)
    await well(room)
    asked, card = await room.asked()
    room.ana.say(room.chat, "1", quote=card)
    assert await asked.answer() == (("Yes",), None)


async def test_a_message_that_whatsapp_refuses_is_told_to_the_agent(
    start_room: StartRoom,
) -> None:
    room = await start_room()
    room.whatsapp.refuse = "failed to get group members: not in group"

    result = await (await room.ask()).result()

    assert result.outcome is Outcome.UNDELIVERABLE
    assert "not in group" in str(result)


async def test_a_card_that_may_be_there_is_sent_again_and_says_so(start_room: StartRoom) -> None:
    room = await start_room()
    room.whatsapp.panics = 1

    asked, first = await room.asked()
    second = room.texts()[1]
    room.ana.say(room.chat, "1", quote=first)

    assert "repeat" not in first.text
    assert "repeat" in second.text
    assert room.short_id(asked) in second.text
    assert await asked.answer() == (("Yes",), None)


async def test_a_settling_that_may_be_there_is_repeated_and_says_so(
    start_room: StartRoom,
) -> None:
    room = await start_room()
    asked, card = await room.asked()
    room.whatsapp.panics = 1

    room.ana.say(room.chat, "1", quote=card)

    assert await asked.answer() == (("Yes",), None)
    await room.told("answered", "sent again", quoting=card)
    assert len(room.texts()) == 3


async def test_a_child_that_is_killed_loses_no_answer(start_room: StartRoom) -> None:
    room = await start_room()
    asked, card = await room.asked()

    # On the disk before the child could tell anybody.
    room.whatsapp.say_and_panic(room.ana.event(room.chat, {"conversation": "1"}, "LAST"))

    assert await asked.answer() == (("Yes",), None)
    await room.told("answered", quoting=card)


async def test_what_is_said_while_there_is_no_child_or_host_counts(start_room: StartRoom) -> None:
    room = await start_room()
    asked, card = await room.asked()
    second, second_card = await room.asked(DEPLOY)

    room.kill_child()
    await until(lambda: not room.whatsapp.connected, "the child's end")
    room.ana.say(room.chat, "1", quote=card)
    assert await asked.answer() == (("Yes",), None)
    room.host.kill()
    await until(lambda: not room.whatsapp.connected, "the child's end")
    room.ana.say(room.chat, "2", quote=second_card)
    await room.host.start()

    assert await second.answer() == (("No",), None)
    await room.told("answered", "No", quoting=second_card)


async def test_a_child_ends_with_its_host(start_room: StartRoom) -> None:
    room = await start_room()
    assert room.whatsapp.connected

    room.host.kill()

    await until(lambda: not room.whatsapp.connected, "the child's end")


async def test_bytes_that_are_no_message_do_no_harm(start_room: StartRoom) -> None:
    room = await start_room()

    for content in (b"", b"\xff" * 40, b"\x0a\x02\x08\x01"):
        room.whatsapp.emit_raw("Message", content)
    asked, card = await room.asked()
    room.ana.say(room.chat, "1", quote=card)

    assert await asked.answer() == (("Yes",), None)
    assert len(room.whatsapp.pids) == 1


async def test_a_late_answer_after_a_restart_resumes_the_session(
    start_room: StartRoom, tmp_path: Path
) -> None:
    runs = Runs(tmp_path)
    room = await start_room('receipt_grace = "100ms"', runs.launcher("acknowledge"))
    agent = MailboxAgent(room.host.group("team"))
    agent.ask(request_id="q1")
    await room.host.state("q1", "open")
    agent.die()
    [card] = room.texts()

    await room.host.restart()
    room.ana.say(room.chat, "1", quote=card)

    assert (await room.host.closed("q1"))["delivered"] == "late"
    [run] = runs.started()
    assert run["initial"]["answers"][0]["selected"] == ["Yes"]
    await room.told("answered", "resumed", quoting=card)
    assert [text for text in room.texts() if "Deploy?" in text.text and not text.quotes] == [card]


async def test_who_comes_second_after_a_restart_is_told_how_it_ended(
    start_room: StartRoom,
) -> None:
    room = await start_room()
    asked, card = await room.asked()
    room.ana.say(room.chat, "1", quote=card)
    await asked.answer()
    await room.told("answered", quoting=card)

    await room.host.restart()
    late = room.ben.say(room.chat, "2", quote=card)

    await room.told("over already", "Yes", quoting=late)


async def test_a_child_that_hangs_is_started_again_and_one_that_is_well_is_not(
    whatsapp: WhatsAppStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.channels.whatsapp.supervisor._SILENT_SECONDS", 8.0)
    pair(tmp_path)
    home = tmp_path / "whatsapp"
    InboundQueue(home).make()
    order = {"purpose": "serve", "chats": [], "self_chat": False}
    supervisor = Supervisor(home, home / "session.db", order, Mock())
    running = asyncio.create_task(supervisor.run())
    try:
        await until(lambda: supervisor.problem() is None, "the connection")
        patience_ends = time.monotonic() + 9.0
        await until(lambda: time.monotonic() > patience_ends, "more than the patience")
        before = list(whatsapp.pids)
        os.kill(before[-1], signal.SIGSTOP)

        await until(lambda: len(whatsapp.pids) > len(before), "another child")
        await until(lambda: supervisor.problem() is None, "the connection")
    finally:
        running.cancel()
        await asyncio.wait([running])

    assert len(before) == 1
