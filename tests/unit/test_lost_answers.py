"""Which answers are marked as received and not followed by a sign of life."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from pynchy.audit import AuditLog
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import Delivered
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailbox, Mailboxes
from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    GroupName,
    OutcomeKind,
    PendingQuestion,
    RequestId,
    SessionId,
    State,
)
from pynchy.pending.index import PendingIndex
from pynchy.testing import NOON, FakeClock, MemorySessions, MemoryStore, make_pending
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.table import SessionTable
from pynchy.tracking.tracker import SessionTracker

GROUP, SESSION = GroupName("g1"), SessionId("s1")
YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana")


@dataclass
class House:
    """Restating over fakes, and the mailbox of one group."""

    lost_answers: LostAnswers
    tracker: SessionTracker
    ledger: QuestionLedger
    mailbox: Mailbox
    sessions: MemorySessions

    async def answered(self, request_id: str) -> PendingQuestion:
        """Return a question of the session whose answer is there to be taken."""
        pending = make_pending(request_id, session_id=SESSION)
        await self.ledger.record(pending)
        ended = replace(pending, state=State.DELIVERING, ending=YES)
        self.ledger.index.put(ended)
        return ended

    async def marked(self) -> list[str]:
        """Return what would survive a crash."""
        kept = await self.sessions.load()
        return [mark.request_id for session in kept for mark in session.unconfirmed]


@pytest.fixture
def house(tmp_path: Path) -> House:
    audit = AuditLog(tmp_path / "audit", max_bytes=2**20, max_files=2)
    audit.open()
    store, sessions = MemoryStore(), MemorySessions()
    ledger = QuestionLedger(store, PendingIndex(), audit, FakeClock().now)
    mailboxes = Mailboxes(tmp_path, lambda _: None)
    mailboxes.of(GROUP).make()
    liveness = Liveness(mailboxes, Leases(30), {})
    tracker = SessionTracker(SessionTable(sessions, 10), ledger.index, audit, ledger.now, liveness)
    ledger.subscribe(tracker)
    lost_answers = LostAnswers(tracker, ledger.index, store, mailboxes)
    ledger.subscribe(lost_answers)
    return House(lost_answers, tracker, ledger, mailboxes.of(GROUP), sessions)


async def test_two_answers_that_are_received_at_once_are_both_marked(house: House) -> None:
    asked = [await house.answered(request_id) for request_id in ("q1", "q2")]

    await asyncio.gather(*(house.lost_answers.handed_over(pending) for pending in asked))

    assert sorted(await house.marked()) == ["q1", "q2"]


async def test_a_sign_of_life_before_the_receipt_is_noticed_counts(house: House) -> None:
    followed, other = await house.answered("q1"), await house.answered("q2")
    (house.mailbox.tasks.path / "q1.received").write_text("{}")

    await house.lost_answers.confirm_activity(GROUP, SESSION)
    await house.lost_answers.handed_over(followed)
    await house.lost_answers.handed_over(other)

    assert await house.marked() == ["q2"]


async def test_an_answer_was_not_marked_whose_id_had_been_used_before(house: House) -> None:
    key = (GROUP, RequestId("q1"))
    await house.ledger.record(make_pending("q1", session_id=SESSION, cards=()))
    await house.ledger.end(key, YES)
    (house.mailbox.tasks.path / "q1.received").write_text("{}")
    await house.lost_answers.confirm_activity(GROUP, SESSION)
    await house.ledger.apply(key, Delivered(DeliveryPath.NONE, NOON))
    await house.ledger.close(key)
    await house.ledger.history.prune(NOON + timedelta(days=1), 0)

    await house.lost_answers.handed_over(await house.answered("q1"))

    assert await house.marked() == ["q1"]


async def test_the_hosts_own_receipt_is_none_of_the_agents(house: House) -> None:
    pending = await house.answered("q1")
    late = replace(pending, late=replace(pending.late, claim="ours"))
    house.ledger.index.put(late)
    assert house.mailbox.claim(RequestId("q1"), "ours", NOON)

    await house.lost_answers.confirm_activity(GROUP, SESSION)
    await house.lost_answers.handed_over(late, "q1.1")

    assert await house.marked() == ["q1"]


async def test_a_question_without_a_session_is_not_marked(house: House) -> None:
    pending = make_pending("q1")
    await house.ledger.record(pending)

    await house.lost_answers.handed_over(pending)
    await house.lost_answers.confirm_activity(GROUP, SessionId(""))

    assert await house.sessions.load() == []
    assert await house.lost_answers.to_restate(pending) == []


async def test_only_the_newest_few_are_kept(house: House) -> None:
    for number in range(12):
        await house.lost_answers.handed_over(await house.answered(f"q{number}"))

    assert await house.marked() == [f"q{number}" for number in range(4, 12)]
