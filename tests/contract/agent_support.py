"""The host's half of the mailbox, played by hand, and the server under test as a real process."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.waiting import DEADLINE_SECONDS, until

T = TypeVar("T")

SERVER = ("-m", "agent_runner.agent_tools")

ERAS = ("legacy", "2026-07-28")


class HostStandIn:
    """Reads requests and writes responses as docs/mailbox.md says, and nothing more."""

    def __init__(self, ipc_dir: Path) -> None:
        self.ipc_dir = ipc_dir
        self.tasks = ipc_dir / "tasks"
        self.responses = ipc_dir / "responses"
        for folder in (self.tasks, self.responses, ipc_dir / "input"):
            folder.mkdir(parents=True, exist_ok=True)

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.tasks.glob(pattern))

    def requests(self, kind: str = "ask") -> list[dict[str, Any]]:
        found = [json.loads(path.read_bytes()) for path in self.files("*.json")]
        return [request for request in found if request["type"] == f"ask_user:{kind}"]

    def events(self) -> list[dict[str, Any]]:
        """What the runner has told of its session."""
        found = [json.loads(path.read_bytes()) for path in self.files("*.json")]
        return [event for event in found if event["type"] == "session:event"]

    async def request(self, kind: str = "ask") -> dict[str, Any]:
        """Return the next request of that kind, and take it out of the mailbox."""
        request = (await until(lambda: self.requests(kind), f"a request to {kind}"))[0]
        suffix = ".json" if kind == "ask" else f".{kind}.json"
        (self.tasks / f"{request['request_id']}{suffix}").unlink()
        return request

    def respond(self, request_id: str, **fields: Any) -> None:
        """Write the response as the host does: whole, then named."""
        body = {
            "v": 1,
            "request_id": request_id,
            "outcome": "answered",
            "answers": [],
            "answered_by": "Ana",
            "channel": "local",
            "answered_at": "2026-11-16T09:30:00Z",
        } | fields
        self.write_response(request_id, json.dumps(body).encode())

    def write_response(self, request_id: str, data: bytes) -> None:
        temporary = self.responses / f".{request_id}.tmp"
        temporary.write_bytes(data)
        temporary.rename(self.responses / f"{request_id}.json")

    def answer(self, request: dict[str, Any], *texts: str) -> None:
        """Answer each question of the request with the text beside it."""
        pairs = zip(request["questions"], texts, strict=True)
        answers = [
            {"question": question["question"], "selected": [], "text": text}
            for question, text in pairs
        ]
        self.respond(request["request_id"], answers=answers)

    def take_receipt(self, request_id: str) -> None:
        """Be the host that goes late: it has the answer now, the waiter has not."""
        path = self.tasks / f"{request_id}.received"
        with path.open("x") as file:
            json.dump({"v": 1, "by": "host", "at": "2026-11-16T09:30:00Z", "claim": "c"}, file)

    def receipt(self, request_id: str) -> dict[str, Any] | None:
        path = self.tasks / f"{request_id}.received"
        return json.loads(path.read_bytes()) if path.exists() else None


def server_environment(ipc_dir: Path, **extra: str) -> dict[str, str]:
    return {"PYNCHY_IPC_DIR": str(ipc_dir), "PYNCHY_SESSION_ID": "session-1", **extra}


@asynccontextmanager
async def connect(
    ipc_dir: Path, era: str = "auto", *, arguments: tuple[str, ...] = SERVER, **extra: str
) -> AsyncIterator[Client]:
    """Start the server as an agent program does, with the official client on its pipes."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=list(arguments),
        env=server_environment(ipc_dir, **extra),
    )
    with log_of(ipc_dir).open("w") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=era) as client:
            yield client


def log_of(ipc_dir: Path) -> Path:
    """Return where the server's stderr goes."""
    return ipc_dir.with_suffix(".log")


def text_of(result: Any) -> str:
    """Return the one text block that a result must have."""
    assert len(result.content) == 1
    assert result.structured_content is None
    return str(result.content[0].text)


class RawServer:
    """The server with bare pipes, for what no well-behaved client sends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        assert process.stdin is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def write(self, data: bytes) -> None:
        self._stdin.write(data)

    def send(self, method: str, call_id: Any = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if call_id is not None:
            message["id"] = call_id
        self.write(json.dumps(message).encode() + b"\n")

    def call(self, call_id: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", call_id, name=tool, arguments=arguments)

    async def receive(self) -> dict[str, Any]:
        assert self._stdout is not None
        async with asyncio.timeout(DEADLINE_SECONDS):
            line = await self._stdout.readline()
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def end(self) -> int:
        """Close its stdin and return the exit code."""
        self._stdin.close()
        return await self.exit_code()

    async def exit_code(self) -> int:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def start_raw(ipc_dir: Path, **extra: str) -> AsyncIterator[RawServer]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *SERVER,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | server_environment(ipc_dir, **extra),
        limit=16 * 1024 * 1024,
    )
    try:
        yield RawServer(process)
    finally:
        if process.returncode is None:
            process.kill()
        # Reads what is left, so that the transport closes with the process.
        await process.communicate()


@asynccontextmanager
async def unread_server(ipc_dir: Path) -> AsyncIterator[tuple[RawServer, int]]:
    """Start a server whose output nobody reads, with the end of the pipe to read it from."""
    read_end, write_end = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *SERVER,
        stdin=asyncio.subprocess.PIPE,
        stdout=write_end,
        env=os.environ | server_environment(ipc_dir),
    )
    os.close(write_end)
    try:
        yield RawServer(process), read_end
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
        os.close(read_end)


def fill_the_pipe(server: RawServer) -> None:
    """Ask for more than any pipe holds: the server's writer is stuck from here on."""
    for number in range(100):
        server.send("tools/list", number)
