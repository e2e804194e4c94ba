"""Small tools of a host: fair turns, locks and results by key, rates, its loop and its clock.

A wall clock that jumps while the host runs neither expires a question nor revives one. The jump is
reported, and taken over at the next start.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import selectors
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from pynchy.model import GroupName

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

log = logging.getLogger(__name__)

# Longer than an agent takes to say that it has its answer, if it says so at all.
MAX_HOLD_SECONDS = 60.0
# By so much a wall clock may differ from ours before it is told.
JUMP_SECONDS = 30.0
# So much of a group's work may go on that nobody waits for any more.
_MAX_LEFT_BEHIND = 2

K = TypeVar("K")
T = TypeVar("T")


def is_being_cancelled() -> bool:
    """True if somebody cancels this task; False where what it awaits cancelled itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns. A caller that is cancelled hears of that when it is done.

    For what must not be left half done, and is short: a write, and what follows from it in memory.
    """
    running = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is None:
        return running.result()
    failed = None if running.cancelled() else running.exception()
    raise cancelled from failed


class NoThread(OSError):
    """No thread can be had just now."""


async def in_own_thread(work: Callable[[], T], name: str) -> T:
    """Return what the work returns. Raise NoThread if none can be had: then it is not done.

    A pool that can start no further thread says so, and yet does the work later.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as exc:  # noqa: BLE001 - it is raised where the work is awaited
            done.set_exception(exc)

    try:
        Thread(target=run, daemon=True, name=name).start()
    except RuntimeError as exc:
        raise NoThread(errno.EAGAIN, str(exc)) from exc
    return await asyncio.wrap_future(done)


class LockMap(Generic[K]):
    """A lock for each key, which is forgotten when nobody holds or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[K, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: K) -> asyncio.Lock:
        """Return the key's lock, to be held at once: a lock that nobody holds is forgotten."""
        return self._locks.setdefault(key, asyncio.Lock())


