"""The host's process: the real host, which also notes when each outcome was accepted.

Prints `ready` when it is, and when its stdin ends one line `REQUEST_ID NANOSECONDS` for each.
"""

import asyncio
import sys
import time
from pathlib import Path

from pynchy import host
from pynchy.config import HttpSettings, Settings
from pynchy.data_dir import DataFolder
from pynchy.model import Ending, PendingQuestion
from pynchy.pending.files import FileStore

accepted_at: dict[str, int] = {}


class TimedStore(FileStore):
    async def end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        winner = await super().end(pending, ending)
        accepted_at[pending.request_id] = time.monotonic_ns()
        return winner


async def main(data: DataFolder) -> None:
    settings = Settings(
        http=HttpSettings(port=0), requests_per_second=10_000.0, request_burst=10_000
    )
    async with host.running_host(settings, data):
        say("ready")
        await asyncio.to_thread(sys.stdin.read)
    for request_id, moment in accepted_at.items():
        say(request_id, moment)


def say(*values: object) -> None:
    """Tell the driver."""
    print(*values, flush=True)  # noqa: T201 - the driver reads our stdout


if __name__ == "__main__":
    host.FileStore = TimedStore  # type: ignore[misc, attr-defined]
    asyncio.run(main(DataFolder(Path(sys.argv[1]))))
