"""The agent's process for Slack: asks for one of two options, and says when it woke.

Reads one command a line (`ask ID`, or `many N` for N questions at once), and prints a line with
the moment in nanoseconds of the clock that all processes share: of waking up, or of asking.
"""

import asyncio
import sys
import time
from pathlib import Path

from tests.bench.waiting_agent import note_when_resumed, resumed_at, say

from agent_runner.asking import Asker, Option, Question, Request, RequestId

DEPLOY = Question("Deploy?", options=(Option("Yes"), Option("No")))


async def main(*mailboxes: Path) -> None:
    note_when_resumed()
    while command := (await asyncio.to_thread(sys.stdin.readline)).split():
        what, name = command
        if what == "many":
            say(time.monotonic_ns())
            await asyncio.gather(*(ask_many(mailbox, int(name)) for mailbox in mailboxes))
            say(time.monotonic_ns())
        else:
            await ask(mailboxes[0], RequestId(name))
            say(resumed_at[RequestId(name)])


async def ask(mailbox: Path, request_id: RequestId) -> None:
    async with Asker(mailbox) as asker:
        await asker.ask(Request((DEPLOY,), request_id=request_id, wait_seconds=60))


async def ask_many(mailbox: Path, count: int) -> None:
    async with Asker(mailbox) as asker:
        requests = [Request((DEPLOY,), wait_seconds=120) for _ in range(count)]
        await asyncio.gather(*map(asker.ask, requests))


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
