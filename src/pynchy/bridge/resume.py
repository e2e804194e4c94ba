"""Resume a session with an answer that came after its agent had gone.

The host takes the receipt first, so that a waiter that wakes up late cannot have the answer too. A
runner is started with the answer; it says that it has it, or ends well, or the attempt has failed
and is repeated. What a runner received and may have lost by dying is restated at the next resume.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from pynchy import wire
from pynchy.aio import FairSemaphore, LockMap
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import GaveUp, Held, ResumeFailed, Resuming, Unparked
from pynchy.channels.base import NO_CHANNELS
from pynchy.errors import IllegalTransition, UnknownQuestion
from pynchy.ipc.base import GroupMailbox, MailboxDirectory
from pynchy.launchers.base import Launch, Launcher, Runner, RunnerEnd, too_many_runners
from pynchy.model import (
    DeliveryPath,
    Ending,
    GroupName,
    OutcomeKind,
    PendingQuestion,
    SessionId,
    State,
)
from pynchy.outcome_text import resume_prompt
from pynchy.pending.base import Key
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.tracker import SessionTracker
from pynchy.wire import ending_of

POLL_SECONDS = 1.0
_MAX_BACKOFF = timedelta(minutes=10)
# More would be more than a time can be, and none is as long as the longest pause without it.
_MAX_DOUBLINGS = 16
STOPPED = "a person has stopped the runner"
UNKNOWN_SESSION = (
    "nobody has answered, and pynchy starts no runner for a session that no person has begun"
)
# However else a question ends, no person has wanted that a runner is started.
_BY_PEOPLE = frozenset({OutcomeKind.ANSWERED, OutcomeKind.DECLINED})
NO_LAUNCHER = "the agent is gone and its group has no launcher; kept for check_answer"


@dataclass(frozen=True, slots=True)
class Arrived:
    """Who asked has the answer, by that path. `launch` received it and may yet lose it."""

    path: DeliveryPath
    launch: str | None = None


@dataclass(frozen=True, slots=True)
class LateSettings:
    """How a group is resumed, how often that is tried, and how many runners it may have."""

    launcher: Launcher
    attempts: int
    backoff: timedelta
    max_runners: int
    is_box: bool = False


class LateDelivery:
    """Puts runners on sessions whose agent has gone, one on a session at a time."""

    def __init__(
        self,
        ledger: QuestionLedger,
        mailboxes: MailboxDirectory,
        lost_answers: LostAnswers,
        late: Mapping[GroupName, LateSettings],
        max_resumes: int,
    ) -> None:
        self._ledger = ledger
        self._mailboxes = mailboxes
        self._tracker: SessionTracker = lost_answers.tracker
        self._lost_answers = lost_answers
        self._late = late
        self._turns = FairSemaphore(max_resumes)
        # What a person stopped before its runner was there to be stopped.
        self._stopped: set[Key] = set()
        self._under_way: set[Key] = set()
        # Those whose runner is about to be started: the launcher does not know of them yet.
        self._admitted: set[tuple[GroupName, SessionId]] = set()
        self._session_locks: LockMap[tuple[GroupName, SessionId]] = LockMap()

    def can_resume(self, group: GroupName) -> bool:
        """True if the group has a launcher."""
        return group in self._late

    def problem(self, group: GroupName) -> str | None:
        """Say so if answers of the group wait because it has too many runners."""
        asked = self._ledger.index.in_group(group)
        waiting = [q for q in asked if q.state is State.HELD and q.late.error]
        return f"group {group}: {waiting[0].late.error}" if waiting else None

    async def halt(self, group: GroupName, session_id: SessionId) -> bool:
        """Let no runner be put on the session for the answers that are on their way to it now.

        Return, once they are kept as undelivered, whether there were any.
        """
        halted = []
        for pending in self._ledger.index.in_session(group, session_id):
            if not self._is_on_its_way(pending.key):
                continue
            lives = await self._tracker.liveness.is_lease_held(pending)
            # It may have arrived while we looked.
            if not lives and self._is_on_its_way(pending.key):
                halted.append(pending.key)
                await self._stop(pending.key)
        for key in halted:
            await self._at_rest(key)
        return bool(halted)

    def _is_on_its_way(self, key: Key) -> bool:
        pending = self._ledger.index.get(key)
        if pending is None or pending.ending is None or pending.is_at_rest:
            return False
        return self.can_resume(key[0])

    async def _stop(self, key: Key) -> None:
        """Let the answer be kept, unless it arrives before that can be."""
        self._stopped.add(key)
        if key in self._under_way:
            return  # whoever is at it looks, and keeps it
        try:
            with suppress(IllegalTransition, UnknownQuestion):
                await self._give_up(key, self._mailboxes.of(key[0]), STOPPED)
        finally:
            self._stopped.discard(key)

    async def _at_rest(self, key: Key) -> None:
        while (pending := self._ledger.index.get(key)) and not pending.is_at_rest:
            await self._ledger.changed(key, self._ledger.version(key), POLL_SECONDS)

    async def resume(self, pending: PendingQuestion) -> Arrived | bool:
        """Take the delivery one step further. Return False if there is nothing to do but wait."""
        mailbox = self._mailboxes.of(pending.group)
        late = self._late[pending.group]
        retry_at = pending.late.retry_at
        if retry_at and self._ledger.now() < retry_at:
            return False
        async with self._turns.turn(pending.group):
            if pending.key in self._stopped or self._ledger.get(pending.key).is_at_rest:
                return False
            return await self._go_late_now(pending, mailbox, late)

    def launch_of(self, pending: PendingQuestion) -> str:
        """Return the name of the attempt that the question is at."""
        return self._launch(pending).stem

    async def _go_late_now(
        self, pending: PendingQuestion, mailbox: GroupMailbox, late: LateSettings
    ) -> Arrived | bool:
        self._under_way.add(pending.key)
        try:
            session = (pending.group, pending.session_id)
            async with self._session_locks.of(session):
                before = await self._started_before(pending, late)
                if before is None:
                    put_off = await self._put_off(pending, mailbox, late)
                    if put_off is not None:
                        return put_off
                    self._admitted.add(session)
                try:
                    runner = before or await self._resume(pending, mailbox, late)
                finally:
                    self._admitted.discard(session)
            if runner is None:
                # A process of the agent was faster. Whether it lives to pass it on is to be seen.
                return True
            if pending.key in self._stopped and not isinstance(runner, RunnerEnd):
                await runner.stop()
            return await self._see_it_through(pending.key, mailbox, late, runner)
        finally:
            self._under_way.discard(pending.key)
            self._stopped.discard(pending.key)

    async def _started_before(self, pending: PendingQuestion, late: LateSettings) -> Runner | None:
        """Return the runner of an attempt that a host before this one has begun."""
        if pending.state is not State.RESUMING or pending.late.retry_at is not None:
            return None
        return await late.launcher.find(self._launch(pending).stem, pending.request_id)

    async def _put_off(
        self, pending: PendingQuestion, mailbox: GroupMailbox, late: LateSettings
    ) -> bool | None:
        """Keep the answer if no runner may be put on the session now. Return None if one may."""
        if await self._tracker.liveness.is_session_busy(pending):
            # The process that lives can ask for it.
            return await self._hold(pending, mailbox)
        if why := self._why_unwanted(pending, late):
            await self._give_up(pending.key, mailbox, why)
            return True
        if self._is_full(pending, late):
            return await self._hold(pending, mailbox, too_many_runners(late.max_runners))
        return None

    async def _hold(
        self, pending: PendingQuestion, mailbox: GroupMailbox, why: str | None = None
    ) -> bool:
        if why and pending.state is State.HELD and pending.late.error == why:
            return False
        await asyncio.to_thread(mailbox.release, pending.request_id, pending.late.claim)
        await self._ledger.apply(pending.key, Held(why))
        return True

    def _why_unwanted(self, pending: PendingQuestion, late: LateSettings) -> str | None:
        """Say why no runner is started with it, where nobody wants one but the agent itself.

        An agent can ask under any session id, with a default and without any wait. So what it
        asks brings back only sessions that people have begun, and none that they have stopped.
        One that lived when it asked was begun by somebody; but a lease is the agent's own word,
        and of an agent in a box no word counts.
        """
        if pending.late.wanted or _is_by_person(ending_of(pending)):
            return None
        session = self._tracker.get(pending.group, pending.session_id)
        if session is not None and session.stopped:
            return STOPPED
        is_launched = session is not None and bool(session.launches)
        is_seen = pending.asker_seen and not late.is_box
        return None if is_launched or is_seen else UNKNOWN_SESSION

    def _is_full(self, pending: PendingQuestion, late: LateSettings) -> bool:
        admitted = {session for group, session in self._admitted if group == pending.group}
        running = late.launcher.running(pending.group) | admitted
        return len(running) >= late.max_runners

    async def _resume(
        self, pending: PendingQuestion, mailbox: GroupMailbox, late: LateSettings
    ) -> Runner | RunnerEnd | None:
        """Return the runner, or why there is none; None if the agent has the receipt after all."""
        claim = pending.late.claim or secrets.token_hex(16)
        pending = await self._ledger.apply(pending.key, Resuming(claim))
        now = self._ledger.now()
        if not await asyncio.to_thread(mailbox.claim, pending.request_id, claim, now):
            return None
        lost = await self._lost_answers.to_restate(pending)
        # What the session may have lost can only be told by a prompt.
        # Nor is a call that needed a permission made again by itself: its session is told.
        goes_on = pending.parked and pending.call is None and not lost
        if not goes_on:
            for other in other_parked(self._ledger, pending):
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
        self, key: Key, mailbox: GroupMailbox, late: LateSettings, runner: Runner | RunnerEnd
    ) -> Arrived | bool:
        """Wait until the runner has the answer or has failed."""
        end = (
            runner if isinstance(runner, RunnerEnd) else await self._taken_in(key, mailbox, runner)
        )
        if end is None:
            return Arrived(DeliveryPath.LATE, self.launch_of(self._ledger.get(key)))
        if end.error is None:
            return Arrived(DeliveryPath.LATE)
        if end.stopped or key in self._stopped:
            await self._give_up(key, mailbox, STOPPED)
        else:
            await self._failed(key, mailbox, late, end.error)
        return True

    async def _taken_in(self, key: Key, mailbox: GroupMailbox, runner: Runner) -> RunnerEnd | None:
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

    async def _failed(
        self, key: Key, mailbox: GroupMailbox, late: LateSettings, reason: str
    ) -> None:
        pending = self._ledger.get(key)
        attempts = pending.late.attempts
        if attempts < late.attempts:
            retry_at = self._ledger.now() + _pause(late.backoff, attempts)
            await self._ledger.apply(key, ResumeFailed(reason, retry_at))
            return
        times = f"{attempts} attempt" + ("s" if attempts > 1 else "")
        await self._give_up(key, mailbox, f"{reason} ({times})")

    async def _give_up(self, key: Key, mailbox: GroupMailbox, reason: str) -> None:
        # No runner has the answer now, so `check_answer` may take it.
        pending = self._ledger.get(key)
        await asyncio.to_thread(mailbox.release, pending.request_id, pending.late.claim)
        await self._ledger.apply(key, GaveUp(f"{reason}; pynchy retry starts it again"))


def other_parked(ledger: QuestionLedger, pending: PendingQuestion) -> list[PendingQuestion]:
    """Return the other questions that the session was parked on."""
    if not pending.session_id:
        return []
    asked = ledger.index.in_session(pending.group, pending.session_id)
    return [q for q in asked if q.parked and q.key != pending.key]


def _pause(backoff: timedelta, attempts: int) -> timedelta:
    """Return how long to wait after so many attempts."""
    doublings = min(attempts - 1, _MAX_DOUBLINGS)
    return min(min(backoff, _MAX_BACKOFF) * 2.0**doublings, _MAX_BACKOFF)


def _is_by_person(ending: Ending) -> bool:
    """True if a person has ended it, and not a rule, nor the agent's side in their name."""
    return ending.outcome in _BY_PEOPLE and ending.channel not in NO_CHANNELS
