"""The agent's process: waits now with agent_runner, now with raw inotify, and says when it woke.

Reads one command a line (`ask ID`, `raw NAME`), prints `ready` for a raw wait, and for each
command one line with the moments in nanoseconds of the clock that all processes share.
"""

import asyncio
import sys
import time
from pathlib import Path

from tests.bench.inotify import RawInotify

from agent_runner.asking import Asker, Mailbox, Question, Request, RequestId

resumed_at: dict[RequestId, int] = {}


def note_when_resumed() -> None:
    """Taking the receipt is the first thing that the resumed coroutine does."""
    claim = Mailbox.claim

    def timed(mailbox: Mailbox, request_id: RequestId, lease: str = "") -> bool:
        resumed_at[request_id] = time.monotonic_ns()
        return claim(mailbox, request_id, lease)

    Mailbox.claim = timed  # type: ignore[method-assign]


async def main(ipc_dir: Path, raw_folder: Path) -> None:
    note_when_resumed()
    raw = RawInotify(raw_folder)
    commands = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(commands)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    async with Asker(ipc_dir) as asker:
        while command := (await commands.readline()).decode().split():
            what, name = command
            if what == "raw":
                await wait_raw(raw, raw_folder / name)
            else:
                await ask(asker, RequestId(name))


async def ask(asker: Asker, request_id: RequestId) -> None:
    question = Question("Which one?")
    await asker.ask(Request((question,), request_id=request_id, wait_seconds=60))
    returned_at = time.monotonic_ns()
    say(resumed_at[request_id], returned_at)


async def wait_raw(raw: RawInotify, path: Path) -> None:
    appeared = raw.expect(path.name)
    say("ready")
    await appeared
    path.read_bytes()
    say(time.monotonic_ns())


def say(*values: object) -> None:
    """Tell the driver."""
    print(*values, flush=True)  # noqa: T201 - the driver reads our stdout


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
