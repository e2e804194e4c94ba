"""Real servers, more of them than there are inotify instances: each gets its own answer."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Json
from tests.prove.load.people import opened, patiently

GROUPS = 20
AT_ONCE = 8
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "load", "version": "1"},
}

pytestmark = pytest.mark.timeout(900)


@dataclass
class Server:
    """`python -m agent_runner.agent_tools` on a pipe, spoken to in plain JSON-RPC."""

    name: str
    process: asyncio.subprocess.Process

    @classmethod
    async def start(cls, name: str, mailbox: Path, log: Path) -> "Server":
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "agent_runner.agent_tools",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYNCHY_IPC_DIR": str(mailbox), "PYNCHY_SESSION_ID": name},
                limit=2**20,
            )
        return cls(name, process)

    async def ask(self) -> str:
        """Ask, wait, and return the text of the result."""
        self._send({"id": 1, "method": "initialize", "params": INITIALIZE})
        await self._result(1)
        self._send({"method": "notifications/initialized"})
        arguments = {"question": f"What does {self.name} do?"}
        call = {"name": "ask_user", "arguments": arguments}
        self._send({"id": 2, "method": "tools/call", "params": call})
        result = await self._result(2)
        return str(result["content"][0]["text"])

    async def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.process.wait()

    def _send(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _result(self, number: int) -> Json:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == number:
                result: Json = message["result"]
                return result
        raise AssertionError(f"{self.name} has ended without a result")


async def test_more_servers_than_inotify_instances_all_get_their_own_answers(
    start_host: StartHost, proof: Any, tmp_path: Path
) -> None:
    count = proof.choose(sample=3, prove=200, everything=200)
    host = await start_host()
    log = tmp_path / "servers.log"
    gate = asyncio.Semaphore(AT_ONCE)

    async def start(number: int) -> Server:
        mailbox = host.group(f"team-{number % GROUPS}")
        for name in ("tasks", "responses", "input"):
            (mailbox / name).mkdir(parents=True, exist_ok=True)
        async with gate:
            return await Server.start(f"server-{number}", mailbox, log)

    servers = await asyncio.gather(*(start(number) for number in range(count)))
    try:
        calls = [asyncio.create_task(server.ask()) for server in servers]
        await opened(host, count)
        for question in host.pending():
            text = question["questions"][0]["question"]
            assert host.answer(question["request_id"], f"This: {text}").status == 200
        texts = await asyncio.gather(*calls)
        codes = await asyncio.gather(*(server.end() for server in servers))
    finally:
        for server in servers:
            if server.process.returncode is None:
                server.process.kill()
                await server.process.wait()

    for server, text in zip(servers, texts, strict=True):
        assert f"This: What does {server.name} do?" in text
        assert text.count("This: ") == 1
    assert set(codes) == {0}
    await patiently(lambda: host.pending() == [], "every question to be closed")
    looking = log.read_text().count("looking often instead")
    proof.report("servers", started=count, without_notifications=looking)
    if proof.scale != "sample":
        assert looking > 0, "the limit was not reached"
