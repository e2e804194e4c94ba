"""The daemon of a terminal's Codex as an enemy, a stranger, or a program that is out of order."""

import asyncio
import itertools
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core import make_core, start
from tests.standins.codex import CodexStandIn
from tests.waiting import until

from pynchy import wire
from pynchy.config import CodexSourceSettings, GroupSettings, Settings
from pynchy.core import Core
from pynchy.sources import codex, codex_daemon, websocket
from pynchy.sources.budget import EventBudget
from pynchy.sources.codex import CodexSource
from pynchy.sources.codex_daemon import (
    CodexDaemon,
    DaemonFailed,
    DaemonMissing,
    DaemonPace,
    find_socket,
    joined,
)
from pynchy.sources.websocket import WebSocket, WebSocketError
from pynchy.testing import FakeChannel, FakeClock

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SHAKEN = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[CodexStandIn]:
    daemon = CodexStandIn(tmp_path / "codex")
    yield daemon
    await daemon.remove()


def home_of(daemon: CodexStandIn) -> Path:
    return daemon.link.parents[1]


def frame(payload: bytes, first: int = 0x81, mask: int = 0) -> bytes:
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", first, mask | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, mask | 126, size)
    else:
        head = struct.pack("!BBQ", first, mask | 127, size)
    return head + payload


async def received(*data: bytes) -> list[bytes]:
    """Return the messages that a client makes of what a server sends, until it closes."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    _, other = await asyncio.open_unix_connection(sock=theirs)
    client, found = WebSocket(reader, writer), []

    async def send() -> None:
        for part in data:
            other.write(part)
            await other.drain()
        other.write_eof()

    sending = asyncio.ensure_future(send())
    try:
        while True:
            found.append(await client.receive())
    except WebSocketError as exc:
        return [*found, str(exc).encode()]
    finally:
        sending.cancel()
        writer.transport.abort()
        other.transport.abort()


async def test_a_text_may_come_in_parts_with_pings_between() -> None:
    parts = [frame(b"he", 0x01), frame(b"?", 0x89), frame(b"l", 0x00), frame(b"lo", 0x80)]

    assert await received(*parts, frame(b"x" * 70_000)) == [
        b"hello",
        b"x" * 70_000,
        b"it has closed the connection",
    ]


async def test_a_message_that_is_too_large_is_left_out_and_the_next_one_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "MAX_MESSAGE_BYTES", 100)
    split = [frame(b"x" * 80, 0x01), frame(b"x" * 80, 0x80)]

    found = await received(frame(b"x" * 200_000), *split, frame(b"small"))

    assert found == [b"small", b"it has closed the connection"]


async def test_empty_parts_without_end_took_memory_without_end() -> None:
    parts = [frame(b"", 0x01), *[frame(b"", 0x00) * 1_000] * 30]

    assert await received(*parts) == [b"it sends a message without end"]


def of_daemon(data: bytes, pace: DaemonPace) -> CodexDaemon:
    """Return a connection to a daemon that has said this already, and then ends."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    writer: Any = None
    return CodexDaemon(WebSocket(reader, writer, pace.pay_frame), lambda _: None, pace)


@pytest.mark.parametrize("said", [b'{"method":"x"}', b"no JSON"])
async def test_a_daemon_that_floods_left_others_no_turn(said: bytes) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(take_turns())
    with pytest.raises(DaemonFailed):
        await of_daemon(frame(said) * 300, DaemonPace()).listen()
    other.cancel()

    assert turns >= 300 // 32


@pytest.mark.parametrize(
    "data",
    [frame(b'{"method":"x"}') * 400, frame(b"", 0x01) + frame(b"", 0x00) * 5_000],
    ids=["messages", "parts"],
)
async def test_a_daemon_that_goes_on_flooding_is_left(data: bytes) -> None:
    now = itertools.count(0.0, 0.001)
    # So slow that it is late from the beginning, by a clock that does not wait.
    budget = EventBudget(lambda: 0.5, lambda: next(now))
    budget._late_until = 100.0  # noqa: SLF001 - it has been late for long

    with pytest.raises(DaemonFailed, match="more than can be listened to"):
        await of_daemon(data, DaemonPace(budget)).listen()


