"""The real neonize client and its real protobuf messages, entered from a foreign thread as Go does.

Only the foreign functions are replaced, so nothing of Go is loaded into the tests' own process.
"""

import asyncio
import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.standins.whatsapp import events
from tests.standins.whatsapp.boundary import load_library
from tests.standins.whatsapp.events import Source, reaction, text, wrapped
from tests.waiting import until

from pynchy.channels.whatsapp.connection_status import ConnectionStatus
from pynchy.channels.whatsapp.inbound_queue import InboundMessage, InboundQueue, InboundWriter, What

TEAM, ANA, ANA_LID = "120363000000000001@g.us", "491701111111@s.whatsapp.net", "8111111111@lid"


class Go:
    """The foreign functions: keeps the callbacks, and calls them from a thread of its own."""

    def __init__(self) -> None:
        self.callbacks: tuple[Any, ...] = ()
        self.called = threading.Event()
        self.stopped = threading.Event()

    def Neonize(self, *arguments: Any) -> bytes:  # noqa: N802 - Go's name
        self.callbacks = arguments
        self.called.set()
        self.stopped.wait()
        return b""

    def Stop(self, _: bytes) -> None:  # noqa: N802 - Go's name
        self.stopped.set()

    def event(self, kind: str, body: dict[str, Any]) -> None:
        """Call back with the event, and return when the library has returned."""
        protos = __import__("neonize.events", fromlist=["_"])
        formats = __import__("google.protobuf.json_format", fromlist=["_"])
        code = next(c for p, c in protos.EVENT_TO_INT.items() if p.DESCRIPTOR.name == kind)
        content = formats.ParseDict(body, protos.INT_TO_EVENT[code]()).SerializeToString()
        buffer = ctypes.create_string_buffer(content, len(content) or 1)
        pointer = ctypes.cast(buffer, ctypes.c_void_p)
        call = (b"", pointer, len(content), code)
        thread = threading.Thread(target=self.callbacks[8], args=call)
        thread.start()
        thread.join()


class Ears:
    """Keeps what it hears; `refuses` makes it fail."""

    def __init__(self, queue: InboundQueue) -> None:
        self.heard: list[InboundMessage] = []
        self.stood: list[tuple[ConnectionStatus, str, float]] = []
        self.told: list[Any] = []
        self.refuses = False
        self._writer = InboundWriter(queue, frozenset({TEAM}), self._look_up, self._tell)

    def said(self, said: InboundMessage) -> Coroutine[None, None, None]:
        if self.refuses:
            raise ValueError("refused")
        self.heard.append(said)
        return self._writer.keep(said)

    def stands(self, status: ConnectionStatus, detail: str, until: float) -> None:
        if self.refuses:
            raise ValueError("refused")
        self.stood.append((status, detail, until))

    def shows_qr(self, code: str) -> None:
        self.told.append(code)

    def paired(self, error: str) -> None:
        self.told.append(error)

    async def _look_up(self, lid: str) -> str:
        return ANA if lid == ANA_LID else ""

    def _tell(self, **body: Any) -> None:
        self.told.append(body)


class Stage:
    """A connected client."""

    def __init__(self, go: Go, ears: Ears, queue: InboundQueue) -> None:
        self.go = go
        self.ears = ears
        self.queue = queue

    def say(self, content: dict[str, Any], source: Source | None = None, **info: Any) -> None:
        source = source or Source(TEAM, ANA)
        self.go.event("Message", events.message(source, "3EB0", content, "Ana", **info))


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Stage]:
    library = load_library()
    go, queue = Go(), InboundQueue(tmp_path)
    queue.make()
    ears = Ears(queue)
    monkeypatch.setattr("neonize.aioze.client.gocode", go)
    client = library.Client(tmp_path / "session.db", ears)
    connection = await client.connect()
    await asyncio.to_thread(go.called.wait)
    yield Stage(go, ears, queue)
    await client.stop()
    await connection


async def test_a_message_is_on_the_disk_when_the_call_back_returns(stage: Stage) -> None:
    # The loop cannot run meanwhile: nothing but the foreign thread has done it.
    stage.say(text("1"))

    [name] = stage.queue.waiting()
    said = stage.queue.read(name)
    assert said is not None
    assert (said.text, said.chats, said.senders, said.name) == ("1", (TEAM,), (ANA,), "Ana")
    assert abs(said.at - time.time()) < 60
    assert stage.ears.told == []


async def test_the_same_message_again_is_the_same_file_also_when_it_was_handled(
    stage: Stage,
) -> None:
    stage.say(text("1"))
    stage.say(text("1"))
    [name] = stage.queue.waiting()
    stage.queue.done(name)

    stage.say(text("1"))

    assert stage.queue.waiting() == []


async def test_of_a_hidden_id_alone_the_number_is_found(stage: Stage) -> None:
    stage.say(text("1"), Source(TEAM, ANA_LID, device=12))
    await until(lambda: stage.ears.told, "the message to be told")

    [name] = stage.queue.waiting()
    said = stage.queue.read(name)
    assert said is not None
    assert (said.whole, said.senders) == (True, (ANA_LID, ANA))
    assert stage.ears.told == [{"event": "said", "name": name}]


