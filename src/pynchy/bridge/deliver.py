"""Deliver how a question ended to whoever asked.

    response written ─► the waiter takes the receipt and passes it on ─► delivered live
           │
           ├─ the runner lives but does not wait ─► held ─► it asks for it, or it ends
           │  (or the session is parked on another question)
           └─ no runner lives ─► the host takes the receipt ─► resume ─► delivered late

The receipt is the arbiter: of waiter and host only one can create it, so the answer is delivered
on one path. The receipt of a process that died before it passed the answer on is taken back.
Delivering again after a crash is harmless.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pynchy import wire
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import (
    Delivered,
    Dismissed,
    GaveUp,
    Held,
    Retried,
    RuleNotMade,
    TakerDied,
)
from pynchy.bridge.permissions import PermissionRules
from pynchy.bridge.resume import NO_LAUNCHER, POLL_SECONDS, Arrived, LateDelivery, other_parked
from pynchy.errors import AlreadyOver, IllegalTransition, NotUndelivered, UnknownQuestion
from pynchy.ipc.base import GroupMailbox, MailboxDirectory
from pynchy.model import DeliveryPath, GroupName, PendingQuestion, State
from pynchy.pending.base import Key
from pynchy.sources.base import AnswerRoute, Unreachable
from pynchy.tracking.redelivery import LostAnswers

# There may be thousands, for days; a receipt, a retry and a dismissal wake them at once.
UNDELIVERED_POLL_SECONDS = 30.0
# After the first few looks the answers of one group are looked at so often in all, and no more: a
# group that has hundreds of them waiting keeps itself waiting. A receipt wakes each at once.
_PROMPT_LOOKS = 5
_LOOKS_PER_SECOND = 50


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """How long to wait until nobody is taken to be there, and to keep what could not arrive."""

    receipt_grace: timedelta
    keep_undelivered: timedelta


class Delivery:
    """Sees each ended question to whoever asked, by the route of its source."""

    def __init__(
        self,
        ledger: QuestionLedger,
        routes: Mapping[str, AnswerRoute],
        rules: PermissionRules,
    ) -> None:
        self._ledger = ledger
        self._routes = routes
        self._rules = rules

    def route(self, pending: PendingQuestion) -> AnswerRoute:
        """Return the way back to whoever asked."""
        return self._routes.get(pending.source) or MissingRoute(self._ledger, pending.source)

    async def respond(self, key: Key) -> None:
        """Put the outcome where whoever asked finds it."""
        pending = self._ledger.get(key)
        if pending.delivered is not None:
            return
        if not pending.rule_problem and (why := await self._rules.keep(pending)):
            pending = await self._ledger.apply(key, RuleNotMade(why))
        await self.route(pending).respond(pending)

    async def settle_covered(self, key: Key) -> None:
        """Let the rule that the answer made end what else is open and covered by it, each once."""
        made = self._ledger.get(key)
        for other in self._rules.covered_by(made):
            if self._ledger.is_home(other):
                with suppress(AlreadyOver, UnknownQuestion):
                    await self._ledger.commit(
                        other.key, lambda now: self._rules.end_by_rule(now, made.request_id)
                    )

    async def see_through(self, key: Key) -> None:
        """Return when whoever asked has the outcome, for which there is a response."""
        # Nothing of the question is held here: this may take days.
        if self._ledger.get(key).delivered is None:
            await self.route(self._ledger.get(key)).see_through(key)
        await self._rules.keep_grant(self._ledger.get(key))

    async def retry(self, pending: PendingQuestion, by: str) -> PendingQuestion:
        """Start a failed delivery again, or make its next attempt now.

        Raise NotUndelivered if none has failed, or an attempt is under way.
        """
        if pending.state is State.RESUMING and pending.late.retry_at is None:
            raise NotUndelivered(f"{pending.short_id}: an attempt to deliver it is under way")
        if pending.state not in {State.UNDELIVERED, State.RESUMING}:
            raise NotUndelivered(_nothing_failed(pending))
        if why := self.route(pending).why_no_retry(pending):
            raise NotUndelivered(f"{pending.short_id}: {why}")
        return await _apply_if_undelivered(self._ledger, pending, Retried(by, self._ledger.now()))

    async def dismiss(self, pending: PendingQuestion, by: str) -> PendingQuestion:
        """Close an answer that could not be delivered. Raise NotUndelivered if it still may be."""
        return await dismiss(self._ledger, pending, by)


class MissingRoute:
    """The AnswerRoute of a source that is not set up any more: answers are kept until it is."""

    def __init__(self, ledger: QuestionLedger, source: str) -> None:
        self._ledger = ledger
        self._why = f"its source {source} is not set up"

    async def respond(self, pending: PendingQuestion) -> None:
        """See AnswerRoute: there is nowhere to put it."""

    async def see_through(self, key: Key) -> None:
        """See AnswerRoute."""
        if self._ledger.get(key).state is not State.UNDELIVERED:
            await self._ledger.apply(key, GaveUp(self._why))
        while self._ledger.get(key).delivered is None:
            version = self._ledger.version(key)
            await self._ledger.changed(key, version, UNDELIVERED_POLL_SECONDS)

    async def tell_unseen(self, pending: PendingQuestion, why: str) -> None:
        """See AnswerRoute: there is nobody to tell."""

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """See AnswerRoute."""
        del pending
        return self._why

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """See AnswerRoute."""
        del pending
        return Unreachable(self._why, is_final=False)

    def problem(self, group: GroupName) -> str | None:
        """See AnswerRoute."""
        return f"group {group}: a question is open and {self._why}"


class MailboxRoute:
    """The AnswerRoute to agents that ask through a mailbox."""

    def __init__(
        self,
        ledger: QuestionLedger,
        mailboxes: MailboxDirectory,
        lost_answers: LostAnswers,
        late: LateDelivery,
        limits: DeliveryLimits,
    ) -> None:
        self._ledger = ledger
        self._mailboxes = mailboxes
        self._lost_answers = lost_answers
        self._liveness = lost_answers.liveness
        self._late = late
        self._grace = limits.receipt_grace
        self._keep_undelivered = limits.keep_undelivered
        self._waiting: Counter[GroupName] = Counter()

    async def respond(self, pending: PendingQuestion) -> None:
        """See AnswerRoute."""
        mailbox = self._mailboxes.of(pending.group)
        response = wire.response_json(pending)
        await asyncio.to_thread(mailbox.respond, pending.request_id, response)

    async def see_through(self, key: Key) -> None:
        """See AnswerRoute."""
        pending = self._ledger.get(key)
        mailbox = self._mailboxes.of(pending.group)
        if pending.ending is not None and not await self._must_hear(key, mailbox):
            await self._delivered(key, DeliveryPath.NONE)
            return
        grace_ends = self._ledger.now() + self._grace
        looks = 0
        while (pending := self._ledger.get(key)).delivered is None:
            version = self._ledger.version(key)
            if not await self._advance(pending, mailbox, grace_ends):
                looks += 1
                await self._wait(key, version, looks)

    async def _wait(self, key: Key, version: int, looks: int) -> None:
        """Return when something has changed since that version, or it is time for another look."""
        if self._ledger.get(key).state is State.UNDELIVERED:
            await self._ledger.changed(key, version, UNDELIVERED_POLL_SECONDS)
            return
        group = key[0]
        self._waiting[group] += 1
        share = self._waiting[group] / _LOOKS_PER_SECOND if looks > _PROMPT_LOOKS else 0.0
        try:
            await self._ledger.changed(key, version, max(POLL_SECONDS, share))
        finally:
            self._waiting[group] -= 1

    async def tell_unseen(self, pending: PendingQuestion, why: str) -> None:
        """See AnswerRoute."""
        mailbox = self._mailboxes.of(pending.group)
        note = wire.unseen_json(pending.request_id, why) if why else None
        await asyncio.to_thread(mailbox.note_unseen, pending.request_id, note)

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """See AnswerRoute."""
        return None if self._late.can_resume(pending.group) else NO_LAUNCHER

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """See AnswerRoute."""
        if not self._mailboxes.of(pending.group).exists():
            return Unreachable("its group's folder is gone", is_final=True)
        lives = self._liveness.is_lease_live
        if self._late.can_resume(pending.group) or not pending.lease:
            return None
        if lives(pending.group, pending.lease):
            return None
        why = "the agent that asked is gone and its group has no launcher to resume it"
        return Unreachable(why, is_final=False)

    def problem(self, group: GroupName) -> str | None:
        """See AnswerRoute."""
        try:
            if self._mailboxes.of(group).exists():
                return self._late.problem(group)
        except OSError as exc:
            return f"group {group}: its folder cannot be looked at ({exc.strerror})"
        return f"group {group}: its folder is gone while it has open questions; see pynchy sweep"

    async def _must_hear(self, key: Key, mailbox: GroupMailbox) -> bool:
        """True if the agent is to be told how it ended, even if a runner has to be started.

        An agent that parks in this very moment must be: it would wait for ever. So it says that
        it parks before it looks for a response, and we look for its word after we have responded.
        """
        while not (pending := self._ledger.get(key)).resumes:
            version = self._ledger.version(key)
            if not await asyncio.to_thread(mailbox.is_being_parked, pending.request_id):
                # Its word may have been read between the two looks.
                return self._ledger.get(key).resumes
            await self._ledger.changed(key, version, POLL_SECONDS)
        return True

    async def _advance(
        self, pending: PendingQuestion, mailbox: GroupMailbox, grace_ends: datetime
    ) -> bool:
        """Take the delivery one step further. Return False if there is nothing to do but wait."""
        claim = pending.late.claim
        ours = bool(claim) and await asyncio.to_thread(mailbox.is_ours, pending.request_id, claim)
        if not ours and await asyncio.to_thread(mailbox.is_received, pending.request_id):
            return await self._taken_live(pending, mailbox)
        if ours and await asyncio.to_thread(mailbox.is_resumed, pending.request_id):
            arrived = Arrived(DeliveryPath.LATE, self._late.launch_of(pending))
            return await self._received(pending, arrived)
        if pending.state is State.UNDELIVERED:
            if ours:  # a crash may have undone the release
                await asyncio.to_thread(mailbox.release, pending.request_id, claim)
            return await self._dismiss_if_old(pending)
        if not ours and await self._must_wait(pending, mailbox, grace_ends):
            return await self._hold(pending)
        # Who took the answer and ended while we looked is not gone without it.
        if not ours and await asyncio.to_thread(mailbox.is_received, pending.request_id):
            return await self._taken_live(pending, mailbox)
        if not self._late.can_resume(pending.group):
            await self._ledger.apply(pending.key, GaveUp(_why_kept(pending)))
            return True
        result = await self._late.resume(pending)
        return await self._received(pending, result) if isinstance(result, Arrived) else result

    async def _taken_live(self, pending: PendingQuestion, mailbox: GroupMailbox) -> bool:
        """Wait until who took the answer has passed it on; let somebody else have it if it died."""
        taker = await asyncio.to_thread(mailbox.taker, pending.request_id)
        # Before we look whether it has passed the answer on: it may do so right before its end.
        lives = bool(taker) and await self._liveness.lives(pending.group, taker)
        if taker and not await asyncio.to_thread(mailbox.is_passed_on, pending.request_id):
            if lives:
                return False
            # Before its receipt is gone, which alone tells of it.
            await self._ledger.apply(pending.key, TakerDied())
            await asyncio.to_thread(mailbox.take_back, pending.request_id)
            return True
        return await self._received(pending, Arrived(DeliveryPath.LIVE, ""))

    async def _received(self, pending: PendingQuestion, arrived: Arrived) -> bool:
        """Take it that the agent has the answer; whether it lives to use it is to be seen."""
        if arrived.launch is not None:
            await self._lost_answers.handed_over(pending, arrived.launch)
        return await self._delivered(pending.key, arrived.path)

    async def _delivered(self, key: Key, path: DeliveryPath) -> bool:
        await self._ledger.apply(key, Delivered(path, self._ledger.now()))
        return True

    async def _dismiss_if_old(self, pending: PendingQuestion) -> bool:
        """Stop keeping an answer that nobody has come for in all that time; history keeps it."""
        ended_at = pending.ending.at if pending.ending else pending.timestamp
        if self._ledger.now() - ended_at < self._keep_undelivered:
            return False
        await dismiss(self._ledger, pending, "pynchy, after answer_ttl")
        return True

    async def _must_wait(
        self, pending: PendingQuestion, mailbox: GroupMailbox, grace_ends: datetime
    ) -> bool:
        """True if the answer may not go late yet: the session lives, or is parked on another."""
        if self._is_behind(pending) or await self._runner_lives(pending, grace_ends):
            return True
        return await asyncio.to_thread(mailbox.is_being_parked, pending.request_id)

    def _is_behind(self, pending: PendingQuestion) -> bool:
        """True if the session is parked on another question, whose call a prompt would displace."""
        return not pending.parked and any(
            not q.is_at_rest for q in other_parked(self._ledger, pending)
        )

    async def _runner_lives(self, pending: PendingQuestion, grace_ends: datetime) -> bool:
        if await self._liveness.is_session_busy(pending):
            return True
        return not pending.lease and self._ledger.now() < grace_ends

    async def _hold(self, pending: PendingQuestion) -> bool:
        waits = pending.call_waits and self._ledger.now() < pending.wait_until
        is_held = pending.state is State.HELD and not pending.late.error
        if (waits and not self._is_behind(pending)) or is_held:
            return False
        await self._ledger.apply(pending.key, Held())
        return True


async def dismiss(ledger: QuestionLedger, pending: PendingQuestion, by: str) -> PendingQuestion:
    """Stop keeping an answer that could not be delivered. Raise NotUndelivered."""
    if pending.state is not State.UNDELIVERED:
        raise NotUndelivered(_nothing_failed(pending))
    return await _apply_if_undelivered(ledger, pending, Dismissed(by, ledger.now()))


def _why_kept(pending: PendingQuestion) -> str:
    """Say why an answer waits to be asked for."""
    if not pending.late.taker_died:
        return NO_LAUNCHER
    return "received, then its process died; its group has no launcher, kept for check_answer"


def _nothing_failed(pending: PendingQuestion) -> str:
    short_id = pending.short_id
    if pending.ending is None:
        return (
            f"{short_id} is open, so there is no answer to deliver yet; to end it without one: "
            f"pynchy decline {short_id}"
        )
    return f"{short_id} is {pending.state}; no delivery has failed"


async def _apply_if_undelivered(
    ledger: QuestionLedger, pending: PendingQuestion, step: Retried | Dismissed
) -> PendingQuestion:
    try:
        return await ledger.apply(pending.key, step)
    except IllegalTransition as exc:  # it has gone on since it was looked at
        raise NotUndelivered(f"{pending.short_id}: it is being delivered just now") from exc
