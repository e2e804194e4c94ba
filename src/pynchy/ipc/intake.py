"""Read what agents write, group by group, and hand it to whoever handles it.

Groups never wait for each other: each has its own worker and its own rate. A request is removed
only after its handler has made it durable, so a crash in between repeats it. Nothing that an
agent writes stops a worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pynchy import wire
from pynchy.aio import Rate
from pynchy.errors import DuplicateRequest, MalformedRequest
from pynchy.ipc.base import IntakeHandler
from pynchy.ipc.mailbox import RECEIPTS, Mailbox, Mailboxes
from pynchy.model import GroupName, RequestId
from pynchy.wire import Envelope

Handler = Callable[[GroupName, Envelope], Awaitable[None]]

log = logging.getLogger(__name__)

BATCH = 256
HALF_WRITTEN_SECONDS = 1.0
# After a look that takes long the folder is left alone for so many times its length. What is
# noticed is read at once meanwhile.
_REST_SHARE = 49.0
_REST_MAX_SECONDS = 60.0


class Registry:
    """Prefixes and their handlers. The longest prefix that fits wins."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def register_prefix(self, prefix: str, handler: Handler) -> None:
        """Let the handler take every request whose type begins with the prefix."""
        if prefix in self._handlers:
            raise ValueError(f"prefix {prefix!r} has a handler already")
        self._handlers[prefix] = handler

    async def dispatch(self, group: GroupName, envelope: Envelope) -> None:
        """Hand the request over. Raise MalformedRequest if nobody takes its type."""
        fitting = [prefix for prefix in self._handlers if envelope.type.startswith(prefix)]
        if not fitting:
            known = ", ".join(sorted(self._handlers))
            reason = f"type: nothing here handles it; known prefixes: {known}"
            raise MalformedRequest(reason, envelope.request_id)
        await self._handlers[max(fitting, key=len)](group, envelope)


@dataclass(slots=True)
class _Waiting:
    """What a group's worker has been told of and has not yet looked at."""

    rate: Rate
    names: dict[str, None] = field(default_factory=dict)
    look: bool = False
    rests_until: float = 0.0
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class Intake:
    """One worker for each group; also the watcher's listener."""

    def __init__(
        self,
        mailboxes: Mailboxes,
        registry: Registry,
        handler: IntakeHandler,
        tasks: asyncio.TaskGroup,
        rate: Callable[[], Rate],
    ) -> None:
        self._mailboxes = mailboxes
        self._registry = registry
        self._handler = handler
        self._tasks = tasks
        self._rate = rate
        self._waiting: dict[GroupName, _Waiting] = {}

    async def joined(self, group: GroupName) -> None:
        """Take up a new group, or one whose folders were removed meanwhile."""
        await self._handler.joined(group)
        if group not in self._waiting:
            self._waiting[group] = _Waiting(self._rate())
            self._tasks.create_task(self._work(group), name=f"intake {group}")

    def is_whole(self, group: GroupName) -> bool:
        """True while the group has its folders."""
        return self._mailboxes.of(group).is_whole()

    def noticed(self, group: GroupName, name: str) -> None:
        """Remember a file that has appeared."""
        if name.endswith(".json"):
            self._waiting[group].names[name] = None
            self._waiting[group].wake.set()
            return
        stem, dot, suffix = name.rpartition(".")
        if f"{dot}{suffix}" in RECEIPTS and wire.usable_id(stem):
            self._handler.receipt_seen(group, RequestId(stem))

    def look(self, group: GroupName) -> None:
        """Have the folder listed."""
        self._waiting[group].look = True
        self._waiting[group].wake.set()

    async def _work(self, group: GroupName) -> None:
        waiting = self._waiting[group]
        mailbox = self._mailboxes.of(group)
        while True:
            await waiting.wake.wait()
            waiting.wake.clear()
            try:
                await self._empty(waiting, mailbox)
            except OSError as exc:
                log.debug("group.folder_gone", extra={"group": group, "why": exc.strerror})

    async def _empty(self, waiting: _Waiting, mailbox: Mailbox) -> None:
        """Handle what was noticed, then what a look at the folder shows."""
        hinted, waiting.names = list(waiting.names), {}
        for name in hinted:
            await waiting.rate.take()
            await self._handle(mailbox, name, whole=True)
        if waiting.look and time.monotonic() >= waiting.rests_until:
            waiting.look = False
            for name in await asyncio.to_thread(_look, waiting, mailbox):
                await waiting.rate.take()
                await self._handle(mailbox, name, whole=False)

    async def _handle(self, mailbox: Mailbox, name: str, *, whole: bool) -> None:
        """Handle one request; if that fails, it stays in place and is tried at the next look."""
        try:
            await self._take(mailbox, name, whole=whole)
        except Exception:
            log.exception("request.failed", extra={"group": mailbox.group})

    async def _take(self, mailbox: Mailbox, name: str, *, whole: bool) -> None:
        if await asyncio.to_thread(mailbox.has_question_of, name):
            return  # its turn comes at a later look
        content = b""
        try:
            try:
                content = await asyncio.to_thread(mailbox.read_request, name)
            except FileNotFoundError:
                return
            envelope = wire.read_envelope(content, name.removesuffix(".json"))
            await self._registry.dispatch(mailbox.group, envelope)
        except DuplicateRequest:
            log.info("request.repeated", extra={"group": mailbox.group})
        except MalformedRequest as malformed:
            if not whole and await asyncio.to_thread(_is_fresh, mailbox, name):
                return
            await self._handler.refuse(mailbox.group, name, malformed, content)
            return
        await asyncio.to_thread(mailbox.drop_request, name)


def _look(waiting: _Waiting, mailbox: Mailbox) -> list[str]:
    """Return some requests of the folder. How long it takes to list is up to the agent."""
    began = time.monotonic()
    found = mailbox.requests(BATCH)
    now = time.monotonic()
    waiting.rests_until = now + min((now - began) * _REST_SHARE, _REST_MAX_SECONDS)
    return found


def _is_fresh(mailbox: Mailbox, name: str) -> bool:
    """True if a writer that does not rename may still be at it; the next look will tell."""
    try:
        age_seconds = time.time() - mailbox.tasks.stat(name).st_mtime
    except OSError:
        return False
    return 0 <= age_seconds < HALF_WRITTEN_SECONDS