async def test_a_large_message_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[int, threading.Thread] = {}
    read = wire.read_codex_message

    def note(data: bytes) -> wire.CodexMessage:
        threads[len(data)] = threading.current_thread()
        return read(data)

    monkeypatch.setattr(wire, "read_codex_message", note)
    large = b'{"method":"x","params":{"a":[' + b"0," * 50_000 + b"0]}}"
    small = b'{"method":"x"}'
    with pytest.raises(DaemonFailed):
        await of_daemon(frame(large) + frame(small), DaemonPace()).listen()

    assert threads[len(large)] is not threading.main_thread()
    assert threads[len(small)] is threading.main_thread()


BROKEN = {
    "masked": frame(b"\0\0\0\0a", mask=0x80),
    "reserved bits": frame(b"a", 0xC1),
    "binary": frame(b"a", 0x82),
    "unknown kind": frame(b"a", 0x83),
    "a part of nothing": frame(b"a", 0x80),
    "two at once": frame(b"a", 0x01) + frame(b"b", 0x81),
    "a large ping": frame(b"a" * 126, 0x89),
    "a ping in parts": frame(b"a", 0x09),
    "without end": struct.pack("!BBQ", 0x81, 127, 2**63 - 1),
    "close": frame(b"\x03\xe8", 0x88),
    "random": bytes(range(255, 200, -1)),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
async def test_whatever_breaks_the_protocol_ends_the_connection(data: bytes) -> None:
    found = await received(data, frame(b"never read"))

    assert len(found) == 1


async def test_what_is_cut_off_is_no_message() -> None:
    assert await received(frame(b"abc")[:-1]) == [b"it has closed the connection"]


def test_a_socket_in_a_folder_that_others_can_write_to_is_not_spoken_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "app-server-control" / "app-server-control.sock"
    link.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as sock:
        monkeypatch.chdir(link.parent)
        sock.bind(link.name)
        assert find_socket(tmp_path) == link

        link.parent.chmod(0o777)
        with pytest.raises(DaemonFailed, match="others can write"):
            find_socket(tmp_path)


def test_a_link_to_a_socket_in_such_a_folder_is_not_followed(daemon: CodexStandIn) -> None:
    daemon.socket.parent.chmod(0o777)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(daemon.socket))

        with pytest.raises(DaemonFailed, match="others can write"):
            find_socket(home_of(daemon))


def test_what_is_no_socket_is_not_spoken_to(daemon: CodexStandIn) -> None:
    daemon.socket.write_text("")

    with pytest.raises(DaemonFailed, match="no socket"):
        find_socket(home_of(daemon))


def test_a_socket_of_another_user_is_not_spoken_to(
    daemon: CodexStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(daemon.socket))
        monkeypatch.setattr(codex_daemon.os, "geteuid", lambda: 54_321)

        with pytest.raises(DaemonFailed, match="another user"):
            find_socket(home_of(daemon))


async def test_another_user_who_listens_there_is_told_nothing(
    daemon: CodexStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    await daemon.start()
    monkeypatch.setattr(codex_daemon, "_peer", lambda _: 54_321)

    with pytest.raises(DaemonFailed, match="another user listens there"):
        async with joined(home_of(daemon), lambda _: None):
            pass

    assert daemon.connected == []


@pytest.mark.parametrize("is_left", [True, False])
async def test_a_daemon_that_does_not_run_is_missing(
    daemon: CodexStandIn, *, is_left: bool
) -> None:
    if is_left:
        await daemon.start()
        await daemon.stop()
        with socket.socket(socket.AF_UNIX) as sock:  # as a process that was killed leaves it
            daemon.socket.unlink(missing_ok=True)
            sock.bind(str(daemon.socket))

    with pytest.raises(DaemonMissing):
        async with joined(home_of(daemon), lambda _: None):
            pass


async def test_its_version_is_told(daemon: CodexStandIn) -> None:
    await daemon.start()

    async with joined(home_of(daemon), lambda _: None) as client:
        assert client.version == "0.166.0"


@pytest.fixture
async def core(tmp_path: Path, daemon: CodexStandIn) -> AsyncIterator[Core]:
    """A core whose source of Codex runs, with a home that nobody is at yet."""
    table = CodexSourceSettings(group="team", home=home_of(daemon))
    (tmp_path / "data" / "ipc").mkdir(parents=True)
    settings = Settings(groups={"team": GroupSettings()})
    core = make_core(tmp_path / "data", FakeClock(), settings, {"local": FakeChannel("local")})
    async with asyncio.TaskGroup() as tasks:
        await start(core, tasks)
        source = CodexSource(table, core.rejoined, core.index, {})
        running = tasks.create_task(source.run(core.ask_handler))
        yield core
        assert not running.done()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "_PAUSE_SECONDS", 0.02)


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    del reader
    writer.close()


