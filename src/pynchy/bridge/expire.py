"""End what nobody ended: expiry, the asker's own default, and orphans.

Silence is never consent: a default counts only where the asker set one, and then the agent is told
that nobody answered.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pynchy.bridge import matching
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.retention import Retention
from pynchy.errors import AlreadyOver, UnknownQuestion
from pynchy.events import EventKind
from pynchy.model import Ending, OutcomeKind, PendingQuestion, State
from pynchy.pending.base import Key

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
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

    def watch(self, pending: PendingQuestion) -> None:
        """Remember when the question is due."""
        heapq.heappush(self._due, (pending.due_at, pending.key))

    async def run(self) -> None:
        """End what is due, and tidy now and then, until cancelled."""
        while True:
            try:
                await self.end_due()
                await self._retention.tidy_if_due()
            except Exception:
                log.exception("expiry.failed")
            await asyncio.sleep(_POLL_SECONDS)

    async def end_due(self) -> None:
        """End every question that is due."""
        while self._due and self._due[0][0] <= self._ledger.now():
            due_at, key = heapq.heappop(self._due)
            try:
                pending = await self._end(key, self._if_due)
            except Exception:
                heapq.heappush(self._due, (due_at, key))
                raise
            if pending is not None and pending.ending is None:
                self.watch(pending)

    async def sweep(self, *, dry_run: bool) -> list[StaleQuestion]:
        """Return what is stale and why; end what can be ended unless it is a dry run."""
        findings = await asyncio.to_thread(self._findings)
        if not dry_run:
            for finding in findings:
                if finding.ending is not None:
                    await self._end(finding.pending.key, self._if_stale)
            await self._retention.tidy()
        return findings

    async def report_orphans(self) -> None:
        """Tell of every open question that an answer could not be delivered to, as things are."""
        try:
            findings = await asyncio.to_thread(self._findings)
        except OSError:
            log.exception("expiry.orphans_failed")
            return
        for finding in findings:
            if finding.pending.ending is None and finding.is_orphan:
                self._ledger.publish_about(EventKind.ORPHANED, finding.pending, finding.why)

    async def _end(
        self, key: Key, choose: Callable[[PendingQuestion], Ending | tuple[()]]
    ) -> PendingQuestion | None:
        try:
            return await self._ledger.commit(key, choose)
        except (AlreadyOver, UnknownQuestion):
            log.debug("expiry.overtaken", extra={"id": key[1]})
            return None

    def _if_due(self, pending: PendingQuestion) -> Ending | tuple[()]:
        # Whoever begins to answer moves the deadline: there is no default any more.
        return self._ending(pending) if pending.due_at <= self._ledger.now() else ()

    def _if_stale(self, pending: PendingQuestion) -> Ending | tuple[()]:
        finding = self._finding(pending)
        return finding.ending if finding and finding.ending else ()

    def _ending(self, pending: PendingQuestion) -> Ending:
        now = self._ledger.now()
        if pending.defaults_at is not None and pending.defaults_at <= now:
            answers = matching.defaults(pending.questions)
            return Ending(OutcomeKind.DEFAULTED, now, answers, reason=NOBODY)
        people = ", ".join(dict.fromkeys(draft.by for draft in pending.drafts))
        reason = f"only partly answered in time, by {people}" if people else NOBODY
        return Ending(OutcomeKind.EXPIRED, now, reason=reason)

    def _findings(self) -> list[StaleQuestion]:
        found = [self._finding(pending) for pending in self._ledger.index]
        return [finding for finding in found if finding is not None]

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
