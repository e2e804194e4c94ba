"""`pynchy` with a disk that takes its time: an outcome is written only when a file is there.

PYNCHY_TEST_GATE names that file.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from pynchy.cli import main
from pynchy.model import Ending, PendingQuestion
from pynchy.pending.files import FileStore

end = FileStore.end


async def slow_end(self: FileStore, pending: PendingQuestion, ending: Ending) -> Ending:
    await asyncio.to_thread(wait, Path(os.environ["PYNCHY_TEST_GATE"]))
    return await end(self, pending, ending)


def wait(gate: Path) -> None:
    while not gate.exists():
        time.sleep(0.02)


if __name__ == "__main__":
    FileStore.end = slow_end  # type: ignore[method-assign]
    sys.exit(main())
