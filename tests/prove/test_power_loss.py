"""Each durable step is durable for the right reason: cut the power anywhere, and look what is left.

Real questions run through the real bridge over a recording file layer. For every moment, trees are
laid out with what surely survives and any part of what may, a host is started on each, and what had
been promised by then must hold.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.prove.recorder import Change, Cut, Recorder, lay_out, survivors
from tests.prove.world import ANSWER_TTL, RESUMABLE, WAIT, Inline, World, memory_folder

from agent_runner.asking import Option, Question, Request, RequestId
from agent_runner.asking import wire as agent_wire
from pynchy.errors import DuplicateRequest
from pynchy.model import Ending, GroupName, Reply
from pynchy.model import RequestId as HostRequestId
from pynchy.testing import FakeClock, FakeLauncher

GROUP = GroupName(RESUMABLE)
Q1 = HostRequestId("q1")


@dataclass(frozen=True)
class Recorded:
    """The request was removed: the question must be known."""


@dataclass(frozen=True)
class Ended:
    """Somebody was told this ending: it must be the one."""

    ending: Ending


class Stage:
    """One question played on a recorded disk."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self.recorder = recorder
        self.launcher = FakeLauncher()
        self.clock = FakeClock()
        self.world = World(folder, self.launcher, self.clock)
        self.mailbox = folder / "ipc" / GROUP

    async def ask(self) -> None:
        await self.world.start()
        question = Question("Deploy?", options=(Option("Yes"), Option("No")))
        request = Request((question,), request_id=RequestId(Q1), wait_seconds=WAIT.total_seconds())
        path = self.mailbox / "tasks/q1.json"
        path.write_bytes(agent_wire.encode_request(request, session_id="s1", lease="gone"))
        self.recorder.was_written_by_an_agent(path)
        await self.world.take(GROUP, Q1, path.read_bytes())
        self.world.mailboxes.of(GROUP).drop_request("q1.json")
        self.recorder.promise(Recorded())
        await self.world.rest()

    async def answer(self) -> None:
        pending = await self.world.answers.answer(Reply(Q1, "ana", "local", ("1",)))
        assert pending.ending is not None
        self.recorder.promise(Ended(pending.ending))
        await self.world.rest()

    async def stop(self) -> None:
        await self.world.stop()


async def answered_live(stage: Stage) -> None:
    lease = stage.mailbox / "tasks/gone.lease"
    await stage.ask()
    lease.write_text('{"v": 1, "boot_id": ""}')
    await stage.answer()
    receipt = stage.mailbox / "tasks/q1.received"
    receipt.touch()
    stage.recorder.was_written_by_an_agent(receipt)
    await stage.world.rest()


async def answered_late(stage: Stage) -> None:
    await stage.ask()
    await stage.answer()
    stage.launcher.runners[0].finish()
    await stage.world.rest()


async def resumed_in_vain(stage: Stage) -> None:
    await stage.ask()
    await stage.answer()
    stage.launcher.runners[0].finish("exit code 1")
    await stage.world.rest()
    stage.clock.move(ANSWER_TTL / 100)
    await stage.world.rest()
    stage.launcher.runners[1].finish("exit code 1")
    await stage.world.rest()


async def expired(stage: Stage) -> None:
    await stage.ask()
    stage.clock.move(ANSWER_TTL)
    await stage.world.expiry.end_due()
    ending = stage.world.ledger.get((GROUP, Q1)).ending
    assert ending is not None
    stage.recorder.promise(Ended(ending))
    await stage.world.rest()


SCENARIOS = [answered_live, answered_late, resumed_in_vain, expired]
Scenario = Callable[[Stage], Awaitable[None]]


@contextmanager
def made_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pynchy-power-", dir=memory_folder()))
    (folder / "ipc").mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def play(scenario: Scenario, monkeypatch: pytest.MonkeyPatch, **flaw: Any) -> Recorder:
    """Play the scenario to its end on a recorded disk."""
    with made_folder() as folder, monkeypatch.context() as patched:
        recorder = Recorder(folder, **flaw)
        patched.setattr("pynchy.safe_folder.os", recorder)
        recorder.was_made(folder / "ipc")

        async def whole() -> None:
            asyncio.get_running_loop().set_default_executor(Inline())
            stage = Stage(folder, recorder)
            await scenario(stage)
            await stage.stop()

        asyncio.run(whole())
    return recorder


def violation(recorder: Recorder, cut: Cut, changes: list[Change], *, keep: bool) -> str | None:
    """Start a host on what is left; return what is wrong, if anything is."""
    with made_folder() as folder:
        lay_out(cut, changes, recorder.root, folder, keep_unsynced=keep)

        async def look() -> str | None:
            asyncio.get_running_loop().set_default_executor(Inline())
            async with started(folder) as world:
                return await judge(world, cut)

        return asyncio.run(look())


class started:  # noqa: N801 - reads as what it does
    """A host on the folder, stopped in the end."""

    def __init__(self, folder: Path) -> None:
        self._world = World(folder, FakeLauncher(), FakeClock())

    async def __aenter__(self) -> World:
        await self._world.start()
        return self._world

    async def __aexit__(self, *_exc: object) -> None:
        await self._world.stop()


async def judge(world: World, cut: Cut) -> str | None:
    left = world.folder / "ipc" / GROUP / "tasks/q1.json"
    if left.exists():
        with suppress(DuplicateRequest):
            await world.take(GROUP, Q1, left.read_bytes())
    await world.rest()
    if world.store.damaged:
        return f"damaged: {world.store.damaged}"
    found = world.index.get((GROUP, Q1)) or await world.store.find(GROUP, Q1)
    for promise in cut.promises:
        if found is None:
            return "the question is lost"
        if isinstance(promise, Ended) and found.ending != promise.ending:
            return f"the ending is {found.ending}, not {promise.ending}"
    return None


Point = tuple[Cut, list[Change], bool]


def points_of(recorder: Recorder) -> list[Point]:
    return [(cut, s, keep) for cut in recorder.cuts for s, keep in survivors(cut)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_what_was_promised_holds_after_any_power_cut(
    scenario: Scenario, proof: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = play(scenario, monkeypatch)
    most = proof.choose(sample=60, prove=2_500, everything=10**9)
    picked = proof.pick(
        f"power loss, {scenario.__name__}",
        points_of(recorder),
        most,
        stratum=lambda point: (point[0].after, len(point[0].promises)),
    )

    for cut, changes, keep in picked:
        wrong = violation(recorder, cut, changes, keep=keep)
        assert wrong is None, f"after {cut.after}, unsynced content kept: {keep}: {wrong}"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_without_the_fsync_of_a_kind_a_promise_breaks(
    kind: str, proof: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = play(answered_live, monkeypatch, skip_fsync_of=kind)
    points = [p for p in points_of(recorder) if p[0].promises]
    picked = proof.pick(f"power loss, no fsync of a {kind}", points, 200, lambda p: p[0].after)

    broken = (violation(recorder, cut, changes, keep=keep) for cut, changes, keep in picked)

    assert any(broken), "nothing broke: this fsync would be there for no reason"
