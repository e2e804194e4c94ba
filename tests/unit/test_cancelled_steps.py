"""Whoever makes a step of a question may be cancelled in the midst of it: the step is whole."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core import make_core, start
from tests.waiting import until

from pynchy.aio import cancelled_at_end, finish
from pynchy.bridge.lifecycle import CallEnded
from pynchy.config import Settings
from pynchy.core import Core
from pynchy.errors import MalformedRequest
from pynchy.model import (
    Answer,
    CardRef,
    CardState,
    DeliveryPath,
    Ending,
    OutcomeKind,
    PendingQuestion,
    Question,
    SessionId,
    State,
)
from pynchy.pending.base import QuestionObserver
from pynchy.session import Session, SessionState
from pynchy.sources.base import CODEX_TERMINAL, SourceQuestion
from pynchy.testing import (
    NOON,
    FakeChannel,
    FakeClock,
    MemorySessions,
    MemoryStore,
    make_pending,
)
from pynchy.tracking.table import SessionTable

YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana", channel="local")
KEY = make_pending().key
ASKED = SourceQuestion(KEY[0], KEY[1], (Question("Deploy?"),))


class Gate:
    """Where a write has been done, and whoever waits for it does not know that yet."""

    def __init__(self) -> None:
        self.is_open = True
        self._reached, self._opened = asyncio.Event(), asyncio.Event()

    async def passed(self) -> None:
        if not self.is_open:
            self._reached.set()
            await self._opened.wait()

    async def reached(self) -> None:
        await self._reached.wait()

    def open(self) -> None:
        self.is_open = True
        self._opened.set()

    async def cancel_there(self, work: Awaitable[object]) -> None:
        """Cancel whoever does the work when it is written, and let it be heard after that."""
        self.is_open = False
        task = asyncio.ensure_future(work)
        await self.reached()
        task.cancel()
        await asyncio.sleep(0)
        self.open()
        with pytest.raises(asyncio.CancelledError):
            await task


class SlowStore(MemoryStore):
    """A store whose disk is done before its caller is."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def record(self, pending: PendingQuestion) -> int:
        revision = await super().record(pending)
        await self.gate.passed()
        return revision

    async def update(self, pending: PendingQuestion, revision: int) -> int:
        revision = await super().update(pending, revision)
        await self.gate.passed()
        return revision

    async def end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        winner = await super().end(pending, ending)
        await self.gate.passed()
        return winner

    async def close(self, pending: PendingQuestion, revision: int) -> None:
        await super().close(pending, revision)
        await self.gate.passed()


class Observer(QuestionObserver):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def question_recorded(self, pending: PendingQuestion) -> None:
        self.heard.append(f"recorded {pending.state}")

    def question_changed(self, pending: PendingQuestion) -> None:
        self.heard.append(f"changed {pending.state}")

    def question_ended(self, pending: PendingQuestion) -> None:
        self.heard.append(f"ended {pending.state}")


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def core(tmp_path: Path, store: SlowStore) -> Core:
    (tmp_path / "ipc").mkdir()
    return make_core(
        tmp_path, FakeClock(), Settings(), {"local": FakeChannel("local")}, store=store
    )


@pytest.fixture
async def running(core: Core) -> AsyncIterator[Core]:
    async with cancelled_at_end() as tasks:
        await start(core, tasks)
        yield core


def finished() -> PendingQuestion:
    settled = CardRef("local", "", "m1", CardState.SETTLED)
    return replace(
        make_pending(cards=(settled,)),
        state=State.DELIVERING,
        ending=YES,
        delivered=DeliveryPath.LIVE,
    )


async def test_a_question_whose_asker_was_cancelled_was_on_the_disk_and_nowhere_else(
    core: Core, store: SlowStore
) -> None:
    observer = Observer()
    core.ledger.subscribe(observer)

    await store.gate.cancel_there(core.ledger.record(make_pending()))

    assert core.index.get(KEY) is not None
    assert observer.heard == ["changed open", "recorded open"]


async def test_a_question_that_a_rule_answers_ends_though_its_asker_is_cancelled(
    core: Core, store: SlowStore
) -> None:
    await store.gate.cancel_there(core.ledger.record(make_pending(), YES))

    assert core.ledger.get(KEY).ending == YES


async def test_a_step_whose_maker_was_cancelled_was_on_the_disk_and_nowhere_else(
    core: Core, store: SlowStore
) -> None:
    await core.ledger.record(make_pending())

    await store.gate.cancel_there(core.ledger.apply(KEY, CallEnded("cancelled")))

    assert not core.ledger.get(KEY).call_waits


async def test_an_answer_whose_giver_was_cancelled_was_on_the_disk_and_nowhere_else(
    core: Core, store: SlowStore
) -> None:
    observer = Observer()
    await core.ledger.record(make_pending())
    core.ledger.subscribe(observer)

    await store.gate.cancel_there(core.ledger.end(KEY, YES))

    assert core.ledger.get(KEY).ending == YES
    assert observer.heard[-1] == "ended delivering"


