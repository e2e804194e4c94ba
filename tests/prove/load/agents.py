"""Agents by the hundred in one process: each asks, waits, checks its answer and asks again.

    python agents.py IPC RESULTS STOP GROUP=COUNT…

Every agent has a session and a lease of its own; the agents of a group share one watch. When the
file STOP is there, an agent that gets its answer is done. Written at the end: one JSON line for
each answer, [request_id, when it was received, whether it was the right one].
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from agent_runner.asking import Asker, Outcome, Question, Request
from agent_runner.asking._waiter import Waiter

MAX_WAIT_SECONDS_LENGTH = 3_600.0


async def live(ipc: Path, stop: Path, groups: dict[str, int]) -> list[tuple[str, float, bool]]:
    """Let all of them live, and return what they received."""
    received: list[tuple[str, float, bool]] = []
    async with asyncio.TaskGroup() as tasks:
        for group, count in groups.items():
            waiter = Waiter(ipc / group / "responses")
            for number in range(count):
                agent = _live(ipc / group, f"{group}-{number}", waiter, stop, received)
                tasks.create_task(agent)
    return received


async def _live(
    mailbox: Path, name: str, waiter: Waiter, stop: Path, received: list[tuple[str, float, bool]]
) -> None:
    async with Asker(mailbox, session_id=name, waiter=waiter) as asker:
        while True:
            request = Request(
                (Question(f"What does {name} do next?"),),
                agent=name,
                wait_seconds=MAX_WAIT_SECONDS_LENGTH,
            )
            result = await asker.ask(request)
            own = result.outcome is Outcome.ANSWERED and not result.repeated
            right = own and result.answers[0].text == f"for {request.request_id}"
            received.append((request.request_id, time.monotonic(), right))
            if stop.exists():
                return


if __name__ == "__main__":
    shares = (share.split("=") for share in sys.argv[4:])
    wanted = {group: int(count) for group, count in shares}
    lines = asyncio.run(live(Path(sys.argv[1]), Path(sys.argv[3]), wanted))
    Path(sys.argv[2]).write_text("".join(json.dumps(line) + "\n" for line in lines))
