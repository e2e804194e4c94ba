"""Hit the host at every call that changes the disk, and hold it to every promise.

For each scenario a run without a fault counts the calls; then, for each of them, one run kills the
host there, one kills the next host as well, one lets the call fail with EIO and one with ENOSPC. A
killed host is started again and somebody else answers; one that lives has to finish by itself.

One run again: PROVE=1 CRASH_POINT=late/worker/fsync/3/EIO python -m pytest tests/prove/crash
Every point of some scenarios: PROVE=all CRASH_SCENARIOS=late,run python -m pytest tests/prove/crash
"""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.prove.conftest import SEED, Proof
from tests.prove.crash import checks
from tests.prove.crash.foreign import FOREIGN
from tests.prove.crash.may_i import MAY_I
from tests.prove.crash.scenarios import QUESTIONS, Run, Scenario
from tests.prove.crash.stage import (
    FAULTS,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    REQUEST_ID,
    Broken,
    Json,
    Point,
    Stage,
    Tracer,
    until,
)

SCENARIOS = QUESTIONS | MAY_I | FOREIGN
AT_ONCE = int(os.environ.get("CRASH_AT_ONCE", "2"))
MAX_AT_PROVE = int(os.environ.get("CRASH_POINTS", "1000"))
ONLY = os.environ.get("CRASH_POINT", "")
NAMES = os.environ.get("CRASH_SCENARIOS", ",".join(SCENARIOS)).split(",")
# Calls that another scenario, or the weather, may have made fewer of.
MAX_UNREACHED = 0.2

pytestmark = pytest.mark.timeout(4 * 3600)


@dataclass
class Told:
    """What came of one run."""

    point: Point | None
    hit: str = ""
    hit_again: str = ""
    broken: str = ""
    seconds: float = 0.0


