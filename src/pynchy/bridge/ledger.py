"""The open questions: every step of their lives is persisted here, then published.

Steps on one question happen one after another; on different questions, side by side. A step that
has begun is made whole, in the store and here, also if whoever makes it is cancelled. It is in the
store before any observer is called, but for the last ones before a question is closed, which
are written with the closing. A new question and an ending are in the event log right after they
are in the store, every other step right before: a crash can repeat a line of the log, and what it
hides is told at the next start. Where several ledgers share a store, each sees what the others do,
and the first ending wins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from pynchy.aio import LockMap, finish
from pynchy.audit import AuditLog
from pynchy.bridge.lifecycle import (
    CardSettled,
    Closed,
    Delivered,
    Ended,
    Step,
    advance,
    is_finished,
)
from pynchy.bridge.step_events import asked_event, event_about, step_event
from pynchy.errors import AlreadyOver, UnknownQuestion
from pynchy.events import Event, EventKind
from pynchy.model import Ending, GroupName, PendingQuestion, RequestId, State
from pynchy.pending.base import (
    Conflict,
    History,
    Key,
    OpenQuestions,
    QuestionObserver,
    QuestionStore,
    StoreChange,
    Stored,
)
from pynchy.wire import ending_of

log = logging.getLogger(__name__)

# The last such step is not written by itself: `close` comes next and writes it, and after a crash
# before that the receipt and the card are there to be found again.
_FOUND_AGAIN = (Delivered, CardSettled)

_NOT_OPEN = -1

Chosen = Ending | Sequence[Step]


class QuestionLedger:
    """The open questions, and the only way to change them.

    `host` is the name of this host where several share a store; a question belongs to the one
    that recorded it, and is delivered by that one alone.
    """

    def __init__(
        self,
        store: QuestionStore,
        index: OpenQuestions,
        audit: AuditLog,
        now: Callable[[], datetime],
        host: str = "",
    ) -> None:
        self._store = store
        self._audit = audit
        self._host = host
        self._changes = store.watch()
        self._observers: list[QuestionObserver] = []
        self._revisions: dict[Key, int] = {}
        self._locks: LockMap[Key] = LockMap()
        self._versions: dict[Key, int] = {}
        self._waiters: dict[Key, set[asyncio.Future[None]]] = {}
        self.index = index
        self.history: History = store
        self.now = now

    def subscribe(self, observer: QuestionObserver) -> None:
        """Call the observer from now on. Observers are called in the order of subscription."""
        self._observers.append(observer)

    def is_home(self, pending: PendingQuestion) -> bool:
        """True if the question was recorded by this host, which then delivers it."""
        return pending.home_host == self._host

    def get(self, key: Key) -> PendingQuestion:
        """Return the question. Raise UnknownQuestion if it is closed or was never asked."""
        pending = self.index.get(key)
        if pending is None:
            raise UnknownQuestion(f"no open question has the id {key[1]}")
        return pending

    async def find(self, key: Key) -> PendingQuestion | None:
        """Return the question, open or closed; None if it was never asked or is forgotten."""
        return self.index.get(key) or await self.history.find(*key)

    async def load(self) -> list[Key]:
        """Take up every question that is open. No observer is called."""
        stored = sorted(await self._store.load(), key=lambda item: item.pending.timestamp)
        for item in stored:
            self._restore(item)
        return [item.pending.key for item in stored]

    async def follow(self) -> None:
        """See what others do to the store, until nobody else can or this is cancelled."""
        async for change in self._changes:
            async with self._lock(change.key):
                self._see(change)

    async def record(self, pending: PendingQuestion, ending: Ending | None = None) -> None:
        """Take up a new question. Raise DuplicateRequest if its id is known.

        With an ending nobody is asked, unless it cannot be written.
        """
        pending = replace(pending, home_host=self._host)
        async with self._lock(pending.key):
            await finish(self._record(pending, ending))

    async def apply(self, key: Key, *steps: Step) -> PendingQuestion:
        """Make the steps, durably and as one. Raise IllegalTransition if one does not fit."""
        async with self._lock(key):
            while True:
                try:
                    return await finish(self._apply(self.get(key), steps))
                except Conflict:
                    await self._reload(key)

    async def end(self, key: Key, ending: Ending) -> PendingQuestion:
        """End the question. Raise AlreadyOver, with what won, if something else came first."""
        return await self.commit(key, lambda _: ending)

    async def commit(
        self, key: Key, choose: Callable[[PendingQuestion], Chosen | Awaitable[Chosen]]
    ) -> PendingQuestion:
        """Let `choose` end the question, or make steps, by what it is when nobody can change it.

        Raise AlreadyOver, with what won, if something else came first.
        """
        async with self._lock(key):
            while True:
                pending = self.get(key)
                if pending.ending is not None:
                    raise AlreadyOver(pending.ending)
                chosen = choose(pending)
                if isinstance(chosen, Awaitable):
                    chosen = await chosen
                try:
                    # When it returns, observers' tasks have started: an agent waits for the answer.
                    pending = await finish(self._commit(pending, chosen))
                except Conflict:
                    await self._reload(key)
                else:
                    break
        if isinstance(chosen, Ending) and (winner := ending_of(pending)) != chosen:
            raise AlreadyOver(winner)
        return pending

    async def close(self, key: Key) -> None:
        """Move a finished question into history."""
        async with self._lock(key):
            await finish(self._close(key))

    async def _record(self, pending: PendingQuestion, ending: Ending | None) -> None:
        self._revisions[pending.key] = await self._store.record(pending)
        self._put(pending)
        self.publish(asked_event(pending, self.now()))
        if ending is not None:
            try:
                winner = await self._store.end(pending, ending)
            except OSError:
                log.exception("ledger.ending_not_written")
            else:
                self._ended(pending, winner)
                return
        self._call(lambda observer: observer.question_recorded(pending))

    async def _commit(self, pending: PendingQuestion, chosen: Chosen) -> PendingQuestion:
        if not isinstance(chosen, Ending):
            return await self._apply(pending, chosen)
        # The outcome is the commit; the record itself follows with the next step.
        return self._ended(pending, await self._store.end(pending, chosen))

    async def _close(self, key: Key) -> None:
        with self._publishing(self.get(key), Closed()):
            while True:
                pending = advance(self.get(key), Closed())
                try:
                    await self._store.close(pending, self._revisions.get(key, 0))
                except Conflict:
                    await self._reload(key)
                else:
                    break
            self._forget(pending)

    async def _apply(self, before: PendingQuestion, steps: Sequence[Step]) -> PendingQuestion:
        pending = before
        for step in steps:
            pending = advance(pending, step)
        if pending == before:
            return pending
        with self._publishing(pending, *steps):
            await self._update(pending, steps)
            self._put(pending)
        self.notify(pending.key)
        return pending

    async def _reload(self, key: Key) -> None:
        """Take up what another host has made of the question."""
        self._see(StoreChange(key, await self._store.get(key)))

    async def _update(self, pending: PendingQuestion, steps: Sequence[Step]) -> None:
        if is_finished(pending) and all(isinstance(step, _FOUND_AGAIN) for step in steps):
            return
        revision = self._revisions.get(pending.key, 0)
        self._revisions[pending.key] = await self._store.update(pending, revision)

    def _ended(self, pending: PendingQuestion, winner: Ending) -> PendingQuestion:
        """Take it that this ending was committed, by us or by another host."""
        pending = advance(pending, Ended(winner))
        self._put(pending)
        self._publish_step(pending, Ended(winner))
        self.notify(pending.key)
        self._call(lambda observer: observer.question_ended(pending))
        return pending

    def _restore(self, stored: Stored) -> None:
        """Take up a question that was recorded before a restart, with the ending that won."""
        pending, ending = stored.pending, stored.ending
        if pending.state is State.RECORDED:
            self.publish(asked_event(pending, self.now()))
        if ending is not None and pending.ending is None:
            pending = advance(pending, Ended(ending))
            self._publish_step(pending, Ended(ending))
        self._revisions[pending.key] = stored.revision
        self.index.put(pending)

    def _see(self, change: StoreChange) -> None:
        """Follow a change of the store that may have been made by another host."""
        known = self.index.get(change.key)
        if change.stored is None:
            if known is not None:
                self._forget(known)
            return
        stored = change.stored
        if known is None or stored.revision > self._revisions.get(change.key, 0):
            was_over = known is not None and known.ending is not None
            known = stored.pending
            if was_over and known.ending is None and stored.ending is not None:
                known = advance(known, Ended(stored.ending))
            self._revisions[change.key] = stored.revision
            self._put(known)
            self.notify(change.key)
        if stored.ending is not None and known.ending is None:
            self._ended(known, stored.ending)

    def _forget(self, pending: PendingQuestion) -> None:
        self.index.remove(pending.key)
        self._revisions.pop(pending.key, None)
        self._versions.pop(pending.key, None)
        self._call(lambda observer: observer.question_changed(pending))
        self._call(lambda observer: observer.question_closed(pending))
        self.notify(pending.key)

    def publish(self, event: Event) -> None:
        """Write an event down and pass it on."""
        self._audit.publish(event)

    def publish_about(self, kind: EventKind, pending: PendingQuestion, detail: str) -> None:
        """Publish something about a question that is no step of its life."""
        self.publish(replace(event_about(pending, kind, self.now()), detail=detail))

    def publish_for_group(
        self, kind: EventKind, group: GroupName, request_id: RequestId | None, detail: str
    ) -> None:
        """Publish something that happened to no recorded question."""
        self.publish(Event(kind, self.now(), group, request_id, detail=detail))

    def notify(self, key: Key) -> None:
        """Let whoever waits for a change of the question, or of its mailbox, look again."""
        # Agents name mailbox files as they like: only what is open is counted.
        if self.index.get(key) is not None:
            self._versions[key] = self.version(key) + 1
        for waiter in self._waiters.pop(key, ()):
            if not waiter.done():
                waiter.set_result(None)

    def version(self, key: Key) -> int:
        """Return what to compare with later, to notice a change during a look."""
        return _NOT_OPEN if self.index.get(key) is None else self._versions.get(key, 0)

    async def changed(self, key: Key, since: int, seconds: float) -> None:
        """Return when something has changed since that version, or after so many seconds."""
        if self.version(key) != since:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, set()).add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return
        finally:
            waiting = self._waiters.get(key, set())
            waiting.discard(waiter)
            if not waiting:
                self._waiters.pop(key, None)

    def _put(self, pending: PendingQuestion) -> None:
        self.index.put(pending)
        self._call(lambda observer: observer.question_changed(pending))

    def _call(self, tell: Callable[[QuestionObserver], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:
                log.exception("ledger.observer_failed")

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.of(key)

    def _publishing(self, pending: PendingQuestion, *steps: Step) -> AbstractContextManager[None]:
        events = (step_event(pending, step, self.now()) for step in steps)
        return self._audit.publishing(event for event in events if event is not None)

    def _publish_step(self, pending: PendingQuestion, step: Step) -> None:
        with self._publishing(pending, step):
            pass
