"""End what nobody ended: expiry, the asker's own default, and orphans.

Silence is never consent: a default counts only where the asker set one, and then the agent is told
that nobody answered.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from pynchy.bridge import matching
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.ledger import Chosen, QuestionLedger
from pynchy.bridge.retention import Retention
from pynchy.errors import AlreadyOver, UnknownQuestion
from pynchy.events import EventKind
from pynchy.fair_order import fair_order
from pynchy.model import Draft, Ending, OutcomeKind, PendingQuestion, State
from pynchy.pending.base import Key

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_RETRY_AFTER = timedelta(seconds=10)
# So many are ended before it is looked again whose turn it is.
_BATCH = 20
NOBODY = "nobody answered in time"


@dataclass(frozen=True, slots=True)
class StaleQuestion:
    """A question that a sweep would end, or can only report, and why."""

    pending: PendingQuestion
    why: str
    ending: Ending | None
    is_orphan: bool = False


class Expiry:
    """Watches the deadlines of every open question."""

    def __init__(
        self,
        ledger: QuestionLedger,
        delivery: Delivery,
        retention: Retention,
    ) -> None:
        self._ledger = ledger
        self._delivery = delivery
        self._retention = retention
        self._due: list[tuple[datetime, Key]] = []
        self._failing: set[Key] = set()

    def watch(self, pending: PendingQuestion) -> None:
        """Remember when the question is due."""
        heapq.heappush(self._due, (pending.due_at, pending.key))

    async def run(self) -> None:
        """End what is due until cancelled. Nothing else is done here: no deadline waits for it."""
        while True:
            await self.end_due()
            await asyncio.sleep(_POLL_SECONDS)

    async def end_due(self) -> None:
        """End every question that is due. One that cannot be ended is tried again soon."""
        while due := self._next_due():
            for key in due:
                await self._end_one(key)

    def _next_due(self) -> list[Key]:
        """Take some of what is due, in turns: a group with much of it keeps itself waiting."""
        now = self._ledger.now()
        due: list[tuple[datetime, Key]] = []
        while self._due and self._due[0][0] <= now:
            due.append(heapq.heappop(self._due))
        turns = fair_order(due, lambda each: each, lambda each: each[1][0])
        for each in turns[_BATCH:]:
            heapq.heappush(self._due, each)
        return [key for _, key in turns[:_BATCH]]

    async def _end_one(self, key: Key) -> None:
        try:
            pending = await self._end(key, self._if_due)
        except Exception as exc:  # noqa: BLE001 - what is wrong with one keeps no other open
            self._tell_failed(key, exc)
            heapq.heappush(self._due, (self._ledger.now() + _RETRY_AFTER, key))
            return
        self._failing.discard(key)
        if pending is not None and pending.ending is None:
            self.watch(pending)

    def _tell_failed(self, key: Key, exc: Exception) -> None:
        if key not in self._failing:
            self._failing.add(key)
            about = {"group": key[0], "id": key[1]}
            log.error("expiry.question_failed", exc_info=exc, extra=about)

    async def sweep(self, *, dry_run: bool) -> list[StaleQuestion]:
        """Return what is stale and why; end what can be ended unless it is a dry run."""
        findings = await asyncio.to_thread(self._findings)
        if not dry_run:
            findings = [await self._end_stale(finding) for finding in findings]
            await self._retention.tidy()
        return findings

    async def _end_stale(self, finding: StaleQuestion) -> StaleQuestion:
        """End the question if it can be ended. Return what became of it."""
        key = finding.pending.key
        if finding.ending is None:
            return finding
        try:
            ended = await self._end(key, partial(self._if_stale, drafts=finding.pending.drafts))
        except Exception as exc:
            log.exception("expiry.question_failed", extra={"group": key[0], "id": key[1]})
            why = f"{finding.why}, but it cannot be ended now ({type(exc).__name__})"
            return replace(finding, why=why, ending=None)
        if ended is None or ended.ending is None:
            why = f"{finding.why}, but that has changed since"
            return replace(finding, why=why, ending=None)
        return finding

    async def _if_stale(
        self, pending: PendingQuestion, *, drafts: tuple[Draft, ...]
    ) -> Ending | tuple[()]:
        """Judge the question again as it is now: its cards change while a sweep goes on."""
        # Who has begun to answer since we looked is not cut off.
        if pending.drafts != drafts:
            return ()
        finding = await asyncio.to_thread(self._look_at, pending)
        return () if finding is None or finding.ending is None else finding.ending

    async def report_orphans(self) -> None:
        """Tell of every open question that an answer could not be delivered to, as things are."""
        for finding in await asyncio.to_thread(self._findings):
            if finding.pending.ending is None and finding.is_orphan:
                self._ledger.publish_about(EventKind.ORPHANED, finding.pending, finding.why)

    async def _end(
        self,
        key: Key,
        choose: Callable[[PendingQuestion], Chosen | Awaitable[Chosen]],
    ) -> PendingQuestion | None:
        try:
            return await self._ledger.commit(key, choose)
        except (AlreadyOver, UnknownQuestion):
            log.debug("expiry.overtaken", extra={"id": key[1]})
            return None

    async def _if_due(self, pending: PendingQuestion) -> Ending | tuple[()]:
        # Whoever begins to answer moves the deadline: there is no default any more.
        if pending.due_at > self._ledger.now():
            return ()
        # A default of many choices takes long.
        return await asyncio.to_thread(self._ending, pending)

    def _ending(self, pending: PendingQuestion) -> Ending:
        now = self._ledger.now()
        if pending.defaults_at is not None and pending.defaults_at <= now:
            answers = matching.defaults(pending.questions)
            return Ending(OutcomeKind.DEFAULTED, now, answers, reason=NOBODY)
        people = ", ".join(dict.fromkeys(draft.by for draft in pending.drafts))
        part = "approved" if pending.approvals_needed > 1 else "partly answered"
        reason = f"only {part} in time, by {people}" if people else NOBODY
        return Ending(OutcomeKind.EXPIRED, now, reason=reason)

    def _findings(self) -> list[StaleQuestion]:
        found = [self._look_at(pending) for pending in list(self._ledger.index)]
        return [finding for finding in found if finding is not None]

    def _look_at(self, pending: PendingQuestion | None) -> StaleQuestion | None:
        """Return what is stale about the question. It looks at the disk."""
        if pending is None:
            return None
        try:
            return self._finding(pending)
        except OSError as exc:
            about = {"group": pending.group, "why": exc.strerror}
            log.warning("group.unreadable", extra=about)
        except Exception:
            about = {"group": pending.group, "id": pending.request_id}
            log.exception("expiry.question_failed", extra=about)
        return None

    def _finding(self, pending: PendingQuestion) -> StaleQuestion | None:
        if pending.state is State.UNDELIVERED:
            return StaleQuestion(pending, f"answered, not delivered: {pending.late.error}", None)
        if pending.ending is not None:
            return None
        if pending.due_at <= self._ledger.now():
            return StaleQuestion(pending, "its deadline has passed", self._ending(pending))
        unreachable = self._delivery.route(pending).unreachable(pending)
        if unreachable is None:
            return None
        ending = Ending(OutcomeKind.UNDELIVERABLE, self._ledger.now(), reason=unreachable.why)
        is_final = unreachable.is_final
        return StaleQuestion(pending, unreachable.why, ending if is_final else None, is_orphan=True)
