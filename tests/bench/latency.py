"""How long an accepted answer takes to the coroutine that waits for it.

Ours: a real host and a real waiter, each in a process of its own, since that is how they run. The
limit, in the same rounds and by the same agent process: a bare durable write (temporary file,
fsync, rename, fsync of the folder) and raw inotify. All processes share the monotonic clock.
"""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.figures import Line, Sample, Unit, line

from pynchy.data_dir import DataFolder, HostAddress

GROUP = "bench"
ROUNDS = 300
QUICK_ROUNDS = 5
WARM_UP = 10
SETTLE_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Round:
    """The moments of one answer, in nanoseconds."""

    request_id: str
    posted: int
    resumed: int
    returned: int


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    rounds = QUICK_ROUNDS if quick else ROUNDS
    data = DataFolder(folder / "data")
    raw_folder = folder / "raw"
    raw_folder.mkdir()
    data.make()
    for name in ("tasks", "responses", "input"):
        (data.ipc / GROUP / name).mkdir(parents=True)
    with _process("timed_host", str(data.path)) as host:
        _read(host)
        with _process("waiting_agent", str(data.ipc / GROUP), str(raw_folder)) as agent:
            person = _Person(data.host())
            raw, ours = [], []
            for number in range(rounds + WARM_UP):
                raw.append(_raw_round(agent, raw_folder / f"{number}.json"))
                ours.append(_our_round(agent, person, f"round-{number}"))
        accepted = _accepted(host)
    return _lines(raw[WARM_UP:], ours[WARM_UP:], accepted)


def _lines(raw: list[int], ours: list[Round], accepted: dict[str, int]) -> list[Line]:
    limit = _sample(raw)
    return [
        line(
            "a1",
            "answer accepted → waiting coroutine resumed",
            Unit.MICROSECONDS,
            _sample([r.resumed - accepted[r.request_id] for r in ours]),
            limit,
            at_most_times=3,
        ),
        line(
            "a2",
            "answer accepted → ask() returns, receipt durable",
            Unit.MICROSECONDS,
            _sample([r.returned - accepted[r.request_id] for r in ours]),
            limit,
        ),
        line(
            "a3",
            "HTTP POST sent → waiting coroutine resumed",
            Unit.MICROSECONDS,
            _sample([r.resumed - r.posted for r in ours]),
            limit,
        ),
    ]


def _sample(nanoseconds: list[int]) -> Sample:
    return Sample([value / 1_000 for value in nanoseconds])


def _raw_round(agent: subprocess.Popen[str], path: Path) -> int:
    _write(agent, f"raw {path.name}")
    _read(agent)
    time.sleep(SETTLE_SECONDS)
    started = time.monotonic_ns()
    publish(path, b'{"v": 1, "outcome": "answered", "answers": [{"text": "this one"}]}')
    return int(_read(agent)) - started


def publish(path: Path, data: bytes) -> None:
    """Write a file durably, with as few calls as that takes."""
    temporary = path.with_name(f".{path.name}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    temporary.rename(path)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def _our_round(agent: subprocess.Popen[str], person: "_Person", request_id: str) -> Round:
    _write(agent, f"ask {request_id}")
    person.wait_until_shown(request_id)
    posted = time.monotonic_ns()
    person.answer(request_id)
    resumed, returned = _read(agent).split()
    return Round(request_id, posted, int(resumed), int(returned))


def _accepted(host: subprocess.Popen[str]) -> dict[str, int]:
    output, _ = host.communicate()
    pairs = [text.split() for text in output.splitlines()]
    return {request_id: int(moment) for request_id, moment in pairs}


class _Person:
    """Somebody with the token and a connection that is open already."""

    def __init__(self, address: HostAddress) -> None:
        parts = urlsplit(address.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self._headers = {"authorization": f"Bearer {address.token}"}

    def wait_until_shown(self, request_id: str) -> None:
        while True:
            status, body = self._call("GET", f"/api/questions/{request_id}")
            if status == http.client.OK and json.loads(body)["state"] == "open":
                time.sleep(SETTLE_SECONDS)
                return
            time.sleep(0.001)

    def answer(self, request_id: str) -> None:
        body = json.dumps({"by": "bench", "values": ["this one"]})
        status, text = self._call("POST", f"/api/questions/{request_id}/answer", body)
        if status != http.client.OK:
            raise RuntimeError(text)

    def _call(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, response.read()


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if sys.exc_info()[0] is not None:
                process.kill()


def _write(process: subprocess.Popen[str], command: str) -> None:
    assert process.stdin is not None
    process.stdin.write(command + "\n")
    process.stdin.flush()


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline()
    if not text:
        raise RuntimeError("a process of the benchmark has ended")
    return text
