"""Remember which answers a session may have lost, and restate them when it is resumed.

An answer that was received and then not followed by a sign of life before the runner died may never
have reached the model. Signs of life are another request of the session, the word of its runner
that it waits or has finished, and an orderly end. That an answer is told once too often does no
harm; that it is never told would.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from pynchy.ipc.base import GroupMailbox, MailboxDirectory
from pynchy.model import GroupName, PendingQuestion, RequestId, SessionId
from pynchy.pending.base import History, Key, OpenQuestions, QuestionObserver
from pynchy.session import Session, Unconfirmed
from pynchy.tracking.tracker import SessionTracker

log = logging.getLogger(__name__)


class LostAnswers(QuestionObserver):
    """Marks what was handed over, and takes the mark away at a sign of life."""

    def __init__(
        self,
        tracker: SessionTracker,
        questions: OpenQuestions,
        history: History,
        mailboxes: MailboxDirectory,
    ) -> None:
        self.tracker = tracker
        self.liveness = tracker.liveness
        self._questions = questions
        self._history = history
        self.mailboxes = mailboxes
        # Answers whose receipt we had not noticed yet when their session gave a sign of life.
        self._followed: set[Key] = set()

    def question_closed(self, pending: PendingQuestion) -> None:
        """See QuestionObserver."""
        self._followed.discard(pending.key)

    async def handed_over(self, pending: PendingQuestion, launch: str = "") -> None:
        """Remember, durably, that the session has the answer and nothing was heard of it since.

        `launch` is what received it, where that is known. Must be done before the answer counts
        as delivered: then a crash repeats it.
        """
        key = (pending.group, pending.session_id)
        session = self.tracker.get(*key)
        if session is None:
            return
        mark = Unconfirmed(pending.request_id, launch)
        mark = mark if launch else await self._by_whom(pending, session)
        if pending.key in self._followed:
            self._followed.discard(pending.key)
            return
        await self.tracker.mark(session, mark)

    async def confirm_activity(self, group: GroupName, session_id: SessionId) -> None:
        """Take it that what the session has received it has used."""
        if not session_id:
            return
        self.tracker.confirm((group, session_id))
        mailbox = self.mailboxes.of(group)
        for pending in self._questions.in_session(group, session_id):
            unnoticed = pending.ending is not None and pending.delivered is None
            has_it = unnoticed and await asyncio.to_thread(_has_answer, mailbox, pending)
            if has_it and self._questions.get(pending.key):
                self._followed.add(pending.key)

    async def to_restate(self, pending: PendingQuestion) -> list[PendingQuestion]:
        """Return the answers that the session's next prompt must tell again, oldest first."""
        session = self.tracker.get(pending.group, pending.session_id)
        marks = session.unconfirmed if session else ()
        used = 0
        for number, mark in enumerate(marks, start=1):
            if await self.liveness.ended_in_order(pending.group, mark):
                used = number  # who ended in order had used this one, and all before it
        self.tracker.confirm((pending.group, pending.session_id), used)
        found = [await self._find(pending.group, mark.request_id) for mark in marks[used:]]
        return [p for p in found if p and p.ending and p.key != pending.key]

    async def _by_whom(self, pending: PendingQuestion, session: Session) -> Unconfirmed:
        """Return the mark with what must have received the answer, as far as that can be told."""
        mark = Unconfirmed(pending.request_id)
        launch = session.launches[-1] if session.launches else ""
        if launch and self.liveness.runner_on(*session.key):
            return replace(mark, launch=launch)
        if leases := await self.liveness.leases_of(*session.key):
            return replace(mark, leases=leases)
        # It has ended before we noticed its receipt: then it was what had asked.
        asker = (pending.lease,) if pending.lease else ()
        left = await self.liveness.is_left_behind(pending.group, pending.lease)
        if launch and session.launched_at and not left and session.launched_at <= pending.timestamp:
            return replace(mark, launch=launch)
        return replace(mark, leases=asker)

    async def _find(self, group: GroupName, request_id: RequestId) -> PendingQuestion | None:
        known = self._questions.get((group, request_id))
        return known or await self._history.find(group, request_id)


def _has_answer(mailbox: GroupMailbox, pending: PendingQuestion) -> bool:
    """True if the agent, and not the host, has the answer, as far as it tells."""
    request_id = pending.request_id
    if not mailbox.is_received(request_id) or mailbox.is_ours(request_id, pending.late.claim):
        return False
    return not mailbox.taker(request_id) or mailbox.is_passed_on(request_id)
