"""An agent made with the official package of ACP, which does what its prompt says.

What it learns from its client is written down, a line of JSON each, in the file ACP_LOG.
"""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, Agent, RequestError, run_agent, update_agent_message_text
from acp.schema import (
    AgentCapabilities,
    ElicitationFormSessionMode,
    ElicitationSchema,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)

SESSION = "the-session"
OPTIONS = [
    PermissionOption(option_id="for-ever", name="Always", kind="allow_always"),
    PermissionOption(option_id="yes", name="Once", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]
HELLO = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":'
    ' {"protocolVersion": "2025-11-25", "capabilities": {},'
    ' "clientInfo": {"name": "scripted", "version": "1"}}}\n'
)
FORM = ElicitationSchema.model_validate(
    {
        "properties": {
            "colour": {
                "type": "string",
                "title": "Which colour?",
                "oneOf": [{"const": "b", "title": "Blue"}, {"const": "g", "title": "Green"}],
            }
        }
    }
)


def log(**fields: Any) -> None:
    with Path(os.environ["ACP_LOG"]).open("a") as file:
        file.write(json.dumps(fields) + "\n")


class Scripted(Agent):
    """Asks for what the words of its prompt name."""

    def on_connect(self, conn: Any) -> None:
        self._client = conn
        self._calls = 0

    async def initialize(self, protocol_version: int, **told: Any) -> InitializeResponse:
        log(protocol=protocol_version, capabilities=told["client_capabilities"].model_dump())
        able = AgentCapabilities(load_session=True)
        return InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_capabilities=able)

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> NewSessionResponse:
        self._begin("new", cwd, mcp_servers)
        return NewSessionResponse(session_id=SESSION)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any
    ) -> LoadSessionResponse:
        if session_id != SESSION:
            raise RequestError.resource_not_found(session_id)
        self._begin("load", cwd, mcp_servers)
        return LoadSessionResponse()

    def _begin(self, how: str, cwd: str, servers: Any) -> None:
        [server] = servers
        env = {**os.environ, **{one.name: one.value for one in server.env}}
        command, pipe = [server.command, *server.args], subprocess.PIPE
        self._server = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe)
        self._server.stdin.write(HELLO.encode())
        self._server.stdin.flush()
        log(session=how, cwd=cwd, server=json.loads(self._server.stdout.readline())["result"])

    async def prompt(self, prompt: Any, session_id: str, **_: Any) -> PromptResponse:
        [block] = prompt
        log(prompt=block.text)
        await self._client.session_update(session_id, update_agent_message_text("Let me see."))
        if "permission" in block.text:
            self._calls += 1
            call = ToolCallUpdate(
                tool_call_id=f"c{self._calls}",
                title="make",
                kind="execute",
                raw_input={"command": "make all"},
            )
            asked = await self._client.request_permission(session_id, call, OPTIONS)
            log(outcome=asked.outcome.model_dump())
        if "form" in block.text:
            form = ElicitationFormSessionMode(session_id=session_id, requested_schema=FORM)
            told = await self._client.create_elicitation("Paint it.", form)
            log(form=told.model_dump())
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(Scripted(), use_unstable_protocol=True))
    if "ACP_LINGERS" in os.environ:
        signal.pause()
