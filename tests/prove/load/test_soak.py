"""A week in a minute: questions come and go in every way, and the host dies every hour.

The real bridge and store on real files, with a clock that the test moves and threads inlined.
Nothing is lost, nothing arrives twice, and neither folders nor memory grow.
"""

import asyncio
import gc
import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core import make_core, start
from tests.prove.conftest import SEED
from tests.prove.world import Inline, Tasks, memory_folder

from agent_runner.asking import Option, Question, Request, RequestId
from agent_runner.asking import wire as agent_wire
from pynchy import wire
from pynchy.bridge.deliver import DeliveryLimits
from pynchy.config import LauncherSettings, Settings
from pynchy.errors import MalformedRequest
from pynchy.ipc.leases import Leases
from pynchy.model import GroupName, PendingQuestion, Reply, State
from pynchy.model import RequestId as HostRequestId
from pynchy.testing import FakeChannel, FakeClock, FakeLauncher

pytestmark = pytest.mark.timeout(1_800)

TTL = timedelta(hours=12)
STEP = timedelta(minutes=20)
STEPS_AN_HOUR = 3
LEASE_TTL = timedelta(minutes=30)
TURNS = 40
RESUMABLE, KEPT = GroupName("resumable"), GroupName("kept")
SETTINGS = Settings.model_validate(
    {
        "answer_ttl": TTL,
        "wait_timeout": timedelta(minutes=30),
        "max_open_per_group": 10_000,
        "retention": {
            "history": timedelta(hours=6),
            "responses": timedelta(hours=6),
            "rejected": timedelta(hours=6),
            "rejected_files": 10,
            "audit_size": 128 * 1024,
            "audit_files": 3,
        },
        "groups": {
            RESUMABLE: {
                "launcher": LauncherSettings(
                    command=("unused",), max_runners=1000, attempts=3, backoff=timedelta(seconds=10)
                )
            }
        },
    }
)

# What becomes of a question, and how it must end. Who is "gone" has died when the answer comes.
FATES = {
    "answered": "answered",
    "answered hours later": "answered",
    "answered when gone": "answered",
    "answered when gone, first resume fails": "answered",
    "answered when gone, nobody resumes": "answered",
    "declined": "declined",
    "withdrawn": "withdrawn",
    "defaulted": "defaulted",
    "forgotten": "expired",
    "forgotten when gone": "expired",
}


@dataclass
class Asked:
    """What the model knows of a question that is not closed yet."""

    group: GroupName
    request_id: str
    fate: str
    lease: Path
    acts_at: datetime
    alive: bool = True
    acted: bool = False
    live: int = 0
    late: int = 0

    @property
    def key(self) -> tuple[GroupName, HostRequestId]:
        return (self.group, HostRequestId(self.request_id))


class World:
    """The host's parts over one folder, made again at every start."""

    def __init__(self, folder: Path, clock: FakeClock, launcher: FakeLauncher) -> None:
        self.tasks = Tasks()
        self.leases = Leases(LEASE_TTL.total_seconds(), lambda: clock.now().timestamp())
        limits = DeliveryLimits(timedelta(0), TTL)
        channels = {"local": FakeChannel("local")}
        parts = {"launchers": {RESUMABLE: launcher}, "leases": self.leases, "limits": limits}
        core = make_core(folder, clock, SETTINGS, channels, **parts)
        self.core, self.audit, self.index, self.store = core, core.audit, core.index, core.store
        self.ledger, self.mailboxes, self.tracker = core.ledger, core.mailboxes, core.tracker
        self.expiry, self.ask_handler, self.answers = core.expiry, core.ask_handler, core.answers
        for group in (RESUMABLE, KEPT):
            self.mailboxes.of(group).prepare(wire.host_json(1800))

    async def start(self) -> None:
        """Take up what the last host left."""
        await start(self.core, self.tasks)

    async def stop(self) -> None:
        """Die: every task is cancelled where it is, memory is gone."""
        await self.tasks.cancel()
        self.audit.close()


