"""A clock, stores, a channel and a launcher in memory, which keep the contracts of real ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pynchy.channels.base import Channel, ReplyHandler
from pynchy.errors import (
    ChannelUnavailable,
    DeliveryFailed,
    DuplicateRequest,
    NotShown,
    ReplyRejected,
)
from pynchy.events import Announcement
from pynchy.launchers.base import Launch, RunnerEnd
from pynchy.model import (
    Card,
    CardRef,
    CardState,
    Ending,
    GroupName,
    Option,
    PendingQuestion,
    Question,
    Reply,
    RequestId,
    SessionId,
    ShortId,
    State,
)
from pynchy.pending.base import Conflict, HistoryQuery, Key, StoreChange, Stored
from pynchy.session import Session

NOON = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


def make_pending(request_id: str = "q1", **changes: Any) -> PendingQuestion:  # noqa: ANN401 - any field
    """Return an open yes-or-no question of the group `g1`, with the given fields changed."""
    pending = PendingQuestion(
        request_id=RequestId(request_id),
        short_id=ShortId(f"s{request_id}"),
        group=GroupName("g1"),
        questions=(Question("Deploy?", options=(Option("Yes"), Option("No"))),),
        timestamp=NOON,
        wait_until=NOON + timedelta(minutes=30),
        expires_at=NOON + timedelta(days=7),
        digest="d",
        state=State.OPEN,
        cards=(CardRef("local", "", "m1", CardState.SHOWN),),
    )
    return replace(pending, **changes)


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: datetime = NOON) -> None:
        self._at = at

    def now(self) -> datetime:
        """Return the moment that was set."""
        return self._at

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self._at += by


class MemoryStore:
    """A PendingStore and History that keep everything in memory, also over a 'restart'.

    Several ledgers may share one, as hosts share a server: each is told what the others do.
    """

    def __init__(self) -> None:
        self._open: dict[Key, PendingQuestion] = {}
        self._revisions: dict[Key, int] = {}
        self._endings: dict[Key, Ending] = {}
        self._closed: dict[Key, PendingQuestion] = {}
        self._watchers: list[asyncio.Queue[StoreChange]] = []

    async def load(self) -> list[Stored]:
        """See PendingStore."""
        return [self._stored(key) for key in self._open]

    async def get(self, key: Key) -> Stored | None:
        """See PendingStore."""
        return self._stored(key) if key in self._open else None

    async def record(self, pending: PendingQuestion) -> int:
        """See PendingStore."""
        if pending.key in self._open or pending.key in self._closed:
            raise DuplicateRequest(pending.request_id)
        return self._write(pending, 1)

    async def update(self, pending: PendingQuestion, revision: int) -> int:
        """See PendingStore."""
        self._check(pending.key, revision)
        return self._write(pending, revision + 1)

    async def end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        """See PendingStore."""
        winner = self._endings.setdefault(pending.key, ending)
        if pending.key in self._open:
            self._publish(pending.key)
        return winner

    async def close(self, pending: PendingQuestion, revision: int) -> None:
        """See PendingStore."""
        self._check(pending.key, revision)
        self._closed[pending.key] = pending
        del self._open[pending.key], self._revisions[pending.key]
        self._publish(pending.key)

    def watch(self) -> AsyncIterator[StoreChange]:
        """See PendingStore."""
        queue: asyncio.Queue[StoreChange] = asyncio.Queue()
        self._watchers.append(queue)
        return _drain(queue)

    def problems(self) -> list[str]:
        """See PendingStore."""
        return []

    def _check(self, key: Key, revision: int) -> None:
        if self._revisions.get(key) != revision:
            raise Conflict(key[1])

    def _write(self, pending: PendingQuestion, revision: int) -> int:
        self._open[pending.key] = pending
        self._revisions[pending.key] = revision
        self._publish(pending.key)
        return revision

    def _stored(self, key: Key) -> Stored:
        return Stored(self._open[key], self._endings.get(key), self._revisions[key])

    def _publish(self, key: Key) -> None:
        change = StoreChange(key, self._stored(key) if key in self._open else None)
        for queue in self._watchers:
            queue.put_nowait(change)

    async def find(self, group: GroupName, request_id: RequestId) -> PendingQuestion | None:
        """See History."""
        return self._closed.get((group, request_id))

    async def with_short_id(self, short_id: ShortId) -> PendingQuestion | None:
        """See History."""
        newest = reversed(self._closed.values())
        return next((pending for pending in newest if pending.short_id == short_id), None)

    async def with_request_id(self, request_id: RequestId) -> list[PendingQuestion]:
        """See History."""
        return [p for p in self._closed.values() if p.request_id == request_id]

    async def recent(self, query: HistoryQuery) -> list[PendingQuestion]:
        """See History."""
        found = [p for p in reversed(self._closed.values()) if query.fits(p)]
        return found[: query.limit]

    async def prune(self, before: datetime, max_bytes: int) -> int:
        """See History; sizes are not kept in memory."""
        del max_bytes
        old = [k for k, p in self._closed.items() if (p.delivered_at or p.timestamp) < before]
        for key in old:
            del self._closed[key], self._endings[key]
        return len(old)


async def _drain(queue: asyncio.Queue[StoreChange]) -> AsyncIterator[StoreChange]:
    while True:
        yield await queue.get()


@dataclass(frozen=True, slots=True)
class Sent:
    """A card that a fake channel was asked to show or to settle."""

    jid: str
    request_id: RequestId
    card: Card
    questions: tuple[Question, ...] = ()


class FakeChannel(Channel):
    """A channel that remembers its cards, and fails as often as it is told to.

    `down` is a service that is away, `lost_replies` how many cards it takes without saying so.
    """

    def __init__(self, name: str = "fake", *, checks_users: bool = True) -> None:
        self.name = name
        self.checks_users = checks_users
        self.handler: ReplyHandler | None = None
        self.shown: list[Sent] = []
        self.settled: list[Sent] = []
        self.told: list[tuple[str, str]] = []
        self.announced: list[tuple[str, Announcement]] = []
        self.show_failures = 0
        self.settle_failures = 0
        self.lost_replies = 0
        self.down = False
        self._heard: set[str] = set()

    async def open(self, handler: ReplyHandler) -> None:
        """See Channel."""
        self.handler = handler

    async def close(self) -> None:
        """See Channel."""
        self.handler = None

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """See Channel."""
        if self.show_failures or self.down:
            self.show_failures -= not self.down
            raise NotShown("told to fail")
        self.shown.append(Sent(jid, request_id, card, questions))
        if self.lost_replies:
            self.lost_replies -= 1
            raise ChannelUnavailable("told to lose the reply")
        return f"{self.name}-{len(self.shown)}"

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """See Channel."""
        del message_id
        if self.settle_failures or self.down:
            self.settle_failures -= not self.down
            raise ChannelUnavailable("told to fail")
        self.settled.append(Sent(jid, request_id, card, questions))

    async def announce(self, jid: str, told: Announcement) -> None:
        """See Channel."""
        if self.down:
            raise NotShown("told to be down")
        self.announced.append((jid, told))

    def problem(self) -> str | None:
        """See Channel."""
        return "told to be down" if self.down else None

    async def say(self, event: str, reply: Reply) -> None:
        """Pass a person's reply on, each event once; what is refused is told to that person."""
        if self.handler is None or event in self._heard:
            return
        self._heard.add(event)
        decides = self.handler.answer if reply.values or reply.answers else self.handler.decline
        try:
            await decides(reply)
        except ReplyRejected as exc:
            self.told.append((reply.user_id or "", str(exc)))


