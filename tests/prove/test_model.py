"""A machine of askers, answerers, clocks, deaths and restarts against a simple model.

The real bridge, store files and mailbox run in one loop in which nothing happens by itself:
threads are inlined, time stands still until it is moved, and after each rule everything that can
happen has happened.
"""

import asyncio
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.prove.conftest import SEED
from tests.prove.world import (
    ANSWER_TTL,
    DENIED_IN_KEPT,
    KEPT,
    RESUMABLE,
    WAIT,
    Inline,
    World,
    memory_folder,
)

from agent_runner.asking import Approval, Option, Permission, Question, Request, RequestId
from agent_runner.asking import wire as agent_wire
from pynchy import wire
from pynchy.errors import (
    AlreadyOver,
    AmbiguousQuestion,
    DuplicateRequest,
    InvalidReply,
    ReplyRejected,
)
from pynchy.ipc.leases import read_boot_id
from pynchy.model import DeliveryPath, Ending, GroupName, Kind, Reply, State
from pynchy.model import RequestId as HostRequestId
from pynchy.permissions.card import is_granted
from pynchy.rule import Origin
from pynchy.testing import FakeClock, FakeLauncher, FakeRunner
from pynchy.tracking import liveness

GROUPS = (RESUMABLE, RESUMABLE, KEPT)
MAX_QUESTIONS = 5
# On a busy machine a look at the leases may take long, after which the host rests in real time.
liveness._LONG_LOOK_SECONDS = float("inf")  # noqa: SLF001 - time stands still here
PEOPLE = ("ana", "ben", "cy")
COMMANDS = ("ls", DENIED_IN_KEPT)
MAY_I = (None, None, *COMMANDS)
ALWAYS, RULE = "Allow always…", "rule"
TURNS = st.integers(0, 20)
RULE_TTL = timedelta(days=30)


@dataclass
class Agent:
    """A process that asks: one lease, locked while it lives, and one session that outlives it."""

    group: str
    session_id: str
    lease: str
    lock: int = -1

    @property
    def alive(self) -> bool:
        return self.lock >= 0


@dataclass
class Received:
    """An answer that a session has received since its last sign of life, and what received it.

    With a runner on the session as well, a lease that is given back tells nothing: it may have been
    that of the runner's own server, which gives it back also when its agent was killed.
    """

    request_id: str
    agent: Agent | None
    surely: bool = True
    beside_runner: bool = False


@dataclass
class Asked:
    """What the model knows of one question."""

    agent: Agent
    request_id: str
    data: bytes
    has_default: bool
    kind: Kind = Kind.QUESTION
    # What a permission is for, and whether its rule was revoked.
    command: str = ""
    revoked: bool = False
    waits: bool = True
    approved: set[str] = field(default_factory=set)
    maybe_approved: set[str] = field(default_factory=set)
    accepted: list[str] = field(default_factory=list)
    ending: Any = None
    taken_live: int = 0
    taken_late: int = 0

    @property
    def group(self) -> str:
        return self.agent.group

    @property
    def alive(self) -> bool:
        return self.agent.alive

    @property
    def is_denied(self) -> bool:
        """True if a rule of the settings denies it."""
        return (self.group, self.command) == (KEPT, DENIED_IN_KEPT)

    @property
    def made_rule(self) -> bool:
        """True if somebody has said that it is always allowed."""
        return self.ending is not None and _says_always(self.ending)

    @property
    def approvals_needed(self) -> int:
        return 2 if self.kind is Kind.APPROVAL and self.group == RESUMABLE else 1

    @property
    def key(self) -> tuple[GroupName, HostRequestId]:
        return (GroupName(self.group), HostRequestId(self.request_id))


def _says_always(ending: Ending) -> bool:
    return any(ALWAYS in answer.selected for answer in ending.answers)


