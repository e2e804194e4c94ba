"""How long a status bar waits for `pynchy status --line`, and how cheap it is for a full host.

The limit is the bare interpreter: it starts, does nothing and ends. The host behind it has many
open questions.
"""

import asyncio
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.figures import Line, Sample, Unit, line
from tests.bench.recovery import Start, fill

from pynchy.data_dir import DataFolder
from pynchy.status_line import get_object

OPEN = 10_000
QUICK_OPEN = 100
ROUNDS = 21
QUICK_ROUNDS = 2
CALLS = 50
_PYNCHY = str(Path(sys.executable).with_name("pynchy"))
_MAX_SECONDS = 60.0


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    size, rounds = (QUICK_OPEN, QUICK_ROUNDS) if quick else (OPEN, ROUNDS)
    data = DataFolder(folder / "data")
    settings = folder / "pynchy.toml"
    settings.write_text("[http]\nport = 0\n")
    asyncio.run(fill(data, size))
    serve = [_PYNCHY, "serve", "--config", str(settings), "--data-dir", str(data.path)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
        try:
            assert host.stdout is not None
            host.stdout.readline()
            return _lines(data, size, rounds)
        finally:
            host.terminate()


def _lines(data: DataFolder, size: int, rounds: int) -> list[Line]:
    ours = [_PYNCHY, "status", "--line", "--data-dir", str(data.path)]
    bare = [sys.executable, "-c", "pass"]
    _run(ours, f"🔔 {size}\n")  # fills the caches
    pairs = [(_run(ours, f"🔔 {size}\n"), _run(bare, "")) for _ in range(rounds)]
    spawned, started = zip(*pairs, strict=True)
    answered = Sample([_ask(data) for _ in range(CALLS)])
    what, ms = f"pynchy status --line, {size:,} open (limit: python -c pass)", Unit.MILLISECONDS
    elapsed, least = (Sample([run.elapsed for run in side]) for side in (spawned, started))
    used, least_used = (Sample([run.processor for run in side]) for side in (spawned, started))
    return [
        line("g1", what, ms, elapsed, least, at_most=150),
        line("g2", f"{what}: processor time", ms, used, least_used),
        line("g3", f"GET /api/status, {size:,} open", ms, answered),
    ]


def _run(command: list[str], printed: str) -> Start:
    before, started = _children(), time.perf_counter()
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    elapsed = time.perf_counter() - started
    if found.stdout.decode() != printed:
        raise RuntimeError(f"{command} printed {found.stdout!r}")
    return Start(elapsed * 1_000, (_children() - before) * 1_000)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _ask(data: DataFolder) -> float:
    started = time.perf_counter()
    address = data.host()
    get_object(address.url, address.token, "/api/status", _MAX_SECONDS)
    return (time.perf_counter() - started) * 1_000