CONTENTS: list[tuple[dict[str, Any], tuple[What, str, str] | None]] = [
    (text("1"), (What.TEXT, "1", "")),
    (text("1", "CARD"), (What.TEXT, "1", "CARD")),
    (wrapped("ephemeralMessage", text("1", "CARD")), (What.TEXT, "1", "CARD")),
    (wrapped("deviceSentMessage", text("1")), (What.TEXT, "1", "")),
    (reaction("1️⃣", "CARD"), (What.REACTION, "1️⃣", "CARD")),
    (reaction("", "CARD"), None),
    ({"imageMessage": {"caption": "yes"}}, (What.TEXT, "yes", "")),
    ({"imageMessage": {}}, None),
    ({"stickerMessage": {}}, None),
    ({"pollUpdateMessage": {}}, None),
    ({"protocolMessage": {"type": "REVOKE"}}, None),
    (wrapped("editedMessage", text("1")), None),
    (text(" \n"), None),
    ({}, None),
]


@pytest.mark.parametrize(("content", "expected"), CONTENTS)
async def test_what_can_be_an_answer_is_read_and_nothing_else(
    stage: Stage, content: dict[str, Any], expected: tuple[What, str, str] | None
) -> None:
    stage.say(content)

    assert [(s.what, s.text, s.about) for s in stage.ears.heard] == ([expected] if expected else [])


SOURCES: list[tuple[Source, tuple[str, ...], tuple[str, ...]]] = [
    (Source(TEAM, ANA, device=5), (TEAM,), (ANA,)),
    (Source(TEAM, ANA_LID, ANA), (TEAM,), (ANA_LID, ANA)),
    (Source(ANA_LID, ANA_LID, ANA), (ANA_LID, ANA), (ANA_LID, ANA)),
    (
        Source(ANA, "491709@s.whatsapp.net", recipient_alt=ANA_LID, from_me=True),
        (ANA, ANA_LID),
        ("491709@s.whatsapp.net",),
    ),
]


@pytest.mark.parametrize(("source", "chats", "senders"), SOURCES)
async def test_people_and_chats_are_told_in_every_form_without_devices(
    stage: Stage, source: Source, chats: tuple[str, ...], senders: tuple[str, ...]
) -> None:
    stage.say(text("1"), source)

    assert [(s.chats, s.senders) for s in stage.ears.heard] == [(chats, senders)]


@pytest.mark.parametrize("chat", ["status@broadcast", "12345@newsletter", ""])
async def test_what_is_said_in_no_chat_is_nothing(stage: Stage, chat: str) -> None:
    stage.say(text("1"), Source(chat, *((ANA, ANA_LID) if chat else ("", ""))))

    assert stage.ears.heard == []


NODE = {"Tag": "failure", "Attrs": []}
STANDINGS: list[tuple[str, dict[str, Any], ConnectionStatus]] = [
    ("Connected", {"status": True}, ConnectionStatus.CONNECTED),
    ("KeepAliveRestored", {}, ConnectionStatus.CONNECTED),
    ("Disconnected", {"status": True}, ConnectionStatus.DISCONNECTED),
    ("KeepAliveTimeout", {"ErrorCount": 1, "LastSuccess": 0}, ConnectionStatus.DISCONNECTED),
    ("StreamError", {"Code": "515", "Raw": NODE}, ConnectionStatus.DISCONNECTED),
    ("StreamReplaced", {}, ConnectionStatus.REPLACED),
    ("ClientOutdated", {}, ConnectionStatus.OUTDATED),
    ("LoggedOut", {"OnConnect": True, "Reason": "MAIN_DEVICE_GONE"}, ConnectionStatus.LOGGED_OUT),
    ("TemporaryBan", {"Code": 1, "Expire": 60}, ConnectionStatus.BANNED),
    (
        "ConnectFailure",
        {"Reason": "GENERIC", "Message": "", "Raw": NODE},
        ConnectionStatus.DISCONNECTED,
    ),
    (
        "ConnectFailure",
        {"Reason": "TEMP_BANNED", "Message": "", "Raw": NODE},
        ConnectionStatus.BANNED,
    ),
    (
        "ConnectFailure",
        {"Reason": "LOGGED_OUT", "Message": "", "Raw": NODE},
        ConnectionStatus.LOGGED_OUT,
    ),
    (
        "ConnectFailure",
        {"Reason": "CLIENT_OUTDATED", "Message": "", "Raw": NODE},
        ConnectionStatus.OUTDATED,
    ),
]


@pytest.mark.parametrize(("kind", "body", "status"), STANDINGS)
async def test_every_change_of_the_connection_is_heard(
    stage: Stage, kind: str, body: dict[str, Any], status: ConnectionStatus
) -> None:
    stage.go.event(kind, body)
    await until(lambda: stage.ears.stood, "the change")

    [(stands, _, ends)] = stage.ears.stood
    assert stands is status
    assert (ends > time.time()) == (status is ConnectionStatus.BANNED)


@pytest.mark.parametrize("expire", [7_200, 7_200 * 10**9])
async def test_a_ban_is_as_long_in_seconds_as_in_nanoseconds(stage: Stage, expire: int) -> None:
    stage.go.event("TemporaryBan", {"Code": 1, "Expire": expire})
    await until(lambda: stage.ears.stood, "the change")

    [(_, _, ends)] = stage.ears.stood
    assert 7_000 < ends - time.time() <= 7_200


async def test_a_handler_that_fails_stops_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.ears.refuses = True
    stage.say(text("1"))
    stage.go.event("Connected", {"status": True})
    await until(lambda: "whatsapp.event_failed" in caplog.messages, "the failure")
    stage.ears.refuses = False

    stage.say(text("2"))

    assert [said.text for said in stage.ears.heard] == ["2"]
    assert "whatsapp.message_unreadable" in caplog.messages


def test_the_library_loads_where_there_is_no_libmagic() -> None:
    code = (
        "import sys; sys.modules['magic'] = None\n"
        "from pynchy.channels.whatsapp.child import main; main(['--version'])\n"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert '"version": "0.5' in said.stdout, said.stderr