@dataclass(eq=False, slots=True)
class FakeRunner:
    """A runner that ends when it is told to."""

    launch: Launch
    end: asyncio.Future[RunnerEnd] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    async def ended(self) -> RunnerEnd:
        """See Runner."""
        return await asyncio.shield(self.end)

    async def stop(self) -> None:
        """See Runner."""
        if not self.end.done():
            self.end.set_result(RunnerEnd("stopped", stopped=True))

    def finish(self, error: str | None = None) -> None:
        """Let the runner end."""
        self.end.set_result(RunnerEnd(error))


class FakeLauncher:
    """A launcher whose runners are objects; `refuse` makes every start fail."""

    def __init__(self) -> None:
        self.runners: list[FakeRunner] = []
        self.refuse: str | None = None

    async def adopt(self) -> None:
        """See Launcher."""

    async def start(self, launch: Launch) -> FakeRunner:
        """See Launcher."""
        if self.refuse:
            raise DeliveryFailed(self.refuse)
        if self.runner_on(launch.group, launch.session_id):
            raise DeliveryFailed("a runner works on this session already")
        before = await self.find(launch.stem)
        if before and before.launch.request_id != launch.request_id:
            raise DeliveryFailed(f"another runner was started as {launch.stem}")
        runner = FakeRunner(launch)
        self.runners.append(runner)
        return runner

    async def find(self, stem: str, request_id: RequestId | None = None) -> FakeRunner | None:
        """See Launcher."""
        found = next((r for r in reversed(self.runners) if r.launch.stem == stem), None)
        is_other = found and request_id and found.launch.request_id != request_id
        return None if is_other else found

    def runner_on(self, group: GroupName, session_id: SessionId) -> FakeRunner | None:
        """See Launcher."""
        on = (r for r in self.runners if r.launch.group == group)
        return next((r for r in on if r.launch.session_id == session_id and not r.end.done()), None)

    def running(self, group: GroupName) -> frozenset[SessionId]:
        """See Launcher."""
        on = (r for r in self.runners if r.launch.group == group)
        return frozenset(r.launch.session_id for r in on if not r.end.done())

    async def close(self) -> None:
        """See Launcher."""


class MemorySessions:
    """A SessionStore that keeps everything in memory, also over a 'restart'."""

    def __init__(self) -> None:
        self._kept: dict[tuple[GroupName, SessionId], Session] = {}

    async def load(self) -> list[Session]:
        """See SessionStore."""
        return list(self._kept.values())

    async def keep(self, session: Session) -> None:
        """See SessionStore."""
        self._kept[session.key] = session

    async def forget(self, sessions: Iterable[tuple[GroupName, SessionId]]) -> None:
        """See SessionStore."""
        for key in list(sessions):
            self._kept.pop(key, None)