class Machine(RuleBasedStateMachine):
    """Several askers and answerers over one host that is restarted at will."""

    questions = Bundle("questions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="pynchy-model-", dir=memory_folder()))
        (self.folder / "ipc").mkdir()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(Inline())
        self.clock = FakeClock()
        self.launcher: FakeLauncher = FakeLauncher()
        self.world = World(self.folder, self.launcher, self.clock)
        self.asked: list[Asked] = []
        self.agents: list[Agent] = []
        self.runners_seen = 0
        self.told: list[set[str]] = []
        self.received: dict[str, list[Received]] = {RESUMABLE: [], KEPT: []}
        self.run(self.world.start())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something, then let everything happen that follows from it."""

        async def both() -> Any:
            result = await work
            await self.world.rest()
            return result

        return self.loop.run_until_complete(both())

    def crash_during(self, work: Coroutine[Any, Any, Any], turns: int) -> Any:
        """Let the host die so many turns of its loop into the work; return the work's result."""

        async def begin() -> Any:
            task = asyncio.ensure_future(work)
            for _ in range(turns):
                await asyncio.sleep(0)
            result = _result_of(task)
            await self.world.crash()
            return result

        result = self.loop.run_until_complete(begin())
        self.restart()
        return result

    def cancel_during(self, work: Coroutine[Any, Any, Any], turns: int) -> Any:
        """Let whoever does the work be cancelled so many turns into it; the host goes on."""

        async def begin() -> Any:
            task = asyncio.ensure_future(work)
            for _ in range(turns):
                await asyncio.sleep(0)
            result = _result_of(task)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return result

        return self.run(begin())

    def restart(self) -> None:
        self.world = World(self.folder, self.launcher, self.clock)
        self.run(self.world.start())
        for outcome in self.folder.glob("ipc/*/outcomes/*.json"):
            asked = self.question_of(outcome.parent.parent.name, outcome.stem)
            assert self.found(asked).ending is not None, "a committed outcome was overlooked"

    def teardown(self) -> None:
        self.drive_to_rest()
        for asked in self.asked:
            self.check_at_rest(asked)
        self.loop.run_until_complete(self.world.stop())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)

    @initialize(target=questions, group=st.sampled_from(GROUPS))
    def somebody_has_asked(self, group: str) -> Asked:
        asked = self.new_question(group, has_default=False)
        self.run(self.world.take(asked.group, asked.request_id, asked.data))
        return asked

    # What agents do.

    @rule(
        target=questions,
        group=st.sampled_from(GROUPS),
        has_default=st.booleans(),
    )
    @precondition(lambda self: len(self.asked) < MAX_QUESTIONS)
    def ask(self, group: str, has_default: bool) -> Asked:  # noqa: FBT001
        asked = self.new_question(group, has_default=has_default)
        self.run(self.world.take(asked.group, asked.request_id, asked.data))
        self.received[group].clear()
        return asked

    @rule(target=questions, group=st.sampled_from(GROUPS), command=st.sampled_from(MAY_I))
    @precondition(lambda self: len(self.asked) < MAX_QUESTIONS)
    def ask_may_i(self, group: str, command: str | None) -> Asked:
        """An agent wants something approved, or to run the command."""
        kind = Kind.PERMISSION if command else Kind.APPROVAL
        asked = self.new_question(group, has_default=False, kind=kind, command=command or "")
        has_rule = self.has_rule(asked)
        self.run(self.world.take(asked.group, asked.request_id, asked.data))
        self.received[group].clear()
        ending = self.found(asked).ending
        if asked.is_denied or has_rule:
            assert ending is not None, "a rule did not answer"
        return asked

    @rule(target=questions, group=st.sampled_from(GROUPS), turns=TURNS)
    @precondition(lambda self: len(self.asked) < MAX_QUESTIONS)
    def ask_and_crash(self, group: str, turns: int) -> Asked:
        """The host dies while it records the question; the file is still there for the next one."""
        asked = self.new_question(group, has_default=False)
        self.crash_during(self.world.take(asked.group, asked.request_id, asked.data), turns)
        self.take_once_more(asked)
        return asked

    def take_once_more(self, asked: Asked) -> None:
        """Have the host read a question that it may have recorded, or not."""
        try:
            self.run(self.world.take(asked.group, asked.request_id, asked.data))
        except DuplicateRequest:
            # Who read it before may have forgotten that this was a sign of life.
            assert self.found(asked)
            for received in self.received[asked.group]:
                received.surely = False
        else:
            self.received[asked.group].clear()

    @rule(
        target=questions,
        group=st.sampled_from(GROUPS),
        command=st.sampled_from(MAY_I),
        turns=TURNS,
    )
    @precondition(lambda self: len(self.asked) < MAX_QUESTIONS)
    def ask_and_be_cancelled(self, group: str, command: str | None, turns: int) -> Asked:
        """Who asks is cut off while the host records the question, and asks once more."""
        kind = Kind.PERMISSION if command else Kind.QUESTION
        asked = self.new_question(group, has_default=False, kind=kind, command=command or "")
        self.cancel_during(self.world.take(asked.group, asked.request_id, asked.data), turns)
        self.take_once_more(asked)
        return asked

    @rule(
        target=questions,
        group=st.sampled_from(GROUPS),
        command=st.sampled_from(COMMANDS),
        who=st.sampled_from(PEOPLE),
    )
    @precondition(lambda self: len(self.asked) <= MAX_QUESTIONS - 2)
    def do_again_what_is_always_allowed(self, group: str, command: str, who: str) -> Any:
        """Somebody allows it always; the next call of the same needs nobody."""
        asked = self.ask_may_i(group, command)
        if self.found(asked).ending is None:
            self.always(asked, who)
            assert self.has_rule(asked)
        return multiple(asked, self.ask_may_i(group, command))

    @rule(target=questions, command=st.sampled_from(COMMANDS), who=st.sampled_from(PEOPLE))
    @precondition(lambda self: len(self.asked) <= MAX_QUESTIONS - 3)
    def do_twice_what_was_allowed_late(self, command: str, who: str) -> Any:
        """The agent dies, its session is resumed with the yes, and makes the call twice."""
        asked = self.ask_may_i(RESUMABLE, command)
        if self.found(asked).ending is not None:
            return asked
        self.answer_after_the_agent_died(asked, who)
        while self.found(asked).delivered is None:
            assert any(not runner.end.done() for runner in self.launcher.runners)
            self.runner_ends(ok=False, acknowledges=True)
        # What follows is a sign of life of a new process: these hold before it.
        self.a_session_is_never_resumed_while_a_process_works_on_it()
        self.a_resumed_session_is_told_again_what_it_may_have_lost()
        # A yes to the same call, given late before, is used first.
        same = [a for a in self.asked if (a.group, a.command) == (RESUMABLE, command)]
        yes = {p.ending.by for p in map(self.found, same) if p.ending and is_granted(p)}
        once, twice = (self.ask_may_i(RESUMABLE, command) for _ in range(2))
        assert who in yes
        assert self.found(once).ending.by in yes
        return multiple(asked, once, twice)

    def new_question(
        self, group: str, *, has_default: bool, kind: Kind = Kind.QUESTION, command: str = ""
    ) -> Asked:
        agent = self.living_agent(group)
        # Groups use the same ids: nothing that is meant for one may reach the other's question.
        request_id = f"q{sum(asked.group == group for asked in self.asked)}"
        question = Question(
            "Deploy?", options=(Option("Yes"), Option("No")), default="No" if has_default else None
        )
        is_question, may_run = kind is Kind.QUESTION, kind is Kind.PERMISSION
        request = Request(
            (question,) if is_question else (),
            request_id=RequestId(request_id),
            wait_seconds=WAIT.total_seconds(),
            permission=Permission("claude", "Bash", {"command": command}, "/srv")
            if may_run
            else None,
            approval=None if is_question or may_run else Approval("Deploy?"),
        )
        data = agent_wire.encode_request(request, session_id=agent.session_id, lease=agent.lease)
        asked = Asked(agent, request_id, data, has_default, kind, command)
        self.asked.append(asked)
        return asked

    def living_agent(self, group: str) -> Agent:
        """Return the group's agent; a new process takes up the session of one that died."""
        for agent in self.agents:
            if agent.group == group and agent.alive:
                return agent
        agent = Agent(group, f"session-of-{group}", f"l{len(self.agents)}")
        self.agents.append(agent)
        lease = {"v": 1, "boot_id": read_boot_id(), "session_id": agent.session_id}
        self.lease_file(agent).write_text(json.dumps(lease))
        agent.lock = os.open(self.lease_file(agent), os.O_RDWR)
        fcntl.flock(agent.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return agent

    @rule(asked=questions)
    def ask_again(self, asked: Asked) -> None:
        try:
            self.run(self.world.take(asked.group, asked.request_id, asked.data))
        except DuplicateRequest:
            return
        raise AssertionError("the same question was taken twice")

    @rule(asked=questions)
    def cancel(self, asked: Asked) -> None:
        asked.waits = False
        self.about(asked, agent_wire.TYPE_CANCEL)

    @rule(asked=questions)
    def withdraw(self, asked: Asked) -> None:
        before = self.pending(asked)
        self.about(asked, agent_wire.TYPE_WITHDRAW)
        if before is not None:
            self.received[asked.group].clear()
        if before is not None and before.ending is None:
            self.expect_ending(asked, "withdrawn")

    @rule(asked=questions, turns=TURNS)
    def withdraw_and_be_cancelled(self, asked: Asked, turns: int) -> None:
        """Who takes it back is cut off: it has ended, or nothing has happened."""
        before = self.pending(asked)
        self.cancel_during(self.about_coroutine(asked, agent_wire.TYPE_WITHDRAW), turns)
        for received in self.received[asked.group]:
            received.surely = False
        if before is not None and before.ending is None and self.found(asked).ending is not None:
            self.expect_ending(asked, "withdrawn")

    @rule(asked=questions)
    def waiter_looks(self, asked: Asked) -> None:
        """The waiting call takes the answer if there is one, as agent_runner does."""
        if asked.alive and asked.waits:
            self.take_live(asked)

    @rule(asked=questions)
    def check_answer(self, asked: Asked) -> None:
        self.take_live(asked)

    @rule(asked=questions)
    def agent_dies(self, asked: Asked) -> None:
        """Killed: the lock is free, the lease stays."""
        self.kill(asked.agent)
        self.run(_nothing())

    @rule(asked=questions)
    def agent_leaves(self, asked: Asked) -> None:
        """An end in order: what it had received, and all before that, it has used."""
        agent = asked.agent
        if not agent.alive:
            return
        self.lease_file(agent).unlink()
        self.kill(agent)
        received = self.received[agent.group]
        own = [n for n, r in enumerate(received, start=1) if r.agent is agent]
        for may_be_used in received[: max(own, default=0)]:
            may_be_used.surely = False
        known = [n for n in own if not received[n - 1].beside_runner]
        del received[: max(known, default=0)]
        self.run(_nothing())

    @rule(asked=questions, who=st.sampled_from(PEOPLE), in_order=st.booleans())
    def agent_ends_right_after_an_answer(self, asked: Asked, who: str, in_order: bool) -> None:  # noqa: FBT001
        """It receives one answer and ends; then what else its session has asked is answered."""
        self.answer(asked, who, "1")
        self.check_answer(asked)
        if in_order:
            self.agent_leaves(asked)
        else:
            self.agent_dies(asked)
        for other in self.asked:
            if other.group == asked.group and self.found(other).ending is None:
                self.answer(other, who, "2")

    # What people do.

    @rule(asked=questions, who=st.sampled_from(PEOPLE), value=st.sampled_from(["1", "2", "maybe"]))
    def answer(self, asked: Asked, who: str, value: str) -> None:
        self.reply(asked, self.a_reply(asked, who, value))

    @rule(asked=questions, people=st.permutations(PEOPLE))
    def two_say_yes(self, asked: Asked, people: list[str]) -> None:
        """What two people say yes to is over, whatever they are asked."""
        for who in people[:2]:
            self.answer(asked, who, "1")
        assert self.found(asked).ending is not None

    @rule(asked=questions, who=st.sampled_from(PEOPLE))
    def one_says_no(self, asked: Asked, who: str) -> None:
        self.answer(asked, who, "2: too risky")
        assert self.found(asked).ending is not None

    @rule(asked=questions, who=st.sampled_from(PEOPLE))
    def always(self, asked: Asked, who: str) -> None:
        """Somebody allows it always, if it is a permission."""
        if asked.kind is Kind.PERMISSION:
            self.reply(asked, self.a_reply(asked, who, "always"))

    @rule(asked=questions, who=st.sampled_from(PEOPLE), turns=TURNS)
    def always_and_crash(self, asked: Asked, who: str, turns: int) -> None:
        """The host dies around that: the rule is there if the yes is, and only then."""
        if asked.kind is Kind.PERMISSION:
            self.answer_and_crash(asked, who, turns, "always")

    @rule(asked=questions)
    def revoke(self, asked: Asked) -> None:
        """Its rule counts no more from now on."""
        made = [r for r in self.world.rules.rules(asked.group) if r.id == asked.request_id]
        for found in made:
            self.run(self.world.rules.revoke(found.short_id, "ben"))
            asked.revoked = True

    @rule(asked=questions, who=st.sampled_from(PEOPLE))
    def answer_by_the_id_alone(self, asked: Asked, who: str) -> None:
        """It is taken where one question has that id, and refused where several have it."""
        reply = replace(self.a_reply(asked, who, "1"), group=None)
        if [a.request_id for a in self.asked].count(asked.request_id) == 1:
            self.reply(asked, reply)
            return
        with pytest.raises(AmbiguousQuestion):
            self.run(self.world.answers.answer(reply))

    @rule(asked=questions, who=st.sampled_from(PEOPLE), turns=TURNS)
    def answer_and_crash(self, asked: Asked, who: str, turns: int, value: str = "1") -> None:
        """The host dies around the answer; what it acknowledged must be there after the restart."""
        before = self.found(asked)
        work = self.world.answers.answer(self.a_reply(asked, who, value))
        asked.maybe_approved.add(who)
        acknowledged = self.crash_during(work, turns)
        after = self.found(asked)
        if before.ending is None and acknowledged is not None:
            self.accept(asked, acknowledged, who)
            assert after.ending == acknowledged.ending
            assert set(acknowledged.drafts) <= set(after.drafts)

    @rule(
        asked=questions,
        who=st.sampled_from(PEOPLE),
        value=st.sampled_from(["1", "2", "always"]),
        turns=TURNS,
    )
    def answer_and_be_cancelled(self, asked: Asked, who: str, value: str, turns: int) -> None:
        """Who answers is cut off: the answer counts as a whole, or not at all."""
        if value == "always" and asked.kind is not Kind.PERMISSION:
            return
        before = self.found(asked)
        work = self.world.answers.answer(self.a_reply(asked, who, value))
        asked.maybe_approved.add(who)
        acknowledged = self.cancel_during(work, turns)
        after = self.found(asked)
        if before.ending is None and acknowledged is not None:
            self.accept(asked, acknowledged, who)
            assert after.ending == acknowledged.ending
        if before.ending is None and after.ending is not None:
            assert who in after.ending.by

    @rule(asked=questions, who=st.sampled_from(PEOPLE))
    def answer_after_the_agent_died(self, asked: Asked, who: str) -> None:
        self.agent_dies(asked)
        self.answer(asked, who, "1")

    @rule(asked=questions, who=st.sampled_from(PEOPLE))
    def decline(self, asked: Asked, who: str) -> None:
        self.reply(asked, self.a_reply(asked, who), decline=True)

    @rule(asked=questions, value=st.sampled_from(["9", " "]))
    def answer_nonsense(self, asked: Asked, value: str) -> None:
        try:
            self.run(self.world.answers.answer(self.a_reply(asked, "ana", value)))
        except ReplyRejected:
            return
        raise AssertionError("nonsense was taken for an answer")

    @rule(asked=questions)
    def several_answer_at_once(self, asked: Asked) -> None:
        async def race() -> list[Any]:
            tries = [
                self.world.answers.answer(self.a_reply(asked, who, str(1 + n % 2)))
                for n, who in enumerate(PEOPLE)
            ]
            return list(await asyncio.gather(*tries, return_exceptions=True))

        results = self.run(race())
        taken = [
            (result, who)
            for result, who in zip(results, PEOPLE, strict=True)
            if not isinstance(result, BaseException)
        ]
        assert sum(result.ending is not None for result, _ in taken) <= 1
        assert len(taken) <= asked.approvals_needed
        asked.maybe_approved |= set(PEOPLE)
        for result, who in taken:
            self.accept(asked, result, who)
        told = {str(r.ending) for r in results if isinstance(r, AlreadyOver)}
        assert told <= {str(asked.ending)}

    @rule(asked=questions)
    def retry(self, asked: Asked) -> None:
        pending = self.pending(asked)
        if pending is not None:
            try:
                self.run(self.world.delivery.retry(pending, "ana"))
            except ReplyRejected:  # the attempt may have begun meanwhile
                return

    # What the world does.

    @rule(minutes=st.sampled_from([1, 31, 60 * 24, 60 * 24 * 8, 60 * 24 * 31]))
    def time_passes(self, minutes: int) -> None:
        open_before = [a for a in self.asked if (p := self.pending(a)) and p.ending is None]
        self.clock.move(timedelta(minutes=minutes))
        self.run(self.world.expiry.end_due())
        for asked in open_before:
            pending = self.found(asked)
            if pending.ending is not None:
                kind = "defaulted" if asked.has_default else "expired"
                self.expect_ending(asked, kind)

    @rule()
    def host_restarts(self) -> None:
        self.loop.run_until_complete(self.world.stop())
        self.restart()

    @rule(ok=st.booleans(), acknowledges=st.booleans())
    def runner_ends(self, ok: bool, acknowledges: bool) -> None:  # noqa: FBT001
        living = [runner for runner in self.launcher.runners if not runner.end.done()]
        if living:
            self.end_runner(living[0], ok=ok, acknowledges=acknowledges)

    # What must be true at all times.

    @invariant()
    def what_is_known_is_what_is_on_the_disk(self) -> None:
        """Whoever was cancelled, and wherever: memory and disk do not disagree."""
        for asked in self.asked:
            base, name = self.folder / "ipc" / asked.group, f"{asked.request_id}.json"
            pending = self.pending(asked)
            record = base / "pending_questions" / name
            assert record.exists() == (pending is not None), asked
            assert (base / "outcomes" / name).exists() == (self.found(asked).ending is not None)
            if pending is not None and pending.ending is None:
                assert wire.read_pending(record.read_bytes()) == pending

    @invariant()
    def no_card_is_open_that_somebodys_rule_covers(self) -> None:
        for asked in self.asked:
            if asked.kind is Kind.PERMISSION and self.has_rule(asked):
                assert self.found(asked).ending is not None, "a rule left a card open"

    @invariant()
    def every_question_is_known_and_its_ending_never_changes(self) -> None:
        for asked in self.asked:
            pending = self.found(asked)
            if asked.ending is not None:
                assert pending.ending == asked.ending
            asked.ending = pending.ending

    @invariant()
    def nothing_is_approved_by_fewer_people_than_it_needs(self) -> None:
        for asked in self.asked:
            pending = self.found(asked)
            approved = {draft.by for draft in pending.drafts}
            assert len(approved) == len(pending.drafts) <= asked.approvals_needed
            if pending.ending is None:
                assert asked.approved <= approved <= asked.maybe_approved
            elif pending.ending.answers and pending.ending.answers[0].selected == ("Approve",):
                people = set(pending.ending.by.split(", "))
                assert len(people) == asked.approvals_needed, pending
                assert people <= asked.maybe_approved

    @invariant()
    def there_is_a_rule_for_each_time_that_somebody_said_always_and_no_other(self) -> None:
        listed = {(r.group, r.id): r for r in self.world.rules.rules() if r.origin is Origin.CARD}
        made = {asked.key: asked for asked in self.asked if asked.made_rule}
        assert listed.keys() <= made.keys()
        for key, asked in made.items():
            counts = not asked.revoked and self.clock.now() < asked.ending.at + RULE_TTL
            assert (key in listed) == counts, asked
            assert key not in listed or listed[key].made_by == asked.ending.by

    @invariant()
    def what_nobody_was_asked_for_was_allowed_before(self) -> None:
        """By a rule that counted then, or late and once."""
        for group in (RESUMABLE, KEPT):
            for command in COMMANDS:
                same = [a for a in self.asked if (a.group, a.command) == (group, command)]
                self.check_unasked(same)

    def check_unasked(self, same: list[Asked]) -> None:
        """Judge what was asked for one command in one group."""
        found = [(asked, self.found(asked)) for asked in same]
        late = sum(
            p.delivered is DeliveryPath.LATE and p.ending.channel != RULE and is_granted(p)
            for _, p in found
        )
        for asked, pending in found:
            if pending.ending is None or pending.ending.channel != RULE:
                assert not asked.is_denied or pending.ending is not None
                continue
            # Only a rule that was made when the card was out may answer it.
            made = [p.ending.at for _, p in found if p.ending and _says_always(p.ending)]
            is_newer = any(at >= pending.timestamp for at in made)
            assert is_newer or not pending.cards, "what a rule answers is shown nowhere"
            by = pending.ending.by
            if asked.is_denied:
                assert not is_granted(pending)
            elif by.startswith("rule "):
                assert any(a.made_rule and a.ending.at <= pending.ending.at for a in same), asked
            else:
                late -= 1
        assert late >= 0, "what was allowed late was done twice"

    @invariant()
    def nobody_is_given_an_answer_twice(self) -> None:
        for asked in self.asked:
            assert asked.taken_live + asked.taken_late <= 1, asked

    @invariant()
    def no_session_has_two_runners(self) -> None:
        living = [r.launch.session_id for r in self.launcher.runners if not r.end.done()]
        assert len(living) == len(set(living))

    @invariant()
    def a_session_is_never_resumed_while_a_process_works_on_it(self) -> None:
        fresh = self.launcher.runners[self.runners_seen :]
        self.runners_seen = len(self.launcher.runners)
        for runner in fresh:
            session = (runner.launch.group, runner.launch.session_id)
            living = {(a.group, a.session_id) for a in self.agents if a.alive}
            assert session not in living, runner

    @invariant()
    def a_resumed_session_is_told_again_what_it_may_have_lost(self) -> None:
        for runner in self.launcher.runners[len(self.told) :]:
            initial = json.loads(runner.launch.initial.read_bytes())
            own = runner.launch.request_id
            again = set(re.findall(r"\(request (\w+)\)", initial["prompt"])) - {own}
            known = [r for r in self.received[runner.launch.group] if r.request_id != own]
            assert {r.request_id for r in known if r.surely} <= again, (known, initial)
            assert again <= {r.request_id for r in known}, (known, initial)
            self.told.append(again)

    # Helpers.

    def kill(self, agent: Agent) -> None:
        if agent.lock >= 0:
            os.close(agent.lock)
            agent.lock = -1

    def lease_file(self, agent: Agent) -> Path:
        return self.folder / "ipc" / agent.group / "tasks" / f"{agent.lease}.lease"

    def about(self, asked: Asked, kind: str) -> None:
        self.run(self.about_coroutine(asked, kind))

    def about_coroutine(self, asked: Asked, kind: str) -> Coroutine[Any, Any, None]:
        """Return what the host does when it reads that of the question."""
        data = agent_wire.encode_about(kind, RequestId(asked.request_id))
        envelope = wire.read_envelope(data, "x")
        return self.world.ask_handler.handle(GroupName(asked.group), envelope)

    def has_rule(self, asked: Asked) -> bool:
        """True if somebody's rule surely covers what is asked now."""
        same = [a for a in self.asked if (a.group, a.command) == (asked.group, asked.command)]
        return bool(asked.command) and any(
            a.made_rule and not a.revoked and self.clock.now() < a.ending.at + RULE_TTL
            for a in same
        )

    def a_reply(self, asked: Asked, who: str, value: str = "") -> Reply:
        if asked.kind is not Kind.QUESTION:
            value = re.sub("^2", "deny", re.sub("^1", "approve", value))
        values = (value,) if value else ()
        return Reply(asked.request_id, who, "local", values, group=GroupName(asked.group))

    def reply(self, asked: Asked, reply: Reply, *, decline: bool = False) -> None:
        before = self.found(asked)
        decide = self.world.answers.decline if decline else self.world.answers.answer
        asked.maybe_approved.add(reply.by)
        try:
            after = self.run(decide(reply))
        except InvalidReply:
            assert asked.kind is not Kind.QUESTION
            assert reply.values == ("maybe",), "a yes or no was refused"
        except AlreadyOver as over:
            told = over.ending
            assert before.ending is not None, "an open question was said to be over"
            assert told == before.ending, "who came second was told something else"
        else:
            assert before.ending is None
            assert asked.kind is Kind.QUESTION or reply.values != ("maybe",), "own words were a yes"
            self.accept(asked, after, reply.by)

    def accept(self, asked: Asked, after: Any, who: str) -> None:
        asked.maybe_approved.add(who)
        if after.ending is None:
            assert asked.approvals_needed > 1
            asked.approved.add(who)
            return
        asked.accepted.append(after.ending.by)
        asked.ending = after.ending

    def expect_ending(self, asked: Asked, kind: str) -> None:
        ending = self.found(asked).ending
        assert ending is not None
        assert ending.outcome == kind
        assert asked.has_default or ending.outcome != "defaulted"

    @rule(asked=questions, who=st.sampled_from(PEOPLE), host_sees_it=st.booleans())
    def agent_dies_before_it_has_passed_the_answer_on(
        self,
        asked: Asked,
        who: str,
        host_sees_it: bool,  # noqa: FBT001
    ) -> None:
        """A process takes the receipt and dies with the answer: nobody has received it."""
        agent = asked.agent
        if not agent.alive or self.found(asked).ending is not None:
            return
        self.answer(asked, who, "1")
        if self.found(asked).ending is None:
            return
        receipt = self.folder / "ipc" / asked.group / "tasks" / f"{asked.request_id}.received"
        if receipt.exists():
            return
        receipt.write_text(json.dumps({"v": 1, "by": "waiter", "lease": agent.lease}))
        if host_sees_it:
            self.run(_nothing())
            assert self.found(asked).delivered is None
        self.kill(agent)
        self.run(_nothing())
        found = self.found(asked)
        assert found.delivered is not DeliveryPath.LIVE
        assert found.late.taker_died

    @rule(asked=questions, who=st.sampled_from(PEOPLE), host_dies=st.booleans())
    def a_process_takes_the_answer_as_the_host_does_and_dies(
        self,
        asked: Asked,
        who: str,
        host_dies: bool,  # noqa: FBT001
    ) -> None:
        """It is a moment faster than the host, and has passed nothing on."""
        if self.found(asked).ending is not None:
            return
        self.agent_dies(asked)
        receipt = self.folder / "ipc" / asked.group / "tasks" / f"{asked.request_id}.received"
        with self.rival_at_the_claim(asked, receipt) as struck:
            self.answer(asked, who, "1")
        if not struck:
            return
        if host_dies:
            self.host_restarts()
        found = self.found(asked)
        assert found.delivered is not DeliveryPath.LIVE
        assert found.late.taker_died

    @contextmanager
    def rival_at_the_claim(self, asked: Asked, receipt: Path) -> Iterator[list[str]]:
        """Have somebody create the receipt right before the host would, once."""
        mailbox, struck = self.world.mailboxes.of(GroupName(asked.group)), list[str]()
        claim = mailbox.claim

        def claim_second(request_id: HostRequestId, *given: Any) -> bool:
            if request_id == asked.request_id and not struck and not receipt.exists():
                struck.append(request_id)
                receipt.write_text(json.dumps({"v": 1, "by": "waiter", "lease": "of-a-dead"}))
            return claim(request_id, *given)

        with patch.object(mailbox, "claim", claim_second):
            yield struck

    def question_of(self, group: str, request_id: str) -> Asked:
        return next(a for a in self.asked if (a.group, a.request_id) == (group, request_id))

    def pending(self, asked: Asked) -> Any:
        return self.world.index.get(asked.key)

    def found(self, asked: Asked) -> Any:
        pending = self.pending(asked) or self.loop.run_until_complete(
            self.world.store.find(*asked.key)
        )
        assert pending is not None, f"{asked.request_id} is lost"
        return pending

    def take_live(self, asked: Asked) -> None:
        """Take the answer as a waiter does: the response, then the receipt, exclusively."""
        base = self.folder / "ipc" / asked.group
        response = base / "responses" / f"{asked.request_id}.json"
        if not response.exists():
            return
        result = agent_wire.decode_response(response.read_bytes(), RequestId(asked.request_id))
        assert result.outcome == self.found(asked).ending.outcome
        try:
            with (base / "tasks" / f"{asked.request_id}.received").open("x"):
                asked.taken_live += 1
        except FileExistsError:
            return
        if result.outcome in {"answered", "declined", "defaulted"}:
            living = next((a for a in self.agents if a.group == asked.group and a.alive), None)
            # Who takes it without a lease cannot be told to have died, nor to have ended in order.
            received = Received(asked.request_id, living, surely=living is not None)
            received.beside_runner = any(not runner.end.done() for runner in self.launcher.runners)
            self.received[asked.group].append(received)
        self.run(_nothing())

    def end_runner(self, runner: FakeRunner, *, ok: bool, acknowledges: bool) -> None:
        self.a_resumed_session_is_told_again_what_it_may_have_lost()
        asked = self.question_of(runner.launch.group, str(runner.launch.request_id))
        receipt = self.folder / "ipc" / asked.group / "tasks" / f"{asked.request_id}.resumed"
        if acknowledges and not receipt.exists():
            receipt.touch()
        self.run(_nothing())
        if ok or acknowledges:
            asked.taken_late += 1
        if ok:
            self.received[asked.group].clear()
        elif acknowledges:
            self.received[asked.group].append(Received(asked.request_id, None))
        runner.finish(None if ok else "exit code 1")
        self.run(_nothing())

    def drive_to_rest(self) -> None:
        """Let every agent die and every runner work: then every answer must have arrived."""
        for agent in self.agents:
            self.kill(agent)
        self.clock.move(ANSWER_TTL + timedelta(days=1))
        self.run(self.world.expiry.end_due())
        for _ in range(6 * len(self.asked) + 6):
            self.clock.move(timedelta(hours=1))
            for pending in self.world.index:
                if pending.state is State.UNDELIVERED and pending.group == "resumable":
                    self.run(self.world.delivery.retry(pending, "ana"))
            self.run(_nothing())
            for runner in [r for r in self.launcher.runners if not r.end.done()]:
                self.end_runner(runner, ok=True, acknowledges=False)

    def check_at_rest(self, asked: Asked) -> None:
        pending = self.found(asked)
        assert pending.ending is not None
        if pending.group == "kept" and pending.state is State.UNDELIVERED:
            assert pending.late.error
            return
        assert pending.state is State.CLOSED, pending
        if pending.ending.outcome.resumes:
            assert asked.taken_live + asked.taken_late == 1, (asked, pending)


async def _nothing() -> None:
    return


def _result_of(task: "asyncio.Future[Any]") -> Any:
    """Return what the task has returned so far; None if it has not, or has failed."""
    return task.result() if task.done() and task.exception() is None else None


@pytest.mark.parametrize("in_order", [True, False])
def test_an_answer_is_told_again_after_a_death_and_not_after_an_end_in_order(
    *, in_order: bool
) -> None:
    machine = Machine()
    machine.somebody_has_asked(RESUMABLE)
    asked = machine.ask(RESUMABLE, has_default=False)

    machine.agent_ends_right_after_an_answer(asked, "ana", in_order)
    machine.a_resumed_session_is_told_again_what_it_may_have_lost()

    assert machine.told == [set() if in_order else {asked.request_id}]
    machine.teardown()


@pytest.mark.parametrize("host_sees_it", [True, False])
def test_an_answer_that_died_with_who_took_it_is_told_by_a_resume(*, host_sees_it: bool) -> None:
    machine = Machine()
    machine.somebody_has_asked(RESUMABLE)
    asked = machine.ask(RESUMABLE, has_default=False)

    machine.agent_dies_before_it_has_passed_the_answer_on(asked, "ana", host_sees_it)
    machine.runner_ends(ok=True, acknowledges=False)

    assert machine.found(asked).delivered is DeliveryPath.LATE
    machine.teardown()


@pytest.mark.parametrize("host_dies", [True, False])
def test_an_answer_that_died_with_who_was_faster_than_the_host_is_told_by_a_resume(
    *, host_dies: bool
) -> None:
    machine = Machine()
    asked = machine.somebody_has_asked(RESUMABLE)

    machine.a_process_takes_the_answer_as_the_host_does_and_dies(asked, "ana", host_dies)
    machine.runner_ends(ok=True, acknowledges=False)

    assert machine.found(asked).delivered is DeliveryPath.LATE
    assert machine.found(asked).late.taker_died
    machine.teardown()


@pytest.mark.parametrize("turns", range(21))
def test_wherever_who_asks_or_answers_is_cancelled_memory_and_disk_agree(turns: int) -> None:
    machine = Machine()
    asked = machine.ask_and_be_cancelled(KEPT, None, turns)
    machine.what_is_known_is_what_is_on_the_disk()

    machine.answer_and_be_cancelled(asked, "ana", "1", turns)

    machine.what_is_known_is_what_is_on_the_disk()
    machine.teardown()


def test_an_answer_is_told_again_though_an_earlier_runner_of_the_session_had_ended_well() -> None:
    machine = Machine()
    first = machine.somebody_has_asked(RESUMABLE)
    machine.answer_after_the_agent_died(first, "ana")
    machine.runner_ends(ok=True, acknowledges=False)
    received = machine.ask(RESUMABLE, has_default=False)
    late = machine.ask(RESUMABLE, has_default=False)
    machine.answer(received, "ana", "2")
    machine.check_answer(received)
    machine.host_restarts()

    machine.answer_after_the_agent_died(late, "ana")
    machine.a_resumed_session_is_told_again_what_it_may_have_lost()

    assert machine.told == [set(), {received.request_id}]
    machine.teardown()


def test_no_order_of_events_loses_doubles_or_changes_an_answer(proof: Any) -> None:
    examples = proof.choose(sample=40, prove=1_500, everything=20_000)
    steps = proof.choose(sample=30, prove=50, everything=80)
    proof.report("model", sequences=examples, steps_each=steps)

    run_state_machine_as_test(
        seed(SEED)(Machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