async def _not_found(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n")
    writer.close()


async def _wrong_key(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(SHAKEN + b"Sec-WebSocket-Accept: abc\r\n\r\n")
    writer.close()


async def _endless_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"a" * 1_000_000)
    writer.close()


@pytest.mark.parametrize("serve", [_silent, _hang_up, _not_found, _wrong_key, _endless_head])
async def test_after_a_stranger_on_the_socket_the_real_daemon_is_joined(
    core: Core, daemon: CodexStandIn, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex_daemon, "CALL_SECONDS", 0.2)
    met: list[int] = []

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(1)
        await serve(reader, writer)

    server = await asyncio.start_unix_server(meet, str(daemon.socket))
    await until(lambda: len(met) >= 2, "two attempts")
    server.close()
    monkeypatch.setattr(codex_daemon, "CALL_SECONDS", 30.0)

    await daemon.start()
    await daemon.ask_command()

    await until(lambda: len(list(core.index)) == 1, "the card")


RUBBISH: dict[str, Any] = {
    "no JSON": "{",
    "no object": "[1, 2]",
    "a number too large": '{"id": 1e999}',
    "an odd id": json.dumps({"id": {"a": 1}, "method": "x"}),
    "an odd method": json.dumps({"method": 7}),
    "odd parameters": json.dumps({"method": "thread/status/changed", "params": []}),
    "a status of nothing": json.dumps({"method": "thread/status/changed", "params": {}}),
    "a thread with an odd name": json.dumps(
        {
            "method": "thread/status/changed",
            "params": {"threadId": "../x", "status": {"type": "active", "activeFlags": ["a"]}},
        }
    ),
    "nothing resolved": json.dumps({"method": "serverRequest/resolved", "params": {}}),
    "what was resolved is a list": json.dumps(
        {"method": "serverRequest/resolved", "params": {"requestId": [1]}}
    ),
    "an answer to nothing": json.dumps({"id": 4711, "result": {}}),
    "a lone surrogate": '{"method": "thread/closed", "params": {"threadId": "\\ud800"}}',
    "a request without a thread": json.dumps(
        {"id": 5, "method": "item/commandExecution/requestApproval", "params": {"command": "x"}}
    ),
    "deep": "[" * 5_000 + "]" * 5_000,
}


@pytest.mark.parametrize("rubbish", RUBBISH.values(), ids=RUBBISH.keys())
async def test_rubbish_among_messages_stops_nothing(
    core: Core, daemon: CodexStandIn, rubbish: str
) -> None:
    await daemon.start()
    await until(lambda: daemon.connected and daemon.connected[0].is_begun, "the host to join")
    [connection] = daemon.connected

    await connection.socket.send_str(rubbish)
    await daemon.ask_command()

    [pending] = await until(lambda: list(core.index), "the card")
    assert pending.call is not None
    assert pending.call.command() == "touch made"
    assert daemon.connected == [connection]


async def test_a_daemon_that_stops_to_answer_is_left_and_its_cards_stay(
    core: Core, daemon: CodexStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    await daemon.start()
    await daemon.ask_command()
    [pending] = await until(lambda: list(core.index), "the card")
    monkeypatch.setattr(codex_daemon, "CALL_SECONDS", 0.2)
    calls: list[Any] = []
    daemon.instead["thread/read"] = calls.append

    await daemon.ask_command(thread="t2")
    await until(lambda: len(calls) >= 2, "two attempts to look")
    assert core.ledger.get(pending.key).ending is None
    daemon.instead.clear()
    monkeypatch.setattr(codex_daemon, "CALL_SECONDS", 30.0)

    await until(lambda: len(list(core.index)) == 2, "the second card")
    assert core.ledger.get(pending.key).ending is None


async def test_more_requests_than_a_person_can_answer_are_left_to_the_terminal(
    core: Core, daemon: CodexStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex, "MAX_OPEN", 3)
    await daemon.start()
    numbers = [await daemon.ask_command(f"touch {n}") for n in range(5)]
    await until(lambda: len(list(core.index)) == 3, "three cards")

    await daemon.resolve(numbers[0])
    await daemon.ask_command("touch last")

    def commands() -> set[str | None]:
        return {p.call.command() for p in core.index if p.call and p.ending is None}

    await until(lambda: commands() == {"touch 1", "touch 2", "touch last"}, "the last one")