class Week:
    """Agents and people around a host, hour after hour."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ipc").mkdir()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(Inline())
        # Long past: whatever the disk has stamped itself is seen to need the test's own time.
        self.clock = FakeClock(datetime.now(UTC) - timedelta(days=365))
        self.launcher = FakeLauncher()
        self.chance = random.Random(SEED)  # noqa: S311 - a repeatable choice, not a secret
        self.open: dict[str, Asked] = {}
        self.endings: Counter[str] = Counter()
        self.asked = self.restarts = 0
        self.start()

    def start(self) -> None:
        self.world = World(self.folder, self.clock, self.launcher)
        self.run(self.world.start())

    def restart(self) -> None:
        self.loop.run_until_complete(self.world.stop())
        self.restarts += 1
        self.start()

    def close(self) -> None:
        self.loop.run_until_complete(self.world.stop())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, Any], turns: int = TURNS) -> Any:
        """Do something, and let everything happen that follows from it."""

        async def both() -> Any:
            result = await work
            for _ in range(turns):
                await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(both())

    async def wake(self) -> None:
        """Let every delivery look at once, as each does once a second, and at the sessions."""
        for pending in self.world.index:
            if pending.ending is not None:
                self.world.ledger.notify(pending.key)
        await self.world.tracker.look()

    def hour(self, questions: int) -> None:
        """Let an hour pass."""
        for number in range(STEPS_AN_HOUR):
            for fate in self.chance.choices(list(FATES), k=questions // STEPS_AN_HOUR):
                self.ask(fate)
            if number == 0:
                self.ask_nonsense()
            self.clock.move(STEP)
            self.step()
        self.stamp()
        self.run(self.world.core.retention.tidy())
        self.look_for_losses()

    def step(self) -> None:
        for asked in list(self.open.values()):
            if asked.alive:
                moment = self.clock.now().timestamp()
                os.utime(asked.lease, (moment, moment))
            if not asked.acted and asked.acts_at <= self.clock.now():
                asked.acted = True
                self.act(asked)
        self.run(self.world.expiry.end_due())
        self.run(self.wake())
        self.end_runners()
        for asked in list(self.open.values()):
            if asked.alive:
                self.take_live(asked)
        self.run(self.wake())

    def ask(self, fate: str) -> None:
        resumed = "gone" in fate and "nobody" not in fate
        group = RESUMABLE if resumed else self.chance.choice([RESUMABLE, KEPT])
        group = KEPT if "nobody" in fate else group
        self.asked += 1
        request_id = f"q{self.asked}"
        default = "No" if fate == "defaulted" else None
        question = Question("Deploy?", options=(Option("Yes"), Option("No")), default=default)
        request = Request((question,), request_id=RequestId(request_id), wait_seconds=1800)
        session, lease = f"s{self.asked}", f"l{self.asked}"
        path = self.folder / "ipc" / group / "tasks" / f"{lease}.lease"
        path.write_text(json.dumps({"v": 1, "boot_id": "", "session_id": session}))
        hours = self.chance.randrange(2, 9) if "later" in fate else 0
        acts_at = self.clock.now() + STEP + timedelta(hours=hours)
        self.open[request_id] = Asked(group, request_id, fate, path, acts_at)
        data = agent_wire.encode_request(request, session_id=session, lease=lease)
        self.run(self.hand_over(group, data), turns=10)

    async def hand_over(self, group: GroupName, data: bytes) -> None:
        await self.world.ask_handler.handle(group, wire.read_envelope(data, "x"))

    def ask_nonsense(self) -> None:
        name = f"nonsense{self.asked}.json"
        (self.folder / "ipc" / KEPT / "tasks" / name).write_text("{")
        self.run(self.world.ask_handler.refuse(KEPT, name, MalformedRequest("not JSON"), b"{"))

    def act(self, asked: Asked) -> None:
        """Let the agent or a person do what is the question's fate."""
        if "gone" in asked.fate:
            asked.alive = False
            if self.chance.random() < 0.5:  # an orderly end; otherwise the lease is left behind
                asked.lease.unlink()
        reply = Reply(asked.request_id, "ana", "local", ("Yes",), group=asked.group)
        if asked.fate.startswith("answered"):
            self.run(self.world.answers.answer(reply))
        elif asked.fate == "declined":
            self.run(self.world.answers.decline(reply))
        elif asked.fate == "withdrawn":
            data = agent_wire.encode_about(agent_wire.TYPE_WITHDRAW, RequestId(asked.request_id))
            self.run(self.hand_over(asked.group, data))

    def take_live(self, asked: Asked) -> None:
        """Take the answer as a waiting call does."""
        base = self.folder / "ipc" / asked.group
        response = base / "responses" / f"{asked.request_id}.json"
        if asked.live or not response.exists():
            return
        result = agent_wire.decode_response(response.read_bytes(), RequestId(asked.request_id))
        assert result.outcome == FATES[asked.fate], (asked, result)
        with (base / "tasks" / f"{asked.request_id}.received").open("x"):
            asked.live += 1
        asked.alive = False
        asked.lease.unlink()

    def end_runners(self) -> None:
        """Let every runner that was started do its work, the first of some fail."""
        while living := [runner for runner in self.launcher.runners if not runner.end.done()]:
            for runner in living:
                asked = self.open[runner.launch.request_id]
                assert not asked.alive, "resumed while its agent lives"
                if "fails" in asked.fate and runner.launch.attempt == 1:
                    runner.finish("exit code 1")
                else:
                    asked.late += 1
                    runner.finish()
            self.run(self.wake())
        del self.launcher.runners[:-50]

    def stamp(self) -> None:
        """Give what was written in this hour the test's time, by which retention goes."""
        moment = self.clock.now().timestamp()
        for path in (self.folder / "ipc").rglob("*"):
            if path.is_file() and path.stat().st_mtime > moment + 86_400:
                os.utime(path, (moment, moment))

    def look_for_losses(self) -> None:
        for asked in list(self.open.values()):
            pending = self.found(asked)
            if pending.state is State.CLOSED:
                self.check_end(asked, pending)
                del self.open[asked.request_id]

    def found(self, asked: Asked) -> PendingQuestion:
        pending = self.world.index.get(asked.key)
        pending = pending or self.loop.run_until_complete(self.world.store.find(*asked.key))
        assert pending is not None, f"{asked} is lost"
        return pending

    def check_end(self, asked: Asked, pending: PendingQuestion) -> None:
        assert pending.ending is not None
        assert pending.ending.outcome == FATES[asked.fate], (asked, pending.ending)
        gone = "gone" in asked.fate
        answered = asked.fate.startswith("answered")
        assert asked.live == (not gone), asked
        assert asked.late == (gone and answered and "nobody" not in asked.fate), asked
        self.endings[asked.fate] += 1

    def files(self) -> Counter[str]:
        """Return how many files there are in each kind of folder."""
        paths = (self.folder / "ipc").rglob("*")
        kinds = (path.relative_to(self.folder).parts[2] for path in paths if path.is_file())
        found = Counter(kinds)
        found["audit"] = len(list((self.folder / "audit").iterdir()))
        found["sessions"] = len(list((self.folder / "sessions").rglob("*.json")))
        return found