async def test_a_question_whose_closing_was_cancelled_was_open_in_memory_alone(
    core: Core, store: SlowStore
) -> None:
    await core.ledger.record(make_pending())
    core.index.put(finished())

    await store.gate.cancel_there(core.ledger.close(KEY))

    assert core.index.get(KEY) is None


async def test_who_waits_for_its_turn_at_a_question_is_cancelled_at_once(
    core: Core, store: SlowStore
) -> None:
    await core.ledger.record(make_pending())
    store.gate.is_open = False
    first = asyncio.ensure_future(core.ledger.apply(KEY, CallEnded("cancelled")))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(core.ledger.end(KEY, YES))
    await asyncio.sleep(0)

    second.cancel()
    await asyncio.wait([second])

    assert not first.done()
    assert core.ledger.get(KEY).ending is None
    first.cancel()


async def test_what_a_source_asks_again_after_a_broken_connection_was_seen_by_nobody(
    running: Core, store: SlowStore
) -> None:
    handler = running.ask_handler

    await store.gate.cancel_there(handler.asked(CODEX_TERMINAL, ASKED))
    known = await handler.asked(CODEX_TERMINAL, ASKED)

    assert known is not None
    assert known.ending is None
    await until(lambda: running.ledger.get(KEY).state is State.OPEN, "its card")


async def test_a_source_is_told_of_a_record_under_its_id_that_nobody_can_see(
    core: Core, store: SlowStore
) -> None:
    await store.record(make_pending())

    with pytest.raises(MalformedRequest, match="cannot be used"):
        await core.ask_handler.asked(CODEX_TERMINAL, ASKED)


async def test_a_host_that_stops_finishes_a_step_and_begins_nothing(
    core: Core, store: SlowStore, caplog: pytest.LogCaptureFixture
) -> None:
    async with cancelled_at_end() as tasks:
        await start(core, tasks)
        await core.ledger.record(make_pending())
        await until(lambda: _is_shown(core.ledger.get(KEY)), "its card")
        store.gate.is_open = False
        answering = tasks.create_task(core.ledger.end(KEY, YES))
        await store.gate.reached()
        asyncio.get_running_loop().call_soon(store.gate.open)

    assert answering.cancelled()
    assert core.ledger.get(KEY).ending == YES
    assert "observer_failed" not in caplog.text


def _is_shown(pending: PendingQuestion) -> bool:
    return all(card.state is CardState.SHOWN for card in pending.cards)


class SlowSessions(MemorySessions):
    """A store of sessions that writes a while after it was told what to write."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def keep(self, session: Session) -> None:
        writing = asyncio.ensure_future(self._write_later(session))
        await asyncio.shield(writing)  # as a thread, which goes on when nobody waits for it

    async def _write_later(self, session: Session) -> None:
        await self.gate.passed()
        await super().keep(session)


async def test_a_save_that_was_cancelled_was_written_over_a_later_one() -> None:
    sessions = SlowSessions()
    table = SessionTable(sessions, 10)
    session = Session(KEY[0], SessionId("s1"), SessionState.WORKING, since=NOON, started_at=NOON)
    table.put(session)

    sessions.gate.is_open = False
    first = asyncio.ensure_future(table.save(session.key))
    await sessions.gate.reached()
    first.cancel()
    sessions.gate.is_open = True
    table.put(replace(session, said="newer"))
    second = asyncio.ensure_future(table.save(session.key))
    for _ in range(5):
        await asyncio.sleep(0)
    sessions.gate.open()
    await asyncio.gather(first, second, return_exceptions=True)

    [kept] = await sessions.load()
    assert kept.said == "newer"


async def test_a_work_to_be_finished_is_waited_for_however_often_its_caller_is_cancelled() -> None:
    gate, done = Gate(), []
    gate.is_open = False

    async def work() -> None:
        await gate.passed()
        done.append("all")

    caller = asyncio.ensure_future(finish(work()))
    await gate.reached()
    for _ in range(3):
        caller.cancel()
        await asyncio.sleep(0)
    gate.open()
    await asyncio.wait([caller])

    assert caller.cancelled()
    assert done == ["all"]


async def test_a_caller_whose_time_is_over_hears_so_when_the_work_is_done() -> None:
    gate = Gate()
    gate.is_open = False
    asyncio.get_running_loop().call_later(0.05, gate.open)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await finish(gate.passed())

    assert gate.is_open


async def test_a_work_that_fails_after_its_caller_was_cancelled_is_the_cause_of_that() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        raise OSError("full")

    caller = asyncio.ensure_future(finish(work()))
    await asyncio.sleep(0)
    caller.cancel()

    with pytest.raises(asyncio.CancelledError) as cancelled:
        await caller
    assert str(cancelled.value.__cause__) == "full"
