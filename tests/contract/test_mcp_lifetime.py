"""How the server starts, ends, and lives with a client that does not keep to its side."""

import asyncio
import fcntl
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_support import (
    SERVER,
    HostStandIn,
    RawServer,
    fill_the_pipe,
    server_environment,
    start_raw,
    unread_server,
    until,
)


@pytest.fixture
def host(tmp_path: Path) -> HostStandIn:
    return HostStandIn(tmp_path / "ipc")


@pytest.fixture
async def server(host: HostStandIn) -> AsyncIterator[RawServer]:
    async with start_raw(host.ipc_dir) as raw:
        yield raw


async def run_to_its_end(**environment: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *SERVER,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in ("PATH",)} | environment,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_without_a_mailbox_it_says_what_to_do(tmp_path: Path) -> None:
    unset = await run_to_its_end()
    missing = await run_to_its_end(PYNCHY_IPC_DIR=str(tmp_path / "nowhere"))
    limit = await run_to_its_end(PYNCHY_IPC_DIR=str(tmp_path), PYNCHY_MAX_WAIT="soon")

    for (code, out, err), words in (
        (unset, "PYNCHY_IPC_DIR"),
        (missing, "pynchy serve"),
        (limit, "PYNCHY_MAX_WAIT"),
    ):
        assert code == 2
        assert out == ""
        assert words in err


async def test_a_client_that_says_nothing_leaves_no_trace(host: HostStandIn) -> None:
    code, out, err = await run_to_its_end(**server_environment(host.ipc_dir))

    assert (code, out, err) == (0, "", "")
    assert list(host.tasks.iterdir()) == []


async def test_what_was_asked_before_the_input_ends_is_answered(server: RawServer) -> None:
    server.send("ping", 1)
    server.write(b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}')
    ended = asyncio.create_task(server.end())

    assert [(await server.receive())["id"] for _ in range(2)] == [1, 2]
    assert await ended == 0


@pytest.mark.parametrize("end", ["eof", "sigterm"])
async def test_ending_while_calls_wait_tells_the_host_and_removes_the_lease(
    host: HostStandIn, server: RawServer, end: str
) -> None:
    server.call(1, "ask_user", question="First?")
    server.call(2, "ask_user", question="Second?")
    asked = {(await host.request())["request_id"] for _ in range(2)}
    assert len(host.files("*.lease")) == 1

    if end == "sigterm":
        server.process.send_signal(signal.SIGTERM)
    code = await (server.end() if end == "eof" else server.exit_code())

    assert code == 0
    assert {cancel["request_id"] for cancel in host.requests("cancel")} == asked
    assert host.files("*.lease") == []
    assert host.files("*.received") == []


async def test_a_killed_server_leaves_its_lease_unlocked(
    host: HostStandIn, server: RawServer
) -> None:
    server.call(1, "ask_user", question="First?")
    request = await host.request()
    lease = host.tasks / f"{request['lease']}.lease"
    assert not _is_free(lease)

    server.process.kill()
    await server.exit_code()

    assert _is_free(lease)
    assert host.requests("cancel") == []


def read_to_the_end(handle: int) -> list[dict[str, Any]]:
    with os.fdopen(handle, "rb", closefd=False) as file:
        return [json.loads(line) for line in file]


async def test_a_client_that_reads_late_gets_everything_in_order(host: HostStandIn) -> None:
    async with unread_server(host.ipc_dir) as (server, read_end):
        fill_the_pipe(server)
        server.call(1000, "ask_user", question="Anybody?", timeout=60)
        request = await host.request()
        host.answer(request, "yes")
        await until(lambda: host.receipt(request["request_id"]), "the receipt")
        reading = asyncio.create_task(asyncio.to_thread(read_to_the_end, read_end))
        code = await server.end()
        lines = await reading

    assert code == 0
    assert [line["id"] for line in lines] == [*range(100), 1000]
    assert "yes" in _text(lines[-1])
    assert [path.stem for path in host.files("*.passed")] == [request["request_id"]]