class SharedResults(Generic[K, T]):
    """Makes a thing once for all who want it, and keeps the last few that were made."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._locks: LockMap[K] = LockMap()
        self._made: dict[K, T] = {}

    async def get(self, key: K, make: Callable[[], Awaitable[T]]) -> T:
        """Return what was made for the key, or make it."""
        async with self._locks.of(key):
            if key not in self._made:
                made = await make()
                while len(self._made) >= self._most:
                    del self._made[next(iter(self._made))]
                self._made[key] = made
            return self._made[key]


class FairSemaphore:
    """At most so many at once; groups that wait are served round robin, each in its own order.

    The last place that is free goes to a group that has none. A place is held for a bounded time:
    groups whose starts never come to an end hold up nobody for longer.
    """

    def __init__(self, most: int, longest_seconds: float = MAX_HOLD_SECONDS) -> None:
        self._free = most
        # With one place alone there is none to be left.
        self._is_shared = most > 1
        self._held: Counter[GroupName] = Counter()
        self._longest_seconds = longest_seconds
        # Who is served next stands first; a group that was served goes to the end.
        self._waiting: dict[GroupName, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, group: GroupName) -> AsyncIterator[None]:
        """Hold one of the places while the context lasts, but no longer than a place is held."""
        await self._take(group)
        is_held = True

        def give_back() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._give_back(group)

        due = asyncio.get_running_loop().call_later(self._longest_seconds, give_back)
        try:
            yield
        finally:
            due.cancel()
            give_back()

    async def _take(self, group: GroupName) -> None:
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(served)
        self._serve()
        try:
            await served
        except asyncio.CancelledError:
            if served.done() and not served.cancelled():
                self._give_back(group)  # it was ours already
            raise

    def _give_back(self, group: GroupName) -> None:
        self._held -= Counter({group: 1})
        self._free += 1
        self._serve()

    def _serve(self) -> None:
        """Hand out what is free, to one group after the other."""
        while (group := next(filter(self._may_have_place, self._waiting), None)) is not None:
            queue = self._waiting.pop(group)
            served = queue.popleft()
            if queue:
                self._waiting[group] = queue
            if not served.done():
                self._free -= 1
                self._held[group] += 1
                served.set_result(None)

    def _may_have_place(self, group: GroupName) -> bool:
        is_last = self._free == 1 and self._is_shared
        return self._free > 0 and not (is_last and self._held[group])


class FairThreads:
    """Does work for groups in threads that nothing else needs, in turns of FairSemaphore.

    What takes too long is waited for no more. It counts for its group until it is done: a group
    that has left too much behind is refused, so that it can neither take all threads nor the
    processor from others.
    """

    def __init__(self, most: int, longest_seconds: float, name: str) -> None:
        self._turns = FairSemaphore(most, longest_seconds)
        self._longest_seconds = longest_seconds
        self._name = name
        # Counted in threads, too.
        self._lock = Lock()
        self._running: Counter[GroupName] = Counter()

    async def run(self, group: GroupName, work: Callable[[], T]) -> T:
        """Return what the work returns. Raise TimeoutError, or OSError if no thread can be had."""

        def counted() -> T:
            try:
                return work()
            finally:
                self._count(group, -1)

        async with self._turns.turn(group):
            if self._running[group] >= _MAX_LEFT_BEHIND:
                raise TimeoutError(f"{group} has too much work that does not end")
            self._count(group, 1)
            async with asyncio.timeout(self._longest_seconds):
                try:
                    return await in_own_thread(counted, self._name)
                except NoThread:
                    self._count(group, -1)
                    raise

    def _count(self, group: GroupName, more: int) -> None:
        with self._lock:
            self._running[group] += more
            if not self._running[group]:
                del self._running[group]


class _GroupOver(Exception):
    """Ends a task group."""


@asynccontextmanager
async def cancelled_at_end() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose tasks are cancelled when the context ends."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
            raise _GroupOver  # noqa: TRY301 - the way to end a task group
    except* _GroupOver:
        log.debug("tasks.ended")


class HostLoop(asyncio.SelectorEventLoop):
    """An event loop that goes on when others of its user have taken all that epoll has room for."""

    def __init__(self) -> None:
        self._fallback = _FallbackSelector()
        super().__init__(self._fallback)

    @property
    def problem(self) -> str | None:
        """Say why the loop is slower than usual."""
        return self._fallback.problem


class _FallbackSelector(selectors.BaseSelector):
    """epoll, where there is one; poll from when the kernel refuses an entry.

    Entries of epoll are counted for each user, so that an agent can take those of the host. poll
    needs none. With a thousand connections it takes twenty times as long, so it is not the first.
    """

    def __init__(self) -> None:
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()
        self.problem: str | None = None

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        try:
            return self._selector.register(fileobj, events, data)
        except OSError as exc:
            if self.problem or exc.errno not in {errno.ENOSPC, errno.ENOMEM}:
                raise
            self._fall_back()
        return self._selector.register(fileobj, events, data)

    def _fall_back(self) -> None:
        log.warning("loop.epoll_full")
        poll = selectors.PollSelector()
        for key in self._selector.get_map().values():
            poll.register(key.fileobj, key.events, key.data)
        self._selector.close()
        self._selector = poll
        self.problem = (
            "a program of this user, maybe an agent, has taken all entries of epoll "
            "(fs.epoll.max_user_watches); the host does without and is slower with many "
            "connections. End that program, then start the host again"
        )

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        return self._selector.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._selector.select(timeout)

    def close(self) -> None:
        self._selector.close()

    def get_key(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._selector.get_key(fileobj)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._selector.get_map()


class SteadyClock:
    """Wall time at the start plus what has passed since, sleep of the machine included."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._zero = _elapsed_seconds()

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return self._started + timedelta(seconds=_elapsed_seconds() - self._zero)

    def jump_seconds(self) -> float:
        """Return how far the wall clock has moved away from ours."""
        return (datetime.now(UTC) - self.now()).total_seconds()

    def problem(self) -> str | None:
        """Say so if the wall clock has jumped, in words for a person."""
        jump = self.jump_seconds()
        if abs(jump) < JUMP_SECONDS:
            return None
        return (
            f"the machine's clock has jumped by {jump:+.0f} s since the start; "
            "deadlines go by the time before the jump until a restart"
        )


def _elapsed_seconds() -> float:
    # CLOCK_MONOTONIC stands still on Linux while the machine sleeps; deadlines do not.
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


@dataclass(slots=True)
class Rate:
    """A bucket of tokens: so many a second, with a reserve for a burst."""

    per_second: float
    burst: float
    tokens: float = field(init=False)
    refilled: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.tokens = self.burst

    async def take(self) -> None:
        """Return when there is a token."""
        self._refill()
        if self.tokens < 1:
            await asyncio.sleep((1 - self.tokens) / self.per_second)
            self._refill()
        self.tokens -= 1

    def take_now(self) -> bool:
        """Take a token if there is one."""
        self._refill()
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def _refill(self) -> None:
        now = time.monotonic()
        earned = (now - self.refilled) * self.per_second
        self.tokens = min(self.burst, self.tokens + earned)
        self.refilled = now


def first_in(exc: Exception) -> Exception:
    """Return what a task group's exception is about."""
    while isinstance(exc, ExceptionGroup):
        exc = exc.exceptions[0]
    return exc
