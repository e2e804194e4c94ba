"""Deliver how a question ended to the agent that asked.

    response written ─► the waiter takes the receipt ────────────────► delivered live
           │
           ├─ the runner lives but does not wait ─► held ─► it asks for it, or it ends
           │
           └─ no runner lives ─► the host takes the receipt ─► a runner is started with the
                                 answer ─► it says that it has it, or ends well ─► delivered late

The receipt is the arbiter: of waiter and host only one can create it, so the answer is delivered
on one path. Delivering again after a crash is harmless.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from pynchy import wire
from pynchy.bridge.desk import Desk
from pynchy.bridge.lifecycle import (
    Delivered,
    Dismissed,
    GaveUp,
    Held,
    ResumeFailed,
    Resuming,
    Retried,
)
from pynchy.bridge.prompt import resume_prompt
from pynchy.errors import DeliveryFailed, NotUndelivered
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailbox, Mailboxes
from pynchy.model import DeliveryPath, GroupName, PendingQuestion, SessionId, State
from pynchy.pending.index import Key
from pynchy.sessions.base import Launcher, Resumption, Runner, RunnerEnd

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# There may be thousands, for days; a receipt, a retry and a dismissal wake them at once.
UNDELIVERED_LOOK_SECONDS = 30.0
_BACKOFF_MOST = timedelta(minutes=10)
NO_LAUNCHER = "the agent is gone and its group has no launcher; kept for check_answer"


@dataclass(frozen=True, slots=True)
class LateSettings:
    """How a group is resumed and how often that is tried."""

    launcher: Launcher
    attempts: int
    backoff: timedelta


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait until nobody is taken to be there, and to keep what could not arrive."""

    receipt_grace: timedelta
    max_resumes: int
    keep_undelivered: timedelta