async def test_an_answer_counts_as_passed_on_only_when_it_is_in_the_clients_pipe(
    host: HostStandIn,
) -> None:
    async with unread_server(host.ipc_dir) as (server, _):
        fill_the_pipe(server)
        server.call(1000, "ask_user", question="Anybody?", timeout=60)
        request = await host.request()
        host.answer(request, "yes")
        receipt = await until(lambda: host.receipt(request["request_id"]), "the receipt")
        leases = host.files("*.lease")

    assert [lease.stem for lease in leases] == [receipt["lease"]]
    assert host.files("*.passed") == []


async def test_a_client_that_never_reads_cannot_keep_the_server_from_ending(
    host: HostStandIn,
) -> None:
    async with unread_server(host.ipc_dir) as (server, _):
        fill_the_pipe(server)
        server.call(1000, "ask_user", question="Anybody?")
        request = await host.request()

        code = await server.end()

    assert code == 0
    assert [cancel["request_id"] for cancel in host.requests("cancel")] == [request["request_id"]]
    assert host.files("*.lease") == []


async def test_a_client_that_closes_its_end_ends_the_server(host: HostStandIn) -> None:
    read_end, write_end = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *SERVER,
        stdin=asyncio.subprocess.PIPE,
        stdout=write_end,
        env=os.environ | server_environment(host.ipc_dir),
    )
    os.close(write_end)
    os.close(read_end)
    server = RawServer(process)

    server.send("ping", 1)
    code = await server.exit_code()
    await process.communicate()

    assert code == 0


async def test_an_answer_taken_in_another_call_of_the_same_process_is_given_once(
    host: HostStandIn, server: RawServer
) -> None:
    server.call(1, "ask_user", question="Deploy?", timeout=0.2)
    request = await host.request()
    await server.receive()
    host.answer(request, "go ahead")
    server.call(2, "check_answer", request_id="unrelated")
    first = await server.receive()
    server.call(3, "check_answer", request_id="unrelated")
    second = await server.receive()

    assert "go ahead" in _text(first)
    assert "go ahead" not in _text(second)


async def test_an_answer_that_came_while_the_session_was_closed_is_told_when_it_is_open_again(
    host: HostStandIn,
) -> None:
    answers = [{"question": "Deploy?", "selected": ["Yes"], "text": None}]
    for request_id, session in (("q1", "session-1"), ("q2", "session-2"), ("q3", "session-1")):
        host.respond(request_id, answers=answers, session_id=session)
        os.utime(host.responses / f"{request_id}.json", (0, 0))
    host.take_receipt("q3")

    async with start_raw(host.ipc_dir) as server:
        server.call(1, "check_answer", request_id="unrelated")
        first = await server.receive()
        server.call(2, "check_answer", request_id="unrelated")
        second = await server.receive()
        await until(lambda: host.files("*.passed"), "the answer to be passed on")

    assert _text(first).count("Deploy?") == 1
    assert "Deploy?" not in _text(second)
    assert [path.stem for path in host.files("*.passed")] == ["q1"]
    assert host.receipt("q2") is None


def _is_free(lease: Path) -> bool:
    with lease.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _text(message: dict[str, Any]) -> str:
    return str(message["result"]["content"][0]["text"])


async def test_an_answer_is_not_taken_for_a_client_that_cannot_read_it(host: HostStandIn) -> None:
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *SERVER,
        stdin=asyncio.subprocess.PIPE,
        stdout=writing,
        env=os.environ | server_environment(host.ipc_dir),
    )
    os.close(writing)
    server = RawServer(process)
    server.call(1, "ask_user", question="Deploy?")
    request = await host.request()

    os.close(reading)
    host.answer(request, "yes")

    assert await server.exit_code() == 0
    assert host.receipt(request["request_id"]) is None