@pytest.fixture(scope="session", autouse=True)
def _ptrace(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Say so where the sweep is not possible; that is a failure where it has to be."""
    why = _why_no_ptrace(tmp_path_factory.mktemp("ptrace"))
    if why and os.environ.get("CI") == "true":
        pytest.fail(f"the crash sweep is not possible here: {why}")
    if why:
        pytest.skip(f"the crash sweep is not possible here: {why}")


def _why_no_ptrace(folder: Path) -> str:
    if not shutil.which("strace"):
        return "there is no strace; install it (Debian: apt install strace)"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as sleeper:
        try:
            tracer = Tracer(sleeper.pid, folder / "trace", "fsync")
            asyncio.run(tracer.attached())
            asyncio.run(tracer.detach())
        except RuntimeError as exc:
            return str(exc)
        finally:
            sleeper.kill()
    return ""


async def play(name: str, point: Point | None, base: Path) -> tuple[Stage, Told]:
    """Play a scenario with a host that is hit at the point; None: count its calls."""
    base.mkdir(parents=True)
    kind = SCENARIOS[name]
    stage = Stage(base, kind.settings(str(base)))
    scenario = kind(stage)
    told = Told(point)
    began = time.monotonic()
    try:
        await _play(scenario, point, told)
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is told with its point
        told.broken = _tell(exc, name, told, stage)
    finally:
        await scenario.tear_down()
        await stage.kill()
        await stage.detach()
    told.seconds = time.monotonic() - began
    return stage, told


async def _play(scenario: Scenario, point: Point | None, told: Told) -> None:
    stage = scenario.stage
    await scenario.set_up()
    await (stage.count() if point is None else stage.aim(point))
    await scenario.act()
    if not _needs_a_person(scenario):
        await scenario.reach(scenario.goal, "the host to finish by itself")
    await stage.detach()
    told.hit = stage.hit()
    if told.hit and point and point.kills:
        await until(stage.is_dead, "the host that was killed to be gone")
        scenario.look_at_the_dead()
        if point.fault == "TWICE":
            told.hit_again = await _kill_the_next(scenario, point.second())
    if stage.is_dead():
        await stage.start()
    if not scenario.ends_by_itself():
        await _answer_as_somebody_else(scenario)
    await scenario.finish()
    await _check(scenario, point, told.hit)


async def _kill_the_next(scenario: Scenario, point: Point) -> str:
    """Start a host that dies at the point, if it gets there before it has nothing to do."""
    stage = scenario.stage
    await stage.fork(gated=True)
    await stage.aim(point)
    stage.open_gate()
    if await stage.is_ready():
        await scenario.reach(scenario.rests, "the next host to take up the question")
    await stage.detach()
    if hit := stage.hit():
        await until(stage.is_dead, "the next host to be gone")
    return hit


def _needs_a_person(scenario: Scenario) -> bool:
    """True if whoever answered was told that it did not work, and it did not."""
    clicks = scenario.stage.clicks
    return bool(clicks) and clicks[-1].status >= 500 and not scenario.stage.is_over()


async def _answer_as_somebody_else(scenario: Scenario) -> None:
    if not scenario.questions:
        for who in ("ben", "cy")[: scenario.approvals_needed]:
            await scenario.stage.click(who, scenario.choice)
        return
    if len(scenario.questions) == 1:
        await scenario.stage.click("ben", "No")
        return
    for number in range(1, len(scenario.questions) + 1):
        await scenario.stage.click("ben", "No", question=number)


async def _check(scenario: Scenario, point: Point | None, hit: str) -> None:
    stage = scenario.stage
    killed = point is None or point.kills
    if isinstance(scenario, Run):
        sessions = await scenario.sessions()
        checks.check_started(stage, scenario.status, scenario.told, sessions)
    elif scenario.outcome == "refused":
        checks.check_refusal(stage, hit=hit, killed=killed)
    elif scenario.by_mailbox:
        await stage.click("eve", "Yes")
        result = None
        if scenario.call is not None:
            result = await asyncio.wait_for(scenario.call, PATIENCE_SECONDS)
        status, closed = await stage.http("GET", f"/api/questions/{REQUEST_ID}")
        checks.require(status == 200, "a closed question is found", status, closed)
        checks.check_question(scenario, result, hit=hit, killed=killed)
    await scenario.look_at_the_end(faultless=not hit)
    if not killed and "events.jsonl" in hit:
        await stage.stop()  # it may rightly complain of a line that it could not write
    else:
        await _be_well(stage)
        await stage.stop()
    if killed:
        checks.require("Traceback" not in stage.log(), "a host that was killed is no trouble")
    before = len(stage.log())
    await stage.start()
    await until(lambda: "event=group.joined" in stage.log()[before:], "the last host to look")
    health = await _be_well(stage)
    _, pending = await stage.http("GET", "/api/pending")
    checks.check_rest(stage, health, pending)


async def _be_well(stage: Stage) -> Json:
    """Return the host's health once it has no problem; it may take a look to find that out."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        status, health = await stage.http("GET", "/healthz")
        if status == 200 and not health["problems"]:
            return dict(health)
        late = time.monotonic() > deadline
        checks.require(not late, "the host is well when the fault is over", status, health)
        await asyncio.sleep(PAUSE_SECONDS)


def _tell(exc: Exception, name: str, told: Told, stage: Stage) -> str:
    what = str(exc) if isinstance(exc, Broken) else f"{type(exc).__name__}: {exc}"
    where = told.point or name
    lines = [
        f"{where}: {what}",
        f"hit: {told.hit or stage.hit() or 'nothing'}; then {told.hit_again or 'nothing'}",
        f"seed: {SEED}",
        f"again: PROVE=1 CRASH_POINT={where} .venv/bin/python -m pytest tests/prove/crash",
        f"state: {stage.state()}",
        *map(str, [*stage.clicks, *stage.cards()]),
        "log:",
        stage.log()[-4_000:],
    ]
    return "\n  ".join(lines)


@dataclass
class Sweep:
    """Runs many points side by side."""

    folder: Path
    told: list[Told] = field(default_factory=list)

    async def count(self, name: str) -> list[Point]:
        """Return every point of the scenario, from a run without a fault."""
        stage, told = await play(name, None, self.folder / f"{name}-count")
        if told.broken:
            pytest.fail(f"broken without a fault: {told.broken}", pytrace=False)
        return [
            Point(name, thread, call, number, fault)
            for thread, tracer in stage.tracers.items()
            for call, most in sorted(tracer.counts().items())
            for number in range(1, most + 1)
            for fault in FAULTS
        ]

    async def run(self, points: list[Point]) -> list[Told]:
        """Run the points, some at once."""
        queue = iter(points)

        async def work() -> None:
            for point in queue:
                base = self.folder / str(point).replace("/", "-")
                _, told = await play(point.scenario, point, base)
                self.told.append(told)
                if not told.broken:
                    shutil.rmtree(base, ignore_errors=True)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(work())
        return self.told


async def sweep_all(proof: Proof, tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    everything = [point for name in NAMES for point in await sweep.count(name)]
    most = proof.choose(
        sample=min(60, MAX_AT_PROVE), prove=MAX_AT_PROVE, everything=len(everything)
    )
    points = proof.pick(
        "crash sweep", everything, most, lambda p: (p.scenario, p.thread, p.call, p.fault)
    )
    began = time.monotonic()

    told = await sweep.run(points)

    _report(proof, everything, told, seconds=round(time.monotonic() - began))
    broken = [t.broken for t in told if t.broken]
    if broken:
        pytest.fail(f"{len(broken)} of {len(told)} runs\n\n" + "\n\n".join(broken), pytrace=False)
    unreached = [t for t in told if not t.hit]
    assert len(unreached) <= MAX_UNREACHED * len(told), [str(t.point) for t in unreached]


def _report(proof: Proof, everything: list[Point], told: list[Told], seconds: int) -> None:
    figures = {"hit": sum(bool(t.hit) for t in told), "broken": sum(bool(t.broken) for t in told)}
    twice = sum(bool(t.hit_again) for t in told)
    proof.report("crash sweep", **figures, killed_twice=twice, seconds=seconds)
    for name in NAMES:
        mine = [t for t in told if t.point and t.point.scenario == name]
        proof.report(
            f"crash sweep: {name}",
            tried=len(mine),
            of=sum(point.scenario == name for point in everything),
            hit=sum(bool(t.hit) for t in mine),
            broken=sum(bool(t.broken) for t in mine),
        )


if ONLY:

    async def test_one_point_again(tmp_path: Path) -> None:
        name, slash, _ = ONLY.partition("/")
        point = Point.parse(ONLY) if slash else None

        _, told = await play(name, point, tmp_path / "run")

        if told.broken:
            pytest.fail(told.broken, pytrace=False)

else:

    async def test_a_host_that_is_hit_anywhere_keeps_every_promise(
        proof: Proof, tmp_path: Path
    ) -> None:
        await sweep_all(proof, tmp_path)
