"""Several ledgers over one store, observers, and questions of other sources than the mailbox."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core import make_core, start
from tests.waiting import until

from pynchy.bridge.lifecycle import CallEnded, Delivered
from pynchy.config import Settings
from pynchy.core import Core
from pynchy.errors import AlreadyOver, MalformedRequest, NotUndelivered
from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    GroupName,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
    Reply,
    RequestId,
    ShortId,
    State,
)
from pynchy.pending.base import Key, QuestionObserver
from pynchy.sources.base import SourceQuestion, Unreachable
from pynchy.testing import NOON, FakeChannel, FakeClock, MemoryStore, make_pending

YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana", channel="local")
NO = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("No",)),), by="ben", channel="local")
KEY = make_pending().key


@asynccontextmanager
async def two_hosts(folder: Path) -> AsyncIterator[tuple[Core, Core]]:
    """Two hosts that share a store and nothing else."""
    store, cores = MemoryStore(), []
    async with asyncio.TaskGroup() as tasks:
        for name in ("one", "two"):
            channels = {"local": FakeChannel("local")}
            place = folder / name
            (place / "ipc").mkdir(parents=True)
            core = make_core(place, FakeClock(), Settings(), channels, store=store, host=name)
            cores.append(core)
            await start(core, tasks)
        yield cores[0], cores[1]
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


async def test_two_hosts_see_each_others_questions(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as (one, two):
        await one.ledger.record(make_pending())

        await until(lambda: two.index.get(KEY) is not None, "the other host to see it")
        await two.ledger.apply(KEY, CallEnded("cancelled"))

        await until(lambda: not one.ledger.get(KEY).call_waits, "the first host to see that")


async def test_two_hosts_yield_exactly_one_winner(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as (one, two):
        await one.ledger.record(make_pending())
        await until(lambda: two.index.get(KEY) is not None, "the other host to see it")

        told = await asyncio.gather(
            one.ledger.end(KEY, YES), two.ledger.end(KEY, NO), return_exceptions=True
        )

        won = [each for each in told if isinstance(each, PendingQuestion)]
        lost = [each for each in told if isinstance(each, AlreadyOver)]
        assert len(won) == len(lost) == 1
        assert lost[0].ending == won[0].ending


async def test_steps_that_two_hosts_make_at_once_are_both_kept(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as (one, two):
        await one.ledger.record(make_pending())
        await until(lambda: two.index.get(KEY) is not None, "the other host to see it")

        await asyncio.gather(
            one.ledger.apply(KEY, CallEnded("cancelled")),
            two.answers.decline(Reply("q1", "ana", "local", user_id="ana")),
        )

        [stored] = await one.store.load()
        assert not stored.pending.call_waits
        assert stored.ending is not None
        assert stored.ending.outcome is OutcomeKind.DECLINED


async def test_only_the_host_that_recorded_a_question_delivers_it(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as (one, two):
        for core in (one, two):
            core.mailboxes.of(GroupName("g1")).make()
        await one.ledger.record(make_pending())
        await until(lambda: two.index.get(KEY) is not None, "the other host to see it")

        await two.ledger.end(KEY, YES)

        responses = [core.mailboxes.of(GroupName("g1")).path / "responses" for core in (one, two)]
        await until((responses[0] / "q1.json").exists, "the response")
        assert not (responses[1] / "q1.json").exists()


class Observer(QuestionObserver):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def question_recorded(self, pending: PendingQuestion) -> None:
        self.heard.append(f"recorded {pending.request_id}")

    def question_ended(self, pending: PendingQuestion) -> None:
        self.heard.append(f"ended {pending.request_id}")


class Broken(QuestionObserver):
    def question_changed(self, pending: PendingQuestion) -> None:
        raise ZeroDivisionError(pending.request_id)


@pytest.fixture
def core(tmp_path: Path) -> Core:
    (tmp_path / "ipc").mkdir()
    channels = {"local": FakeChannel("local")}
    return make_core(tmp_path, FakeClock(), Settings(), channels, routes={"toy": ROUTE})


async def test_every_subscriber_hears_of_every_question(core: Core) -> None:
    first, second = Observer(), Observer()
    core.ledger.subscribe(first)
    core.ledger.subscribe(second)

    await core.ledger.record(make_pending())
    await core.ledger.end(KEY, YES)

    assert first.heard == second.heard == ["recorded q1", "ended q1"]


async def test_an_observer_that_fails_stops_nobody(core: Core) -> None:
    observer = Observer()
    core.ledger.subscribe(Broken())
    core.ledger.subscribe(observer)

    await core.ledger.record(make_pending())

    assert observer.heard == ["recorded q1"]
    assert core.ledger.get(KEY).request_id == "q1"


@dataclass
class ToyRoute:
    """The way back to an agent that has an interface of its own."""

    told: list[str] = field(default_factory=list)
    core: Core | None = None

    async def respond(self, pending: PendingQuestion) -> None:
        assert pending.ending is not None
        self.told.append(pending.ending.describe())

    async def see_through(self, key: Key) -> None:
        assert self.core is not None
        step = Delivered(DeliveryPath.LIVE, NOON)
        await self.core.ledger.apply(key, step)

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        return f"{pending.source} cannot"

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        return Unreachable(f"{pending.source} is away", is_final=False)

    def problem(self, group: GroupName) -> str | None:
        return f"{group} is away"


ROUTE = ToyRoute()
ASKED = SourceQuestion(
    GroupName("g1"), RequestId("q1"), (Question("Deploy?", options=(Option("Yes"), Option("No"))),)
)


@pytest.fixture
async def toy(core: Core) -> AsyncIterator[Core]:
    ROUTE.told.clear()
    ROUTE.core = core
    async with asyncio.TaskGroup() as tasks:
        await start(core, tasks)
        yield core
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


async def test_an_answer_goes_back_to_the_source_that_asked(toy: Core) -> None:
    await toy.ask_handler.asked("toy", ASKED)
    await toy.ask_handler.asked("toy", ASKED)

    await toy.answers.answer(Reply("q1", "ana", "local", values=("1",), user_id="ana"))

    await until(lambda: len(toy.index) == 0, "the question to be closed")
    assert len(ROUTE.told) == 1
    assert "Yes" in ROUTE.told[0]


async def test_what_its_source_took_back_is_cleared_and_no_answer(toy: Core) -> None:
    await toy.ask_handler.asked("toy", ASKED)

    await toy.ask_handler.cleared("toy", GroupName("g1"), RequestId("q1"), "answered there")

    await until(lambda: len(toy.index) == 0, "the question to be closed")
    closed = await toy.store.find(GroupName("g1"), RequestId("q1"))
    assert closed is not None
    assert closed.ending is not None
    assert (closed.ending.outcome, closed.ending.answers) == (OutcomeKind.CLEARED, ())
    assert closed.ending.reason == "answered there"


async def test_a_source_cannot_take_back_what_another_one_asked(toy: Core) -> None:
    await toy.ask_handler.asked("toy", ASKED)

    await toy.ask_handler.cleared("other", GroupName("g1"), RequestId("q1"), "not yours")

    [still_open] = toy.index
    assert still_open.ending is None


@pytest.mark.parametrize("wrong", ["default", "room"])
async def test_a_source_cannot_ask_what_an_agent_could_not(toy: Core, wrong: str) -> None:
    question = replace(ASKED.questions[0], default=("Yes", "No") if wrong == "default" else ())
    await toy.ask_handler.asked("toy", replace(ASKED, request_id=RequestId("q0")))
    if wrong == "room":
        toy.settings.__dict__["max_open_per_group"] = 1

    with pytest.raises(MalformedRequest, match="default" if wrong == "default" else "open"):
        await toy.ask_handler.asked("toy", replace(ASKED, questions=(question,)))

    assert len(toy.index) == 1


async def test_a_source_that_is_away_is_told_of_by_the_sweep(toy: Core) -> None:
    await toy.ask_handler.asked("toy", ASKED)

    [found] = await toy.expiry.sweep(dry_run=True)

    assert (found.why, found.ending, found.is_orphan) == ("toy is away", None, True)


async def test_an_answer_to_a_source_that_is_gone_is_kept_until_it_is_dismissed(toy: Core) -> None:
    await toy.ask_handler.asked("gone", ASKED)

    await toy.answers.answer(Reply("q1", "ana", "local", values=("1",), user_id="ana"))

    await until(lambda: toy.ledger.get(KEY).state is State.UNDELIVERED, "it to be kept")
    kept = toy.ledger.get(KEY)
    assert toy.delivery.route(kept).problem(kept.group) == (
        "group g1: a question is open and its source gone is not set up"
    )
    with pytest.raises(NotUndelivered, match="its source gone is not set up"):
        await toy.delivery.retry(kept, "ana")
    await toy.delivery.dismiss(kept, "ana")
    await until(lambda: len(toy.index) == 0, "the question to be closed")


async def test_questions_are_in_the_order_of_asking_after_a_restart(tmp_path: Path) -> None:
    store, folders = MemoryStore(), [tmp_path / "one", tmp_path / "two"]
    for place in folders:
        (place / "ipc").mkdir(parents=True)
    before, after = (
        make_core(place, FakeClock(), Settings(), {}, store=store) for place in folders
    )
    for number in (3, 1, 2):
        at = NOON + timedelta(minutes=number)
        key = RequestId(f"q{number}")
        await before.ledger.record(
            replace(make_pending(), request_id=key, short_id=ShortId(f"ab{number}c"), timestamp=at)
        )

    await after.ledger.load()

    asked = after.ledger.index.in_group(make_pending().group)
    assert [pending.request_id for pending in asked] == ["q1", "q2", "q3"]
