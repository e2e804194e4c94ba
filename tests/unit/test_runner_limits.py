"""What an agent asks brings back no more runners than its group may have, and none unwanted."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core import make_core, start
from tests.waiting import until

from pynchy import wire
from pynchy.aio import cancelled_at_end
from pynchy.bridge.deliver import DeliveryLimits
from pynchy.bridge.resume import STOPPED, UNKNOWN_SESSION
from pynchy.config import Settings
from pynchy.core import Core
from pynchy.launchers.base import Launch
from pynchy.model import (
    DeliveryPath,
    GroupName,
    Option,
    PendingQuestion,
    Question,
    Reply,
    RequestId,
    SessionId,
    State,
)
from pynchy.outcome_text import delivery_note
from pynchy.testing import FakeChannel, FakeClock, FakeLauncher, FakeRunner, make_pending
from pynchy.tracking.control import Wanted

GROUP = GroupName("g1")
DEFAULTED = (Question("Go on?", options=(Option("Yes"), Option("No")), default=("Yes",)),)
BOX = {"kind": "bubblewrap", "agent": "claude"}
COMMAND = {"command": ["true"]}
PROCESS = {"kind": "process", "agent": "claude"}


class House:
    """A core whose runners are objects, on a folder that survives it."""

    def __init__(self, core: Core, clock: FakeClock, launcher: FakeLauncher) -> None:
        self.core, self.clock, self.launcher = core, clock, launcher

    async def ask(
        self, session: str, *, with_default: bool = True, asker_seen: bool = True
    ) -> PendingQuestion:
        """Have an agent ask, under whatever session id it says, with a default that is due."""
        pending = make_pending(
            os.urandom(4).hex(),
            session_id=SessionId(session),
            timestamp=self.clock.now(),
            wait_until=self.clock.now(),
            asker_seen=asker_seen,
            **({"questions": DEFAULTED} if with_default else {}),
        )
        await self.core.ledger.record(pending)
        self.core.expiry.watch(pending)
        await self.core.expiry.end_due()
        return pending

    async def ask_by_file(self, request_id: str, session: str, lease: str) -> PendingQuestion:
        """Have an agent ask through its mailbox, without a wait, and with a default."""
        asked = {"questions": [{"question": "Go on?", "default": "Yes"}], "wait_seconds": 0}
        request = {"v": 1, "type": "ask_user:ask", "request_id": request_id}
        body = json.dumps({**request, **asked, "session_id": session, "lease": lease}).encode()
        await self.core.ask_handler.handle(GROUP, wire.read_envelope(body, request_id))
        pending = self.core.ledger.get((GROUP, RequestId(request_id)))
        self.core.expiry.watch(pending)
        return pending

    def lease(self, name: str, session: str) -> Path:
        """Have somebody hold a lease for the session, on a machine whose locks cannot be seen."""
        path = self.core.mailboxes.of(GROUP).path / "tasks" / f"{name}.lease"
        path.write_text(json.dumps({"v": 1, "session_id": session}))
        return path

    async def may_i(self, command: str, session: str = "made-up") -> PendingQuestion:
        """Have an agent ask for a permission that it does not wait for."""
        call = {"program": "claude", "tool": "Bash", "input": {"command": command}}
        request = {"v": 1, "type": "ask_user:ask", "request_id": "p1", "session_id": session}
        body = json.dumps({**request, "wait_seconds": 0, "permission": call}).encode()
        await self.core.ask_handler.handle(GROUP, wire.read_envelope(body, "p1"))
        return self.core.ledger.get((GROUP, RequestId("p1")))

    async def answer(self, pending: PendingQuestion) -> None:
        await self.core.answers.answer(Reply(pending.request_id, "ana", "local", ("Yes",)))

    def state(self, pending: PendingQuestion) -> tuple[State | None, str]:
        found = self.core.index.get(pending.key)
        return (found.state, found.late.error or "") if found else (None, "")

    async def comes_to(self, pending: PendingQuestion, state: State) -> str:
        """Return why the answer has come to that state."""
        await until(lambda: self.state(pending)[0] is state, f"{state} of {pending.request_id}")
        return self.state(pending)[1]

    async def closed(self, pending: PendingQuestion) -> PendingQuestion:
        """Return the question as history has it."""
        find = self.core.store.find
        found = await until(lambda: find(*pending.key), f"{pending.request_id} to be closed")
        assert isinstance(found, PendingQuestion)
        return found

    def living(self) -> list[str]:
        return sorted(self.launcher.running(GROUP))

    async def lives(self, *sessions: str) -> None:
        await until(lambda: self.living() == sorted(sessions), f"runners on {sessions}")

    def runner_on(self, session: str) -> FakeRunner:
        runner = self.launcher.runner_on(GROUP, SessionId(session))
        assert runner is not None
        return runner

    def resumed(self, pending: PendingQuestion) -> None:
        """Have the runner say that it has the answer."""
        tasks = self.core.mailboxes.of(GROUP).path / "tasks"
        (tasks / f"{pending.request_id}.resumed").touch()
        self.core.ledger.notify(pending.key)


@asynccontextmanager
async def a_house(
    folder: Path, permissions: dict[str, list[str]] | None = None, **launcher: object
) -> AsyncIterator[House]:
    group = {"launcher": launcher, "permissions": permissions or {}}
    settings = Settings.model_validate({"groups": {GROUP: group}})
    clock, fake = FakeClock(), FakeLauncher()
    core = make_core(
        folder,
        clock,
        settings,
        {"local": FakeChannel("local")},
        launchers={GROUP: fake},
        limits=DeliveryLimits(timedelta(0), timedelta(days=7)),
    )
    (folder / "ipc").mkdir(exist_ok=True)
    core.mailboxes.of(GROUP).make()
    async with cancelled_at_end() as tasks:
        await start(core, tasks)
        yield House(core, clock, fake)
    core.audit.close()


async def test_answers_by_default_start_no_more_runners_at_once_than_max_runners(
    tmp_path: Path,
) -> None:
    async with a_house(tmp_path, **COMMAND, max_runners=2) as house:
        asked = [await house.ask(f"clone-{number}") for number in range(4)]
        await house.lives("clone-0", "clone-1")
        # Saying that it has its answer lets go of the place among those that start, of no other.
        for pending in asked[:2]:
            house.resumed(pending)
        whys = [await house.comes_to(pending, State.HELD) for pending in asked[2:]]
        before = house.living()
        problem = house.core.late.problem(GROUP)

        house.runner_on("clone-0").finish()

        await until(lambda: len(house.launcher.runners) == 3, "a third runner")
        assert before == ["clone-0", "clone-1"]
        assert len(house.living()) == 2
        assert all("max_runners = 2" in why for why in whys)
        assert "max_runners = 2" in str(problem)
        held = [q for q in asked if house.state(q)[0] is State.HELD]
        assert len(held) == 1
        assert "max_runners = 2" in delivery_note(house.core.ledger.get(held[0].key))


async def test_what_a_person_answers_is_kept_while_the_group_has_too_many_runners(
    tmp_path: Path,
) -> None:
    async with a_house(tmp_path, **COMMAND, max_runners=1) as house:
        await house.ask("first")
        await house.lives("first")
        pending = await house.ask("second", with_default=False)
        await house.answer(pending)
        await house.comes_to(pending, State.HELD)

        house.runner_on("first").finish()
        await house.lives("second")
        house.runner_on("second").finish()

        assert (await house.closed(pending)).delivered is DeliveryPath.LATE


async def test_no_box_is_started_for_a_session_that_an_agent_has_made_up(tmp_path: Path) -> None:
    async with a_house(tmp_path, **BOX) as house:
        pending = await house.ask("clone-1")

        why = await house.comes_to(pending, State.UNDELIVERED)

        assert why.startswith(UNKNOWN_SESSION)
        assert "pynchy retry" in why
        assert house.launcher.runners == []


@pytest.mark.parametrize("launcher", [COMMAND, PROCESS], ids=["command", "process"])
async def test_no_runner_is_started_for_a_session_that_an_agent_has_made_up(
    tmp_path: Path, launcher: dict[str, object]
) -> None:
    async with a_house(tmp_path, **launcher) as house:
        # A lease that nobody holds, and one that is held for another session.
        held = house.lease("own", "real")
        asked = [
            await house.ask_by_file("q1", "made-up-1", "nolease"),
            await house.ask_by_file("q2", "made-up-2", "own"),
        ]
        held.unlink()
        await house.core.expiry.end_due()

        for pending in asked:
            why = await house.comes_to(pending, State.UNDELIVERED)
            assert why.startswith(UNKNOWN_SESSION)
            assert "pynchy retry" in why
        assert house.launcher.runners == []

        await house.core.delivery.retry(house.core.ledger.get(asked[0].key), "ana")
        await house.lives("made-up-1")


@pytest.mark.parametrize("lease", ["own", "nolease"])
async def test_a_session_that_lived_when_it_asked_is_resumed_with_its_default(
    tmp_path: Path, lease: str
) -> None:
    async with a_house(tmp_path, **COMMAND) as house:
        # Whoever asked need not be who holds the lease of the session, as with a hook.
        held = house.lease("own", "real")
        pending = await house.ask_by_file("q1", "real", lease)
        held.unlink()
        await house.core.expiry.end_due()

        await house.lives("real")
        assert house.core.ledger.get(pending.key).asker_seen


async def test_a_lease_of_its_own_making_starts_no_box_for_an_agent(tmp_path: Path) -> None:
    async with a_house(tmp_path, **BOX) as house:
        house.lease("own", "made-up").touch()
        pending = await house.ask_by_file("q1", "made-up", "own")
        house.lease("own", "made-up").unlink()
        await house.core.expiry.end_due()

        assert (await house.comes_to(pending, State.UNDELIVERED)).startswith(UNKNOWN_SESSION)


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize("launcher", [BOX, COMMAND], ids=["box", "command"])
async def test_no_rule_starts_a_runner_for_a_session_that_an_agent_has_made_up(
    tmp_path: Path, effect: str, launcher: dict[str, object]
) -> None:
    async with a_house(tmp_path, {effect: ["Bash(git status)"]}, **launcher) as house:
        pending = await house.may_i("git status")

        why = await house.comes_to(pending, State.UNDELIVERED)

        assert why.startswith(UNKNOWN_SESSION)
        assert house.launcher.runners == []


async def test_no_rule_starts_a_session_that_a_person_has_stopped(tmp_path: Path) -> None:
    async with a_house(tmp_path, {"allow": ["Bash(git status)"]}, **BOX) as house:
        session = await house.core.control.start(Wanted(GROUP, "Look at it"))
        await house.core.control.stop(session.session_id, "ana")
        await house.lives()
        pending = await house.may_i("git status", session.session_id)

        why = await house.comes_to(pending, State.UNDELIVERED)

        assert why.startswith(STOPPED)
        assert len(house.launcher.runners) == 1


async def test_a_person_may_want_a_box_for_any_session(tmp_path: Path) -> None:
    async with a_house(tmp_path, **BOX) as house:
        defaulted = await house.ask("one")
        await house.comes_to(defaulted, State.UNDELIVERED)
        answered = await house.ask("two", with_default=False)

        await house.core.delivery.retry(house.core.ledger.get(defaulted.key), "ana")
        await house.answer(answered)

        await house.lives("one", "two")


async def test_a_session_that_a_person_has_begun_is_resumed_with_its_default(
    tmp_path: Path,
) -> None:
    async with a_house(tmp_path, **BOX) as house:
        session = await house.core.control.start(Wanted(GROUP, "Mend the roof"))
        house.runner_on(session.session_id).finish()
        await house.lives()

        await house.ask(session.session_id)

        await house.lives(session.session_id)


@pytest.mark.parametrize("launcher", [BOX, COMMAND], ids=["box", "command"])
async def test_a_stopped_session_came_back_by_a_default_of_its_own(
    tmp_path: Path, launcher: dict[str, object]
) -> None:
    async with a_house(tmp_path, **launcher) as house:
        session = await house.core.control.start(Wanted(GROUP, "Mend the roof"))
        await house.core.control.stop(session.session_id, "ana")

        pending = await house.ask(session.session_id)
        why = await house.comes_to(pending, State.UNDELIVERED)

        assert "a person has stopped the runner" in why
        assert len(house.launcher.runners) == 1
    async with a_house(tmp_path, **launcher) as house:  # also after a restart
        again = await house.ask(session.session_id)
        await house.comes_to(again, State.UNDELIVERED)
        assert house.launcher.runners == []


async def test_a_persons_answer_brings_a_stopped_session_back(tmp_path: Path) -> None:
    async with a_house(tmp_path, **BOX) as house:
        session = await house.core.control.start(Wanted(GROUP, "Mend the roof"))
        await house.core.control.stop(session.session_id, "ana")
        pending = await house.ask(session.session_id, with_default=False)

        await house.answer(pending)
        await house.lives(session.session_id)
        house.runner_on(session.session_id).finish()
        await house.lives()

        # It works for people again, so its own defaults count again.
        await house.ask(session.session_id)
        await house.lives(session.session_id)


async def test_starts_at_one_time_do_not_pass_the_limit_together(tmp_path: Path) -> None:
    class Slow(FakeLauncher):
        async def start(self, launch: Launch) -> FakeRunner:
            await asyncio.sleep(0.05)
            return await super().start(launch)

    async with a_house(tmp_path, **COMMAND, max_runners=2) as house:
        house.launcher.__class__ = Slow
        for number in range(6):
            await house.ask(f"s{number}")

        await until(lambda: len(house.living()) == 2, "two runners")
        await until(
            lambda: [q.state for q in house.core.index].count(State.HELD) == 4, "four to be held"
        )

        assert len(house.launcher.runners) == 2
