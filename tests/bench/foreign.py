"""What it costs to follow foreign agents, and how soon what they wait for is seen.

At rest: servers that are played here, with sessions that do nothing; the share of a processor that
the host takes. The limit is the same host that follows none. Then a real OpenCode, if it is
installed: from the moment that its own event stream tells of a permission until `GET /api/agents`
has it.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from tests.agents.opencode_server import OpenCode
from tests.agents.programs import PROGRAMS, Program
from tests.agents.support import GROUP, Stage
from tests.bench.figures import Line, Sample, Unit, line
from tests.standins.models import CallTool, Say
from tests.standins.opencode import OpenCodeStandIn

from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder

SERVERS = 5
SESSIONS = 10
ROUNDS = 5
QUICK_ROUNDS = 1
SECONDS = 10.0
QUICK_SECONDS = 1.0
PERMISSIONS = 20
QUICK_PERMISSIONS = 2
AT_MOST_PERCENT = 3
AT_MOST_MS = 100
_PYNCHY = str(Path(sys.executable).with_name("pynchy"))
_WAIT_SECONDS = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    return [*_at_rest(folder, quick=quick), *_until_seen(folder, quick=quick)]


def _at_rest(folder: Path, *, quick: bool) -> list[Line]:
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    with _played() as urls:
        table = f"group = 'team'\nurls = {json.dumps(urls)}\n"
        followed = f"[groups.team]\n[sources.opencode]\n{table}"
        with _serving(folder / "with", followed) as ours, _serving(folder / "without", "") as bare:
            _until(lambda: len(_rows(ours[1])) == SERVERS * SESSIONS, "all sessions to be seen")
            pairs = [(_share(ours[0], seconds), _share(bare[0], seconds)) for _ in range(rounds)]
    mine, least = (Sample(values) for values in zip(*pairs, strict=True))
    what = f"host at rest, {SERVERS * SESSIONS} sessions on {SERVERS} servers (limit: none)"
    return [line("l1", what, Unit.PERCENT, mine, least, at_most=AT_MOST_PERCENT)]


@contextmanager
def _played() -> Iterator[list[str]]:
    """Play the servers in a thread of their own, and return their addresses."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers = [OpenCodeStandIn() for _ in range(SERVERS)]
    try:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.start(), loop).result()
            for number in range(SESSIONS):
                server.session(f"Session {number}")
        yield [server.url for server in servers]
    finally:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def _serving(folder: Path, settings: str) -> Iterator[tuple[int, DataFolder]]:
    """Run a host, and return its process and data folder."""
    folder.mkdir()
    data, file = DataFolder(folder / "data"), folder / "pynchy.toml"
    file.write_text(f"{settings}[http]\nport = 0\n")
    serve = [_PYNCHY, "serve", "--config", str(file), "--data-dir", str(data.path)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
        try:
            assert host.stdout is not None
            host.stdout.readline()
            yield host.pid, data
        finally:
            host.terminate()


def _share(pid: int, seconds: float) -> float:
    """Return how much of one processor the process takes, in percent."""
    before, started = _processor(pid), time.monotonic()
    time.sleep(seconds)
    return (_processor(pid) - before) / (time.monotonic() - started) * 100


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _rows(data: DataFolder) -> list[Json]:
    return [row for row in HostClient.of(data).agents() if row["source"] == "opencode"]


def _until_seen(folder: Path, *, quick: bool) -> list[Line]:
    installed = [p for p in PROGRAMS if p.agent == "opencode" and p.is_installed]
    if not installed:
        print("skipped: no OpenCode is installed (make test-agents)", file=sys.stderr)  # noqa: T201 - progress
        return []
    place = folder / "real"
    place.mkdir()
    count = QUICK_PERMISSIONS if quick else PERMISSIONS
    return asyncio.run(_see_permissions(installed[-1], place, count))


async def _see_permissions(program: Program, folder: Path, count: int) -> list[Line]:
    stage = Stage(program, folder)
    stage.model.start()
    server = OpenCode(stage)
    try:
        env = stage._environ()  # noqa: SLF001
        await server.start(env)
        touch = CallTool("bash", {"command": "touch it", "description": "make a file"})
        script = [part for _ in range(count + 1) for part in ([touch], [Say("Fine.")])]
        settings = f"[sources.opencode]\nurls = ['{server.url}']\ngroup = '{GROUP}'\nforward = []\n"
        await stage.open(*script, settings=settings)
        delays = [await asyncio.to_thread(_delay, stage, server) for _ in range(count + 1)]
    finally:
        server.kill()
        stage.close()
    what = "permission on OpenCode's stream → in GET /api/agents"
    # The first is not counted.
    return [line("l2", what, Unit.MILLISECONDS, Sample(delays[1:]), at_most=AT_MOST_MS)]


def _delay(stage: Stage, server: OpenCode) -> float:
    """Let a session want something, and return how much later than on the stream it is seen."""
    told: Queue[float] = Queue()
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_WAIT_SECONDS)
    stream.request("GET", "/event")
    reply = stream.getresponse()

    def listen() -> None:
        for raw in reply:
            if b'"permission.asked"' in raw:
                told.put(time.monotonic())
                return

    thread = threading.Thread(target=listen)
    thread.start()
    server.prompt(server.new_session())
    seen = _until(lambda: _is_asked(stage), "the permission to be seen")
    delay = seen - told.get(timeout=_WAIT_SECONDS)
    [waiting] = server.permissions()
    server.call("POST", f"/permission/{waiting['id']}/reply", {"reply": "once"})
    _until(lambda: not _is_asked(stage), "the permission to be over")
    thread.join()
    stream.close()
    return delay * 1_000


def _is_asked(stage: Stage) -> bool:
    rows = stage.host.http("GET", "/api/agents").body
    return any(row["state"] == "permission" for row in rows)


def _until(look: Callable[[], bool], what: str) -> float:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not look():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.001)
    return time.monotonic()
