"""The way back to programs that ask by the title of their terminal: the answer is typed there.

    response ─► `pynchy watch` takes the receipt ─► types it ─► says so ─► delivered
                    │                                  └─ died in between ─► may have been typed
                    └─ the program asks no more, or the terminal is gone ─► not typed

What cannot be typed now is never typed later: it would be read by another prompt. So it is kept for
nobody, and the card says what became of it.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from pynchy.bridge.deliver import DeliveryLimits, MailboxRoute
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import Delivered, Dismissed, GaveUp, Held, TakerDied
from pynchy.bridge.resume import LateDelivery
from pynchy.ipc.base import GroupMailbox, MailboxDirectory
from pynchy.model import DeliveryPath, GroupName, PendingQuestion, State
from pynchy.pending.base import Key, OpenQuestions, QuestionObserver
from pynchy.sources.base import MAILBOX, SourceHandler, Unreachable, open_of
from pynchy.tracking.redelivery import LostAnswers
from pynchy.wire import PHUX, TERMINAL

ASKED_ITSELF = "the agent has asked it in another way"
_LOOK_SECONDS = 1.0
_GONE = "its terminal is gone"
_NOT_TYPED, _MAYBE = "was not typed", "may have been typed"
_NOT_YET = "is not typed yet: its program does not read just now, or somebody types there"
# Who says it for itself comes before what is read off its terminal.
_STRENGTH = {MAILBOX: 2, PHUX: 1, TERMINAL: 0}


def same_asks(index: OpenQuestions, pending: PendingQuestion) -> list[PendingQuestion]:
    """Return what is open and the same question of the agent, asked in another way.

    Two terminals that use one id are two agents.
    """
    name = _ask_name(pending)
    return [
        other
        for other in index
        if other.ending is None
        and other.group == pending.group
        and other.source != pending.source
        and name
        and _ask_name(other) == name
    ]


def is_stronger(one: PendingQuestion, other: PendingQuestion) -> bool:
    """True if it is the first of the two that people are asked."""
    return _STRENGTH[one.source] > _STRENGTH[other.source]


def _ask_name(pending: PendingQuestion) -> str:
    """Return what the agent calls the question; empty if nothing else could be the same."""
    if pending.source not in _STRENGTH:
        return ""
    return pending.request_id if pending.source == MAILBOX else pending.ask_id


class TerminalRoute(MailboxRoute, QuestionObserver):
    """The AnswerRoute to terminals that `pynchy watch` reads the titles of."""

    def __init__(
        self,
        ledger: QuestionLedger,
        mailboxes: MailboxDirectory,
        lost_answers: LostAnswers,
        late: LateDelivery,
        limits: DeliveryLimits,
    ) -> None:
        super().__init__(ledger, mailboxes, lost_answers, late, limits)
        self._lost: dict[Key, str] = {}
        ledger.subscribe(self)

    async def run(self, handler: SourceHandler) -> None:
        """Clear what is open and asked by terminals that are gone, until cancelled."""
        while True:
            for pending in open_of(self._ledger.index, TERMINAL):
                if pending.ending is None and not await self._is_there(pending):
                    await handler.cleared(TERMINAL, *pending.key, _GONE)
            await asyncio.sleep(_LOOK_SECONDS)

    def lose(self, key: Key, reason: str, *, maybe_typed: bool) -> None:
        """The program asks it no more: an answer that was not typed yet never is."""
        if self._ledger.index.get(key) is not None:
            self._lost[key] = f"{_MAYBE if maybe_typed else _NOT_TYPED}: {reason}"
            self._ledger.notify(key)

    def question_closed(self, pending: PendingQuestion) -> None:
        """See QuestionObserver."""
        self._lost.pop(pending.key, None)

    async def _advance(
        self, pending: PendingQuestion, mailbox: GroupMailbox, grace_ends: datetime
    ) -> bool:
        # Before the receipt: who is gone takes it no more.
        is_there = await self._is_there(pending)
        if await asyncio.to_thread(mailbox.is_received, pending.request_id):
            return await self._conclude(pending, mailbox, is_there=is_there)
        if is_there and pending.key not in self._lost:
            return await self._say_that_it_waits(pending, grace_ends)
        return await self._give_up(pending, self._lost.get(pending.key, f"{_NOT_TYPED}: {_GONE}"))

    async def _say_that_it_waits(self, pending: PendingQuestion, grace_ends: datetime) -> bool:
        if pending.state is State.HELD or self._ledger.now() < grace_ends:
            return False
        await self._ledger.apply(pending.key, Held(_NOT_YET))
        return True

    async def _conclude(
        self, pending: PendingQuestion, mailbox: GroupMailbox, *, is_there: bool
    ) -> bool:
        """Say what became of an answer that was about to be typed, as soon as that is known."""
        if await asyncio.to_thread(mailbox.is_passed_on, pending.request_id):
            step = Delivered(DeliveryPath.LIVE, self._ledger.now())
            await self._ledger.apply(pending.key, step)
            return True
        if pending.key in self._lost:
            return await self._give_up(pending, self._lost[pending.key])
        if is_there:
            return False
        await self._ledger.apply(pending.key, TakerDied())
        return await self._give_up(pending, f"{_MAYBE}: what was to type it died")

    async def _give_up(self, pending: PendingQuestion, why: str) -> bool:
        dismissed = Dismissed("pynchy", self._ledger.now())
        await self._ledger.apply(pending.key, GaveUp(why), dismissed)
        return True

    async def _is_there(self, pending: PendingQuestion) -> bool:
        try:
            return await self._liveness.lives(pending.group, pending.lease)
        except OSError:
            return True  # a look that fails proves nothing

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """See AnswerRoute."""
        del pending
        return "what was not typed then would be read by another prompt now"

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """See AnswerRoute."""
        if self._liveness.is_lease_live(pending.group, pending.lease):
            return None
        return Unreachable(_GONE, is_final=True)

    def problem(self, group: GroupName) -> str | None:
        """See AnswerRoute: a question of a terminal that is gone is cleared at once."""
        del group
        return None
