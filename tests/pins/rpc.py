"""An MCP client by hand: lines of JSON on the pipes of a server, and nothing between."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "pins", "version": "1"},
}


class Line:
    """The pipes of one server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._count = 0

    async def call(self, method: str, **params: Any) -> Any:
        """Return the result of a call."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        return await self._result(self._count)

    def notify(self, method: str) -> None:
        """Say something that is not answered."""
        self._send({"method": method})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _result(self, number: int) -> Any:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == number:
                return message.get("result", message)
        raise AssertionError("the server has ended")


@asynccontextmanager
async def talking_to(*command: str, **environ: str) -> AsyncIterator[Line]:
    """Start the server; its stdin is closed in the end, and it ends by itself."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    try:
        yield Line(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
