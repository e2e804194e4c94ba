"""The scripted agent: what a model would do, without a model.

Started by the demo, it asks through the real MCP server. Started by the host with `--initial`,
it is the resumed session: it takes the answer in, says so, and goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from agent_runner.errors import AgentRunnerError
from agent_runner.initial import Initial, acknowledge, find_ipc_dir, load_initial
from pynchy.demo.mcp_client import McpClient, ServerFailed
from pynchy.demo.script import AGENT, GROUP, LATE, LIVE_SCENES, SESSION_ID, TASK, Act, Utterance

PYNCHY = (sys.executable, "-P", "-c", "from pynchy.cli import main; main()")


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
    command = [*PYNCHY, "mcp", "--group", GROUP, "--data-dir", str(data_dir)]
    with McpClient(command, os.environ | identity) as client:
        perform(Act.SAYS, f"I am connected. My tools: {', '.join(client.tool_names())}.")
        for scene in (*LIVE_SCENES, LATE):
            perform(Act.SAYS, scene.says)
            perform(Act.ASKS, str(scene.question["question"]))
            perform(Act.HEARS, client.call_tool("ask_user", {"questions": [scene.question]}))


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
