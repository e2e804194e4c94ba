"""The scripted agent: what a model would do, without a model.

Started by the demo, it asks through the real MCP server. Started by the host with `--initial`,
it is the resumed session: it takes the answer in, says so, and goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_runner.errors import AgentRunnerError
from agent_runner.initial import Initial, acknowledge, find_ipc_dir, load_initial
from pynchy.demo.script import (
    AGENT,
    ALLOWED,
    GROUP,
    LATE,
    LIVE_SCENES,
    SESSION_ID,
    TASK,
    Act,
    Scene,
    Utterance,
)

PROTOCOL_VERSION = "2025-11-25"
_END_SECONDS = 5.0

Fields = Mapping[str, object]

PYNCHY = (sys.executable, "-P", "-c", "from pynchy.cli import main; main()")


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


def main(arguments: list[str]) -> int:
    """Ask everything in the script, or go on with an answer. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pynchy.demo.agent", description=__doc__)
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--data-dir", type=Path)
    start.add_argument("--initial", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.initial is not None:
            resume(options.initial)
        else:
            work(options.data_dir)
    except (AgentRunnerError, ServerFailed, OSError) as exc:
        perform(Act.SAYS, f"I cannot go on: {exc}")
        return 1
    return 0


def work(data_dir: Path) -> None:
    """Ask one question after the other, each in a call that waits."""
    identity = {"PYNCHY_SESSION_ID": SESSION_ID, "PYNCHY_AGENT": AGENT, "PYNCHY_TASK": TASK}
    # As Claude Code has it: a tool of the server tells what it may do.
    identity["PYNCHY_PERMISSIONS"] = "1"
    command = [*PYNCHY, "mcp", "--group", GROUP, "--data-dir", str(data_dir)]
    with McpClient(command, os.environ | identity) as client:
        perform(Act.SAYS, f"I am connected. My tools: {', '.join(client.tool_names())}.")
        for scene in (*LIVE_SCENES, LATE):
            perform(Act.SAYS, scene.says)
            perform(Act.ASKS, str(scene.question["question"]))
            perform(Act.HEARS, _ask(client, scene))


def _ask(client: McpClient, scene: Scene) -> str:
    """Return what comes back: the answer, or whether the call may be made."""
    if scene.call is None:
        return client.call_tool("ask_user", {"questions": [scene.question]})
    told = json.loads(client.call_tool("permissions", scene.call))
    if told["behavior"] == ALLOWED:
        return f"{ALLOWED}: {told['updatedInput']['command']}"
    return f"{told['behavior']}: {told['message']}"


def resume(path: Path) -> None:
    """Take in what the session is resumed with."""
    initial = load_initial(path)
    perform(Act.SAYS, f"I am back in session {initial.session_id}. I was given this:")
    perform(Act.HEARS, "\n".join(_lines(initial)))
    # Last: it tells the host that the answer has really been taken in.
    acknowledge(initial, find_ipc_dir(path))


def perform(act: Act, text: str) -> None:
    """Print a line for whoever watches."""
    print(Utterance(act, text).to_line(), flush=True)  # noqa: T201 - the agent's own output


def _lines(initial: Initial) -> Iterator[str]:
    yield f"{initial.outcome.capitalize()} by {initial.answered_by} at {initial.answered_at}."
    for answer in initial.answers:
        yield f"Question: {answer.question}"
        yield f"Answer: {' '.join(filter(None, [', '.join(answer.selected), answer.text]))}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