class Delivery:
    """Sees each ended question to its agent."""

    def __init__(
        self,
        desk: Desk,
        mailboxes: Mailboxes,
        leases: Leases,
        late: Mapping[GroupName, LateSettings],
        patience: Patience,
    ) -> None:
        self._desk = desk
        self._mailboxes = mailboxes
        self._leases = leases
        self._late = late
        self._grace = patience.receipt_grace
        self._keep_undelivered = patience.keep_undelivered
        self._slots = asyncio.Semaphore(patience.max_resumes)
        self._looking: dict[GroupName, asyncio.Lock] = defaultdict(asyncio.Lock)
        # Weak: there are as many sessions as agents ever were, and a lock is needed for a moment.
        self._starting: WeakValueDictionary[tuple[GroupName, SessionId], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def respond(self, key: Key) -> None:
        """Write the response, for whoever waits."""
        pending = self._desk.get(key)
        if pending.delivered is None:
            mailbox = self._mailboxes.of(pending.group)
            response = wire.response_json(pending)
            await asyncio.to_thread(mailbox.respond, pending.request_id, response)

    async def see_through(self, key: Key) -> None:
        """Return when the agent has the outcome, for which there is a response."""
        pending = self._desk.get(key)
        if pending.delivered is not None:
            return
        mailbox = self._mailboxes.of(pending.group)
        if pending.ending is not None and not pending.ending.outcome.resumes:
            await self._delivered(key, DeliveryPath.NONE)
            return
        grace_ends = self._desk.now() + self._grace
        while (pending := self._desk.get(key)).delivered is None:
            version = self._desk.version(key)
            if not await self._advance(pending, mailbox, grace_ends):
                undelivered = self._desk.get(key).state is State.UNDELIVERED
                look = UNDELIVERED_LOOK_SECONDS if undelivered else LOOK_SECONDS
                await self._desk.changed(key, version, look)

    async def retry(self, pending: PendingQuestion, by: str) -> PendingQuestion:
        """Start a failed delivery again. Raise NotUndelivered if none has failed."""
        if pending.state is not State.UNDELIVERED:
            raise NotUndelivered(f"{pending.short_id} is {pending.state}; no delivery has failed")
        if pending.group not in self._late:
            raise NotUndelivered(f"{pending.short_id}: {NO_LAUNCHER}")
        return await self._desk.take(pending.key, Retried(by))

    async def dismiss(self, pending: PendingQuestion, by: str) -> PendingQuestion:
        """Close an answer that could not be delivered. Raise NotUndelivered if it still may be."""
        if pending.state is not State.UNDELIVERED:
            raise NotUndelivered(f"{pending.short_id} is {pending.state}; no delivery has failed")
        return await self._desk.take(pending.key, Dismissed(by, self._desk.now()))

    async def _advance(
        self, pending: PendingQuestion, mailbox: Mailbox, grace_ends: datetime
    ) -> bool:
        """Take the delivery one step further. Return False if there is nothing to do but wait."""
        claim = pending.late.claim
        ours = bool(claim) and await asyncio.to_thread(mailbox.is_ours, pending.request_id, claim)
        if not ours and await asyncio.to_thread(mailbox.is_received, pending.request_id):
            return await self._delivered(pending.key, DeliveryPath.LIVE)
        if ours and await asyncio.to_thread(mailbox.is_resumed, pending.request_id):
            return await self._delivered(pending.key, DeliveryPath.LATE)
        if pending.state is State.UNDELIVERED:
            if ours:  # a crash may have undone the release
                await asyncio.to_thread(mailbox.release, pending.request_id, claim)
            return await self._dismiss_if_old(pending)
        if not ours and await self._runner_lives(pending, mailbox, grace_ends):
            return await self._hold(pending)
        return await self._go_late(pending, mailbox)

    async def _dismiss_if_old(self, pending: PendingQuestion) -> bool:
        """Stop keeping an answer that nobody has come for in all that time; history keeps it."""
        ended_at = pending.ending.at if pending.ending else pending.timestamp
        if self._desk.now() - ended_at < self._keep_undelivered:
            return False
        await self.dismiss(pending, "pynchy, after answer_ttl")
        return True

    async def _runner_lives(
        self, pending: PendingQuestion, mailbox: Mailbox, grace_ends: datetime
    ) -> bool:
        if await self._is_session_busy(pending, mailbox):
            return True
        return not pending.lease and self._desk.now() < grace_ends

    async def _is_session_busy(self, pending: PendingQuestion, mailbox: Mailbox) -> bool:
        """True while a process works on the session: the one that asked, or any other."""
        late = self._late.get(pending.group)
        if late and late.launcher.is_live(pending.group, pending.session_id):
            return True
        # One look at a time for each group: who has thousands of leases keeps only itself waiting.
        async with self._looking[pending.group]:
            return await asyncio.to_thread(self._holds_lease, pending, mailbox)

    def _holds_lease(self, pending: PendingQuestion, mailbox: Mailbox) -> bool:
        if pending.lease and self._leases.is_live(mailbox, pending.lease):
            return True
        return self._leases.is_session_live(mailbox, pending.session_id)

    async def _hold(self, pending: PendingQuestion) -> bool:
        waits = pending.call_waits and self._desk.now() < pending.wait_until
        if waits or pending.state is State.HELD:
            return False
        await self._desk.take(pending.key, Held())
        return True

    async def _go_late(self, pending: PendingQuestion, mailbox: Mailbox) -> bool:
        late = self._late.get(pending.group)
        if late is None:
            await self._desk.take(pending.key, GaveUp(NO_LAUNCHER))
            return True
        retry_at = pending.late.retry_at
        if retry_at and self._desk.now() < retry_at:
            return False
        async with self._slots:
            session = (pending.group, pending.session_id)
            async with self._starting.setdefault(session, asyncio.Lock()):
                before = await self._started_before(pending, late)
                if before is None and await self._is_session_busy(pending, mailbox):
                    return await self._step_back(pending, mailbox)
                runner = before or await self._resume(pending, mailbox, late)
            if runner is None:
                return await self._delivered(pending.key, DeliveryPath.LIVE)
            await self._see_it_through(pending.key, mailbox, late, runner)
        return True

    async def _started_before(self, pending: PendingQuestion, late: LateSettings) -> Runner | None:
        """Return the runner of an attempt that a host before this one has begun."""
        if pending.state is not State.RESUMING or pending.late.retry_at is not None:
            return None
        return await late.launcher.find(self._resumption(pending))

    async def _step_back(self, pending: PendingQuestion, mailbox: Mailbox) -> bool:
        """Leave the answer to the process that lives: it can ask for it."""
        await asyncio.to_thread(mailbox.release, pending.request_id, pending.late.claim)
        await self._desk.take(pending.key, Held())
        return True

    async def _resume(
        self, pending: PendingQuestion, mailbox: Mailbox, late: LateSettings
    ) -> Runner | RunnerEnd | None:
        """Return the runner, or why there is none; None if the agent has the answer after all."""
        claim = pending.late.claim or secrets.token_hex(16)
        pending = await self._desk.take(pending.key, Resuming(claim))
        now = self._desk.now()
        if not await asyncio.to_thread(mailbox.claim, pending.request_id, claim, now):
            return None
        initial = wire.initial_json(pending, resume_prompt(pending))
        await asyncio.to_thread(mailbox.write_initial, pending.request_id, initial)
        try:
            return await late.launcher.start(self._resumption(pending))
        except DeliveryFailed as exc:
            return RunnerEnd(str(exc))

    def _resumption(self, pending: PendingQuestion) -> Resumption:
        ipc_dir = self._mailboxes.of(pending.group).path
        return Resumption(
            group=pending.group,
            session_id=pending.session_id,
            request_id=pending.request_id,
            attempt=pending.late.attempts,
            initial=ipc_dir / "input" / pending.request_id / "initial.json",
            ipc_dir=ipc_dir,
        )

    async def _see_it_through(
        self, key: Key, mailbox: Mailbox, late: LateSettings, runner: Runner | RunnerEnd
    ) -> None:
        """Wait until the runner has the answer or has failed."""
        end = (
            runner if isinstance(runner, RunnerEnd) else await self._taken_in(key, mailbox, runner)
        )
        if end is None or end.error is None:
            await self._delivered(key, DeliveryPath.LATE)
        else:
            await self._failed(key, mailbox, late, end.error)

    async def _taken_in(self, key: Key, mailbox: Mailbox, runner: Runner) -> RunnerEnd | None:
        """Return None when the runner says that it has the answer, else how it ended."""
        ended = asyncio.ensure_future(runner.ended())
        ended.add_done_callback(lambda _: self._desk.wake(key))
        try:
            while True:
                version = self._desk.version(key)
                if await asyncio.to_thread(mailbox.is_resumed, key[1]):
                    return None
                if ended.done():
                    return ended.result()
                await self._desk.changed(key, version, LOOK_SECONDS)
        finally:
            ended.cancel()

    async def _failed(self, key: Key, mailbox: Mailbox, late: LateSettings, reason: str) -> None:
        pending = self._desk.get(key)
        attempts = pending.late.attempts
        if attempts < late.attempts:
            wait = min(late.backoff * 2 ** (attempts - 1), _BACKOFF_MOST)
            await self._desk.take(key, ResumeFailed(reason, self._desk.now() + wait))
            return
        # No runner has the answer now, so `check_answer` may take it.
        await asyncio.to_thread(mailbox.release, pending.request_id, pending.late.claim)
        times = f"{attempts} attempt" + ("s" if attempts > 1 else "")
        await self._desk.take(key, GaveUp(f"{reason} ({times}); pynchy retry starts it again"))

    async def _delivered(self, key: Key, path: DeliveryPath) -> bool:
        await self._desk.take(key, Delivered(path, self._desk.now()))
        return True
