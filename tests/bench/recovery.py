"""How long a host takes to start when many questions are open on its disk.

From the spawn of `pynchy serve` until it lists every one of them over HTTP. Beside it, in turn,
the same with an empty folder: what a start costs anyway. The second line is the processor time of
the same starts, which a busy machine does not distort.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.figures import Line, Sample, Unit, line
from tests.bench.questions import open_question

from pynchy.data_dir import DataFolder
from pynchy.pending.files import FileStore

OPEN = 10_000
QUICK_OPEN = 100
ROUNDS = 4
QUICK_ROUNDS = 1
_AT_ONCE = 500
_PYNCHY = str(Path(sys.executable).with_name("pynchy"))


@dataclass(frozen=True, slots=True)
class Start:
    """What one start took, in milliseconds."""

    elapsed: float
    processor: float


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    size, rounds = (QUICK_OPEN, QUICK_ROUNDS) if quick else (OPEN, ROUNDS)
    full, empty = DataFolder(folder / "full"), DataFolder(folder / "empty")
    settings = folder / "pynchy.toml"
    settings.write_text("")
    asyncio.run(fill(full, size))
    _start(empty, settings, 0)  # fills the caches
    pairs = [(_start(full, settings, size), _start(empty, settings, 0)) for _ in range(rounds)]
    ours, limit = zip(*pairs, strict=True)
    what = f"host start, {size:,} open questions listed (limit: none open)"
    return [
        line(
            "d1",
            what,
            Unit.MILLISECONDS,
            Sample([start.elapsed for start in ours]),
            Sample([start.elapsed for start in limit]),
            at_most=3_000,
        ),
        line(
            "d2",
            f"{what}, processor time",
            Unit.MILLISECONDS,
            Sample([start.processor for start in ours]),
            Sample([start.processor for start in limit]),
        ),
    ]


async def fill(data: DataFolder, size: int) -> None:
    data.make()
    store = FileStore(data.ipc)
    for first in range(0, size, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, size))
        await asyncio.gather(*(store.record(open_question(number)) for number in numbers))


def _start(data: DataFolder, settings: Path, size: int) -> Start:
    """Start a host and have it list that many open questions."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [_PYNCHY, "serve", "--data-dir", data.path, "--config", settings, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            found = _count_listed(data)
            elapsed = time.perf_counter() - started
            processor = _processor_seconds(process.pid)
        finally:
            process.terminate()
    if found != size:
        raise RuntimeError(f"the host lists {found} questions of {size}")
    return Start(elapsed * 1_000, processor * 1_000)


def _processor_seconds(pid: int) -> float:
    # The name in front may hold spaces; user and system time are the 14th and 15th field.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _count_listed(data: DataFolder) -> int:
    address = data.host()
    parts = urlsplit(address.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request("GET", "/api/pending", headers={"authorization": f"Bearer {address.token}"})
    body = connection.getresponse().read()
    connection.close()
    return len(json.loads(body))
