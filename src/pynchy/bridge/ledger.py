"""Where steps of the life cycle are made durable and told.

Steps on one question happen one after another; on different questions, side by side. A step is in
the event log before it is in the store, and in the store before anybody is told of it: a crash
can repeat a line of the log but not hide a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from weakref import WeakValueDictionary

from pynchy.audit import AuditLog
from pynchy.bridge.lifecycle import (
    CardSettled,
    Closed,
    Delivered,
    Dismissed,
    Ended,
    GaveUp,
    PartlyAnswered,
    ResumeFailed,
    Retried,
    SettleFailed,
    ShowFailed,
    Shown,
    Step,
    advance,
    event_kind,
    is_finished,
)
from pynchy.errors import AlreadyOver, UnknownQuestion
from pynchy.events import AskedQuestion, Event, EventKind
from pynchy.model import Ending, GroupName, PendingQuestion, RequestId, State
from pynchy.pending.base import PendingStore
from pynchy.pending.index import Key, PendingIndex

# The last such step is not written by itself: `close` comes next and writes it, and after a crash
# before that the receipt and the card are there to be found again.
_FOUND_AGAIN = (Delivered, CardSettled)


class QuestionLedger:
    """The open questions, and the only way to change them."""

    def __init__(
        self,
        store: PendingStore,
        index: PendingIndex,
        audit: AuditLog,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._audit = audit
        # Weak: a lock is needed for a moment, also by who comes for a question that is closed.
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._versions: dict[Key, int] = {}
        self._waiters: dict[Key, set[asyncio.Future[None]]] = {}
        self.index = index
        self.now = now
        self.on_ended: Callable[[Key], None] = lambda _: None
        self.on_changed: Callable[[PendingQuestion], None] = lambda _: None

    def get(self, key: Key) -> PendingQuestion:
        """Return the question. Raise UnknownQuestion if it is closed or was never asked."""
        pending = self.index.get(key)
        if pending is None:
            raise UnknownQuestion(f"no open question has the id {key[1]}")
        return pending

    async def record(self, pending: PendingQuestion) -> None:
        """Take up a new question. Raise DuplicateRequest if its id is known."""
        async with self._lock(pending.key):
            await self._store.record(pending)
            self._put(pending)
            self.publish(asked_event(pending, self.now()))

    def restore(self, pending: PendingQuestion, ending: Ending | None) -> None:
        """Take up a question that was recorded before a restart, with the ending that won."""
        if pending.state is State.RECORDED:
            self.publish(asked_event(pending, self.now()))
        if ending is not None and pending.ending is None:
            pending = advance(pending, Ended(ending))
            if (event := self._event(pending, Ended(ending))) is not None:
                self.publish(event)
        self.index.put(pending)

    async def apply(self, key: Key, *steps: Step) -> PendingQuestion:
        """Make the steps, durably and as one. Raise IllegalTransition if one does not fit."""
        async with self._lock(key):
            return await self._apply(self.get(key), steps)

    async def end(self, key: Key, ending: Ending) -> PendingQuestion:
        """End the question. Raise AlreadyOver, with what won, if something else came first."""
        return await self.commit(key, lambda _: ending)

    async def commit(
        self, key: Key, choose: Callable[[PendingQuestion], Ending | Sequence[Step]]
    ) -> PendingQuestion:
        """Let `choose` end the question, or make steps, by what it is when nobody can change it.

        Raise AlreadyOver, with what won, if something else came first.
        """
        async with self._lock(key):
            pending = self.get(key)
            if pending.ending is not None:
                raise AlreadyOver(pending.ending)
            chosen = choose(pending)
            if not isinstance(chosen, Ending):
                return await self._apply(pending, chosen)
            winner = await self._store.end(pending, chosen)
            # The outcome file is the commit; the record itself follows with the next step.
            pending = advance(pending, Ended(winner))
            self._put(pending)
            if (event := self._event(pending, Ended(winner))) is not None:
                self.publish(event)
            self.notify(key)
        self.on_ended(key)
        # Let that start before the caller goes on: an agent waits for the answer.
        await asyncio.sleep(0)
        if winner != chosen:
            raise AlreadyOver(winner)
        return pending

    async def _apply(self, before: PendingQuestion, steps: Sequence[Step]) -> PendingQuestion:
        pending = before
        for step in steps:
            pending = advance(pending, step)
        if pending == before:
            return pending
        with self._publishing(pending, *steps):
            if not (is_finished(pending) and all(isinstance(step, _FOUND_AGAIN) for step in steps)):
                await self._store.update(pending)
            self._put(pending)
        self.notify(pending.key)
        return pending

    async def close(self, key: Key) -> None:
        """Move a finished question into history."""
        async with self._lock(key):
            pending = advance(self.get(key), Closed())
            with self._publishing(pending, Closed()):
                await self._store.close(pending)
                self.index.remove(key)
                self.on_changed(pending)
        self.notify(key)
        self._versions.pop(key, None)

    def publish(self, event: Event) -> None:
        """Write an event down and pass it on."""
        self._audit.publish(event)

    def publish_about(self, kind: EventKind, pending: PendingQuestion, detail: str) -> None:
        """Tell of something about a question that is no step of its life."""
        self.publish(replace(self._event_about(pending, kind), detail=detail))

    def publish_for_group(
        self, kind: EventKind, group: GroupName, request_id: RequestId | None, detail: str
    ) -> None:
        """Tell of something that happened to no recorded question."""
        self.publish(Event(kind, self.now(), group, request_id, detail=detail))

    def notify(self, key: Key) -> None:
        """Let whoever waits for a change of the question, or of its mailbox, look again."""
        if key in self._versions:
            self._versions[key] += 1
        for waiter in self._waiters.pop(key, ()):
            if not waiter.done():
                waiter.set_result(None)

    def version(self, key: Key) -> int:
        """Return what to compare with later, to notice a change during a look."""
        return self._versions.setdefault(key, 0)

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
            self._waiters.get(key, set()).discard(waiter)

    def _put(self, pending: PendingQuestion) -> None:
        self.index.put(pending)
        self.on_changed(pending)

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _publishing(self, pending: PendingQuestion, *steps: Step) -> AbstractContextManager[None]:
        events = (self._event(pending, step) for step in steps)
        return self._audit.publishing(event for event in events if event is not None)

    def _event(self, pending: PendingQuestion, step: Step) -> Event | None:
        kind = event_kind(step)
        if kind is None:
            return None
        channel, by, detail = _particulars(step)
        event = self._event_about(pending, kind)
        return replace(event, channel=channel, by=by, detail=detail)

    def _event_about(self, pending: PendingQuestion, kind: EventKind) -> Event:
        return Event(
            kind,
            self.now(),
            pending.group,
            pending.request_id,
            pending.short_id,
            agent=pending.agent,
            elapsed_seconds=_elapsed(pending, self.now()),
            session_id=pending.session_id or None,
        )


def asked_event(pending: PendingQuestion, now: datetime) -> Event:
    """Return the event that tells of a new question."""
    return Event(
        EventKind.ASKED,
        now,
        pending.group,
        pending.request_id,
        pending.short_id,
        agent=pending.agent,
        asked=tuple(AskedQuestion(q.text, q.labels) for q in pending.questions),
        elapsed_seconds=_elapsed(pending, now),
        session_id=pending.session_id or None,
    )


def _elapsed(pending: PendingQuestion, now: datetime) -> float:
    return round((now - pending.timestamp).total_seconds(), 3)


def _particulars(step: Step) -> tuple[str | None, str | None, str | None]:
    """Return channel, person and detail of a step; never what an answer says."""
    match step:
        case Ended(ending=ending):
            return ending.channel, ending.by, None
        case Shown(channel=channel) | CardSettled(channel=channel):
            return channel, None, None
        case ShowFailed(channel=channel, reason=reason):
            return channel, None, reason
        case SettleFailed(channel=channel, reason=reason):
            return channel, None, reason
        case ResumeFailed(reason=reason) | GaveUp(reason=reason):
            return None, None, reason
        case Delivered(path=path):
            return None, None, path.value
        case PartlyAnswered(draft=draft):
            return None, draft.by, f"question {draft.question + 1}"
        case Retried(by=by) | Dismissed(by=by):
            return None, by, None
        case _:
            return None, None, None
