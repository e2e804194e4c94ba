"""Deliver how a question ended to the agent that asked.

    response written ─► the waiter takes the receipt ────────────────► delivered live
           │
           ├─ the runner lives but does not wait ─► held ─► it asks for it, or it ends
           │  (or the session is parked on another question)
           └─ no runner lives ─► the host takes the receipt ─► a runner is started with the
                                 answer ─► it says that it has it, or ends well ─► delivered late

The receipt is the arbiter: of waiter and host only one can create it, so the answer is delivered
on one path. Delivering again after a crash is harmless. What a runner received and may have lost
by dying is restated when its session is next resumed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from pynchy import wire
from pynchy.aio import FairSemaphore
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import (
    Delivered,
    Dismissed,
    GaveUp,
    Held,
    ResumeFailed,
    Resuming,
    Retried,
    Unparked,
)
from pynchy.bridge.prompt import resume_prompt
from pynchy.errors import NotUndelivered
from pynchy.ipc.mailbox import Mailbox, Mailboxes
from pynchy.launchers.base import Launch, Launcher, Runner, RunnerEnd
from pynchy.model import DeliveryPath, GroupName, PendingQuestion, SessionId, State
from pynchy.pending.index import Key
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.tracker import SessionTracker

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
# There may be thousands, for days; a receipt, a retry and a dismissal wake them at once.
UNDELIVERED_POLL_SECONDS = 30.0
_MAX_BACKOFF = timedelta(minutes=10)
STOPPED = "a person has stopped the runner"
NO_LAUNCHER = "the agent is gone and its group has no launcher; kept for check_answer"


@dataclass(frozen=True, slots=True)
class LateSettings:
    """How a group is resumed and how often that is tried."""

    launcher: Launcher
    attempts: int
    backoff: timedelta


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """How long to wait until nobody is taken to be there, and to keep what could not arrive."""

    receipt_grace: timedelta
    max_resumes: int
    keep_undelivered: timedelta


@dataclass(frozen=True, slots=True)
class SessionParts:
    """Who knows of sessions, and of what they may have lost."""

    tracker: SessionTracker
    lost_answers: LostAnswers


class Delivery:
    """Sees each ended question to its agent."""

    def __init__(
        self,
        ledger: QuestionLedger,
        mailboxes: Mailboxes,
        sessions: SessionParts,
        late: Mapping[GroupName, LateSettings],
        limits: DeliveryLimits,
    ) -> None:
        self._ledger = ledger
        self._mailboxes = mailboxes
        self._tracker = sessions.tracker
        self._lost_answers = sessions.lost_answers
        self._late = late
        self._grace = limits.receipt_grace
        self._keep_undelivered = limits.keep_undelivered
        self._turns = FairSemaphore(limits.max_resumes)
        # What a person stopped before its runner was there to be stopped.
        self._stopped: set[Key] = set()
        self._under_way: set[Key] = set()
        # Weak: there are as many sessions as agents ever were, and a lock is needed for a moment.
        self._control: WeakValueDictionary[tuple[GroupName, SessionId], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def respond(self, key: Key) -> None:
        """Write the response, for whoever waits."""
        pending = self._ledger.get(key)
        if pending.delivered is None:
            mailbox = self._mailboxes.of(pending.group)
            response = wire.response_json(pending)
            await asyncio.to_thread(mailbox.respond, pending.request_id, response)

    async def see_through(self, key: Key) -> None:
        """Return when the agent has the outcome, for which there is a response."""
        pending = self._ledger.get(key)
        if pending.delivered is not None:
            return
        mailbox = self._mailboxes.of(pending.group)
        if pending.ending is not None and not await self._must_hear(key, mailbox):
            await self._delivered(key, DeliveryPath.NONE)
            return
        grace_ends = self._ledger.now() + self._grace
        while (pending := self._ledger.get(key)).delivered is None:
            version = self._ledger.version(key)
            if not await self._advance(pending, mailbox, grace_ends):
                undelivered = self._ledger.get(key).state is State.UNDELIVERED
                look = UNDELIVERED_POLL_SECONDS if undelivered else POLL_SECONDS
                await self._ledger.changed(key, version, look)

    async def retry(self, pending: PendingQuestion, by: str) -> PendingQuestion:
        """Start a failed delivery again, or make its next attempt now.

        Raise NotUndelivered if none has failed, or an attempt is under way.
        """
        if pending.state is State.RESUMING and pending.late.retry_at is None:
            raise NotUndelivered(f"{pending.short_id}: an attempt to deliver it is under way")
        if pending.state not in {State.UNDELIVERED, State.RESUMING}:
            raise NotUndelivered(f"{pending.short_id} is {pending.state}; no delivery has failed")
        if pending.group not in self._late:
            raise NotUndelivered(f"{pending.short_id}: {NO_LAUNCHER}")
        return await self._ledger.apply(pending.key, Retried(by, self._ledger.now()))

    async def dismiss(self, pending: PendingQuestion, by: str) -> PendingQuestion:
        """Close an answer that could not be delivered. Raise NotUndelivered if it still may be."""
        if pending.state is not State.UNDELIVERED:
            raise NotUndelivered(f"{pending.short_id} is {pending.state}; no delivery has failed")
        return await self._ledger.apply(pending.key, Dismissed(by, self._ledger.now()))

    async def halt(self, group: GroupName, session_id: SessionId) -> bool:
        """Let no runner be put on the session for the answers that are on their way to it now.

        Return, once they are kept as undelivered, whether there were any.
        """
        halted = []
        for pending in self._ledger.index.in_session(group, session_id):
            on_its_way = pending.ending and not pending.is_at_rest and group in self._late
            if on_its_way and not await self._tracker.liveness.is_lease_held(pending):
                halted.append(pending.key)
                self._stopped.add(pending.key)
                if pending.key not in self._under_way:
                    await self._give_up(pending.key, self._mailboxes.of(group), STOPPED)
        for key in halted:
            await self._at_rest(key)
        return bool(halted)

    async def _at_rest(self, key: Key) -> None:
        while (pending := self._ledger.index.get(key)) and not pending.is_at_rest:
            await self._ledger.changed(key, self._ledger.version(key), POLL_SECONDS)

    async def _must_hear(self, key: Key, mailbox: Mailbox) -> bool:
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
        self, pending: PendingQuestion, mailbox: Mailbox, grace_ends: datetime
    ) -> bool:
        """Take the delivery one step further. Return False if there is nothing to do but wait."""
        claim = pending.late.claim
        ours = bool(claim) and await asyncio.to_thread(mailbox.is_ours, pending.request_id, claim)
        if not ours and await asyncio.to_thread(mailbox.is_received, pending.request_id):
            return await self._received(pending, DeliveryPath.LIVE)
        if ours and await asyncio.to_thread(mailbox.is_resumed, pending.request_id):
            return await self._received(pending, DeliveryPath.LATE)
        if pending.state is State.UNDELIVERED:
            if ours:  # a crash may have undone the release
                await asyncio.to_thread(mailbox.release, pending.request_id, claim)
            return await self._dismiss_if_old(pending)
        if not ours and await self._must_wait(pending, mailbox, grace_ends):
            return await self._hold(pending)
        return await self._go_late(pending, mailbox)

    async def _dismiss_if_old(self, pending: PendingQuestion) -> bool:
        """Stop keeping an answer that nobody has come for in all that time; history keeps it."""
        ended_at = pending.ending.at if pending.ending else pending.timestamp
        if self._ledger.now() - ended_at < self._keep_undelivered:
            return False
        await self.dismiss(pending, "pynchy, after answer_ttl")
        return True

    async def _must_wait(
        self, pending: PendingQuestion, mailbox: Mailbox, grace_ends: datetime
    ) -> bool:
        """True if the answer may not go late yet: the session lives, or is parked on another."""
        if self._is_behind(pending) or await self._runner_lives(pending, grace_ends):
            return True
        return await asyncio.to_thread(mailbox.is_being_parked, pending.request_id)

    def _is_behind(self, pending: PendingQuestion) -> bool:
        """True if the session is parked on another question, whose call a prompt would displace."""
        return not pending.parked and any(not q.is_at_rest for q in self._parked(pending))

    def _parked(self, pending: PendingQuestion) -> list[PendingQuestion]:
        """Return the other questions that the session was parked on."""
        if not pending.session_id:
            return []
        asked = self._ledger.index.in_session(pending.group, pending.session_id)
        return [q for q in asked if q.parked and q.key != pending.key]

    async def _runner_lives(self, pending: PendingQuestion, grace_ends: datetime) -> bool:
        if await self._tracker.liveness.is_session_busy(pending):
            return True
        return not pending.lease and self._ledger.now() < grace_ends

    async def _hold(self, pending: PendingQuestion) -> bool:
        waits = pending.call_waits and self._ledger.now() < pending.wait_until
        if (waits and not self._is_behind(pending)) or pending.state is State.HELD:
            return False
        await self._ledger.apply(pending.key, Held())
        return True

    async def _go_late(self, pending: PendingQuestion, mailbox: Mailbox) -> bool:
        late = self._late.get(pending.group)
        if late is None:
            await self._ledger.apply(pending.key, GaveUp(NO_LAUNCHER))
            return True
        retry_at = pending.late.retry_at
        if retry_at and self._ledger.now() < retry_at:
            return False
        async with self._turns.turn(pending.group):
            if pending.key in self._stopped or self._ledger.get(pending.key).is_at_rest:
                return False
            return await self._go_late_now(pending, mailbox, late)

    async def _go_late_now(
        self, pending: PendingQuestion, mailbox: Mailbox, late: LateSettings
    ) -> bool:
        self._under_way.add(pending.key)
        try:
            session = (pending.group, pending.session_id)
            async with self._control.setdefault(session, asyncio.Lock()):
                before = await self._started_before(pending, late)
                if before is None and await self._tracker.liveness.is_session_busy(pending):
                    return await self._step_back(pending, mailbox)
                runner = before or await self._resume(pending, mailbox, late)
            if runner is None:
                return await self._received(pending, DeliveryPath.LIVE)
            if pending.key in self._stopped and not isinstance(runner, RunnerEnd):
                await runner.stop()
            await self._see_it_through(pending.key, mailbox, late, runner)
        finally:
            self._under_way.discard(pending.key)
        return True

    async def _started_before(self, pending: PendingQuestion, late: LateSettings) -> Runner | None:
        """Return the runner of an attempt that a host before this one has begun."""
        if pending.state is not State.RESUMING or pending.late.retry_at is not None:
            return None
        return await late.launcher.find(self._launch(pending).stem)

    async def _step_back(self, pending: PendingQuestion, mailbox: Mailbox) -> bool:
        """Leave the answer to the process that lives: it can ask for it."""
        await asyncio.to_thread(mailbox.release, pending.request_id, pending.late.claim)
        self._stopped.discard(pending.key)
        await self._ledger.apply(pending.key, Held())
        return True

    async def _resume(
        self, pending: PendingQuestion, mailbox: Mailbox, late: LateSettings
    ) -> Runner | RunnerEnd | None:
        """Return the runner, or why there is none; None if the agent has the answer after all."""
        claim = pending.late.claim or secrets.token_hex(16)
        pending = await self._ledger.apply(pending.key, Resuming(claim))
        now = self._ledger.now()
        if not await asyncio.to_thread(mailbox.claim, pending.request_id, claim, now):
            return None
        lost = await self._lost_answers.to_restate(pending)
        # What the session may have lost can only be told by a prompt.
        goes_on = pending.parked and not lost
        if not goes_on:
            for other in self._parked(pending):
                await self._ledger.apply(other.key, Unparked())
        initial = wire.initial_json(pending, resume_prompt(pending, lost), parked=goes_on)
        await asyncio.to_thread(mailbox.write_initial, pending.request_id, initial)
        return await self._tracker.start(late.launcher, self._launch(pending))

    def _launch(self, pending: PendingQuestion) -> Launch:
        ipc_dir = self._mailboxes.of(pending.group).path
        session = self._tracker.get(pending.group, pending.session_id)
        return Launch(
            group=pending.group,
            session_id=pending.session_id,
            name=pending.request_id,
            attempt=pending.late.attempts,
            initial=ipc_dir / "input" / pending.request_id / "initial.json",
            ipc_dir=ipc_dir,
            request_id=pending.request_id,
            agent=pending.agent,
            task=pending.task,
            chosen=session.chosen if session else "",
            home=session.home if session else "",
            cwd=session.cwd if session else "",
        )

    async def _see_it_through(
        self, key: Key, mailbox: Mailbox, late: LateSettings, runner: Runner | RunnerEnd
    ) -> None:
        """Wait until the runner has the answer or has failed."""
        end = (
            runner if isinstance(runner, RunnerEnd) else await self._taken_in(key, mailbox, runner)
        )
        if end is None:
            await self._received(self._ledger.get(key), DeliveryPath.LATE)
        elif end.error is None:
            await self._delivered(key, DeliveryPath.LATE)
        elif end.stopped or key in self._stopped:
            await self._give_up(key, mailbox, STOPPED)
        else:
            await self._failed(key, mailbox, late, end.error)

    async def _taken_in(self, key: Key, mailbox: Mailbox, runner: Runner) -> RunnerEnd | None:
        """Return None when the runner says that it has the answer, else how it ended."""
        ended = asyncio.ensure_future(runner.ended())
        ended.add_done_callback(lambda _: self._ledger.notify(key))
        try:
            while True:
                version = self._ledger.version(key)
                if await asyncio.to_thread(mailbox.is_resumed, key[1]):
                    return None
                if ended.done():
                    return ended.result()
                await self._ledger.changed(key, version, POLL_SECONDS)
        finally:
            ended.cancel()

    async def _failed(self, key: Key, mailbox: Mailbox, late: LateSettings, reason: str) -> None:
        pending = self._ledger.get(key)
        attempts = pending.late.attempts
        if attempts < late.attempts:
            wait = min(late.backoff * 2 ** (attempts - 1), _MAX_BACKOFF)
            await self._ledger.apply(key, ResumeFailed(reason, self._ledger.now() + wait))
            return
        times = f"{attempts} attempt" + ("s" if attempts > 1 else "")
        await self._give_up(key, mailbox, f"{reason} ({times})")

    async def _give_up(self, key: Key, mailbox: Mailbox, reason: str) -> None:
        # No runner has the answer now, so `check_answer` may take it.
        pending = self._ledger.get(key)
        await asyncio.to_thread(mailbox.release, pending.request_id, pending.late.claim)
        await self._ledger.apply(key, GaveUp(f"{reason}; pynchy retry starts it again"))
        self._stopped.discard(key)

    async def _received(self, pending: PendingQuestion, path: DeliveryPath) -> bool:
        """The agent says that it has the answer; whether it lives to use it is to be seen."""
        launch = self._launch(pending).stem if path is DeliveryPath.LATE else ""
        await self._lost_answers.handed_over(pending, launch)
        return await self._delivered(pending.key, path)

    async def _delivered(self, key: Key, path: DeliveryPath) -> bool:
        self._stopped.discard(key)
        await self._ledger.apply(key, Delivered(path, self._ledger.now()))
        return True