@pytest.fixture
def week() -> Iterator[Week]:
    folder = Path(tempfile.mkdtemp(prefix="pynchy-soak-", dir=memory_folder()))
    week = Week(folder)
    yield week
    week.close()
    shutil.rmtree(folder)


def test_a_week_with_a_restart_every_hour_loses_nothing_and_leaves_nothing_lying_about(
    week: Week, proof: Any
) -> None:
    hours = proof.choose(sample=24, prove=7 * 24, everything=4 * 7 * 24)
    questions = proof.choose(sample=6, prove=18, everything=30)
    sizes: list[Counter[str]] = []

    for _ in range(hours):
        week.hour(questions)
        sizes.append(week.files())
        week.restart()

    asked = week.asked
    oldest = min((int(each.request_id[1:]) for each in week.open.values()), default=asked)
    assert sum(week.endings.values()) + len(week.open) == asked
    assert (asked - oldest) / questions < 2 * TTL / timedelta(hours=1) + 2, "one never ends"
    proof.report("soak", hours=hours, asked=asked, restarts=week.restarts, **week.endings)
    proof.report("soak", files=dict(sizes[-1]))
    if proof.scale != "sample":
        check_bounded(sizes)


def check_bounded(sizes: list[Counter[str]]) -> None:
    """No folder is fuller at the end than it was in the middle."""
    third = len(sizes) // 3
    for kind in sizes[-1]:
        middle = max(size[kind] for size in sizes[third : 2 * third])
        last = max(size[kind] for size in sizes[2 * third :])
        assert last <= middle * 1.25 + 20, (kind, middle, last)


def test_a_host_that_runs_on_keeps_nothing_of_what_is_closed(week: Week, proof: Any) -> None:
    hours = proof.choose(sample=3, prove=72, everything=7 * 24)
    held: list[Counter[str]] = []

    for _ in range(hours):
        week.hour(18)
        held.append(objects())

    open_questions = len(week.world.index)
    proof.report("soak without restarts", hours=hours, asked=week.asked, open=open_questions)
    proof.report("soak without restarts", **held[-1])
    assert held[-1]["PendingQuestion"] <= open_questions + 5
    assert held[-1]["Lock"] <= open_questions + 5
    assert held[-1]["Task"] <= 3 * open_questions + 5  # one, and two while it is delivered
    assert len(week.world.leases._seen) <= open_questions + 40  # noqa: SLF001 - plain tuples


def objects() -> Counter[str]:
    """Return how many objects there are of the kinds that a host makes for each question."""
    gc.collect()
    kinds = (asyncio.Lock, asyncio.Task, PendingQuestion)
    found = [type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds)]
    return Counter(found)
