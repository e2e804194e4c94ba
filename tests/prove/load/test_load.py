"""A thousand agents wait at once, ten thousand questions are open, a hundred are answered a second.

Answers come at a steady rate whether or not the host keeps up, and a latency is counted from the
moment at which the answer was due.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host
from tests.prove.load.people import Answered, People, Scales, opened, patiently, percentile

AGENTS = Path(__file__).with_name("agents.py")
PROCESSES = 2
# More than the whole test may take.
MAX_SECONDS = 1_800
SETTINGS = """
requests_per_second = 10000
request_burst = 20000
wait_timeout = "1h"
"""

pytestmark = pytest.mark.timeout(MAX_SECONDS)


@dataclass(frozen=True, slots=True)
class Size:
    groups: int
    agents: int
    open_questions: int
    per_second: int
    seconds: int


SAMPLE = Size(groups=3, agents=30, open_questions=60, per_second=20, seconds=2)
PROVE = Size(groups=50, agents=1_000, open_questions=10_000, per_second=100, seconds=75)
ALL = Size(groups=50, agents=1_000, open_questions=10_000, per_second=100, seconds=600)


async def test_each_of_many_agents_gets_its_own_answer_and_the_host_does_not_grow(
    start_host: StartHost, proof: Any, tmp_path: Path
) -> None:
    size: Size = proof.choose(sample=SAMPLE, prove=PROVE, everything=ALL)
    host = await start_host(SETTINGS)
    assert host.process is not None
    begun = time.monotonic()
    fill(host, size.open_questions - size.agents)
    await opened(host, size.open_questions - size.agents)
    filled = time.monotonic() - begun
    people, gone, stop = People(host), threading.Event(), tmp_path / "stop"

    with people.watching("team-"), agents(host, size, tmp_path, stop) as processes:
        await opened(host, size.open_questions)
        with Scales(host.process.pid) as scales:
            await asyncio.to_thread(people.answer_steadily, size.per_second, size.seconds)
        stop.touch()
        rest = asyncio.create_task(asyncio.to_thread(people.answer_the_rest, gone))
        try:
            await patiently(lambda: all(p.poll() is not None for p in processes), "their end")
        finally:
            gone.set()
            await rest

    received = read_all(tmp_path)
    assert {process.returncode for process in processes} == {0}
    check_nothing_is_lost(host, people.answered, received)
    await opened(host, size.open_questions - size.agents)
    steady = people.answered[: int(size.per_second * size.seconds) - people.starved]
    proof.report("load", **asdict(size), starved=people.starved, streams=people.streams)
    proof.report("load", recorded_per_second=round((size.open_questions - size.agents) / filled))
    proof.report("load", cpu_ms_per_answer=round(1_000 * scales.cpu_seconds / len(steady), 1))
    proof.report("load", **latencies(steady, received), **weights(scales))
    if proof.scale != "sample":
        check_nothing_leaks(scales)


def fill(host: Host, count: int) -> None:
    """Ask questions that nobody waits for."""
    for number in range(count):
        group = host.group(f"idle-{number % 20}") / "tasks"
        group.mkdir(parents=True, exist_ok=True)
        body = {"v": 1, "type": "ask_user:ask", "request_id": f"idle-{number}"}
        body["questions"] = [{"question": f"What about {number}?"}]
        (group / ".new").write_text(json.dumps(body))
        (group / ".new").rename(group / f"idle-{number}.json")


class agents:  # noqa: N801 - used as a context
    """Processes full of agents, ended when the test is over."""

    def __init__(self, host: Host, size: Size, folder: Path, stop: Path) -> None:
        names = [f"team-{n}" for n in range(size.groups)]
        shares = [f"{name}={size.agents // size.groups}" for name in names]
        for name in names:
            for part in ("tasks", "responses", "input"):
                (host.group(name) / part).mkdir(parents=True, exist_ok=True)
        self._commands = [
            [sys.executable, AGENTS, host.data / "ipc", folder / f"received-{n}", stop, *share]
            for n in range(PROCESSES)
            if (share := shares[n::PROCESSES])
        ]
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> list[subprocess.Popen[bytes]]:
        self._processes = [subprocess.Popen(command) for command in self._commands]
        return self._processes

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def read_all(folder: Path) -> list[tuple[str, float, bool]]:
    lines = [line for path in folder.glob("received-*") for line in path.read_text().splitlines()]
    return [tuple(json.loads(line)) for line in lines]


def check_nothing_is_lost(
    host: Host, answered: list[Answered], received: list[tuple[str, float, bool]]
) -> None:
    """Every answer was acknowledged, arrived once, at the one who asked, and is in history."""
    acknowledged = [answer.request_id for answer in answered]
    assert {answer.status for answer in answered} == {200}
    assert len(acknowledged) == len(set(acknowledged))
    arrived = [request_id for request_id, _, _ in received]
    assert len(arrived) == len(set(arrived))
    assert set(arrived) == set(acknowledged)
    assert all(right for _, _, right in received)
    outcomes = {p.stem: p for p in (host.data / "ipc").glob("team-*/outcomes/*.json")}
    assert set(outcomes) == set(acknowledged)


def check_nothing_leaks(scales: Scales) -> None:
    """The last third of the time weighs what the middle third weighed."""
    _, middle, last = scales.thirds("rss_kib")
    assert last < middle * 1.05 + 4_096, (middle, last)
    for what in ("descriptors", "threads"):
        _, middle, last = scales.thirds(what)
        assert last < middle + 8, (what, middle, last)


def latencies(steady: list[Answered], received: list[tuple[str, float, bool]]) -> dict[str, float]:
    """Return how long it took from when an answer was due until it was safe, and in its agent."""
    due = {answer.request_id: answer.due for answer in steady}
    times = {
        "acknowledged": [answer.acknowledged - answer.due for answer in steady],
        "arrived": [at - due[request_id] for request_id, at, _ in received if request_id in due],
    }
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    # A negative time, or one of days, is that of two clocks.
    assert all(0 <= seconds < MAX_SECONDS for seconds in times["arrived"])
    return {
        f"{what}_{name}_ms": percentile(values, share)
        for what, values in times.items()
        for name, share in shares.items()
    }


def weights(scales: Scales) -> dict[str, list[int]]:
    """Return what the host weighed in each third of the time."""
    kinds = ("rss_kib", "descriptors", "threads")
    return {kind: [round(each) for each in scales.thirds(kind)] for kind in kinds}
