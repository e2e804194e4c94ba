"""A small MCP client over pipes, with nothing but the standard library.

One call at a time, which is all that the scripted agent does. What the server sends in between
(progress) is passed over.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Self

PROTOCOL_VERSION = "2025-11-25"
_END_SECONDS = 5.0

Fields = Mapping[str, object]


class ServerFailed(Exception):
    """The server ended, or refused what it was asked."""


class McpClient:
    """A server process and the conversation with it, as a context manager."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ids = count(1)

    def __enter__(self) -> Self:
        self._request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "capabilities": {},
                "clientInfo": {"name": "pynchy-demo", "version": "1"},
            },
        )
        self._send({"method": "notifications/initialized"})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def tool_names(self) -> list[str]:
        """Return the names of the server's tools."""
        tools = self._request("tools/list", {})["tools"]
        if not isinstance(tools, list):
            raise ServerFailed(f"tools/list brought {tools!r}")
        return [str(tool["name"]) for tool in tools]

    def call_tool(self, name: str, arguments: Fields) -> str:
        """Call the tool and return its text. Raise ServerFailed if it failed."""
        result = self._request("tools/call", {"name": name, "arguments": arguments})
        content = result["content"]
        text = "\n".join(str(block["text"]) for block in content if isinstance(block, dict))  # type: ignore[attr-defined]
        if result.get("isError"):
            raise ServerFailed(text)
        return text

    def _request(self, method: str, params: Fields) -> Fields:
        call_id = next(self._ids)
        self._send({"id": call_id, "method": method, "params": params})
        while (message := self._receive()).get("id") != call_id:
            continue
        result = message.get("result")
        if not isinstance(result, dict):
            raise ServerFailed(f"{method}: {message.get('error')}")
        return result

    def _send(self, message: Fields) -> None:
        if self._process.stdin is None:
            raise ServerFailed("the server has no stdin")
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> Fields:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise ServerFailed("the server ended")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ServerFailed(f"not a JSON-RPC message: {line!r}")
        return message
