"""Keep one child running, and know how the connection stands.

A child that ends is started again, each time a little later; nothing is lost, since what people
said lies on the queue. Where connecting again would do harm, nobody does it until a person acts.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from pathlib import Path
from typing import Protocol

from pynchy.channels.whatsapp.addresses import Account, read_account
from pynchy.channels.whatsapp.connection_status import ConnectionState, ConnectionStatus, read_state
from pynchy.channels.whatsapp.process import LOG, Body, Process
from pynchy.errors import CannotShow, ChannelUnavailable, NotShown
from pynchy.safe_folder import Folder

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_RETRY_MAX_SECONDS = 60.0
_POLL_SECONDS = 1.0
# The library connects again by itself; after so long it is restarted. So is a child that hangs.
_SILENT_SECONDS = 90.0


class MaybeSent(ChannelUnavailable):
    """It is not known whether WhatsApp has the message."""


class NotSent(NotShown):
    """WhatsApp will not take the message; it was not sent."""


class CannotSend(NotSent, CannotShow):
    """The message was surely not sent, and will not be before a person has fixed something."""


class ChildListener(Protocol):
    """Who is told what becomes of the child."""

    def message_queued(self, name: str) -> None:
        """A message with this name is on the queue."""

    def child_ended(self) -> None:
        """A child has ended, which may have queued what it could not tell."""


class Supervisor:
    """Runs children on one session, one at a time."""

    def __init__(self, home: Path, store: Path, order: Body, listener: ChildListener) -> None:
        self._home = Folder(home)
        self._path = home
        self._store = store
        self._order = order | {"beat_seconds": _SILENT_SECONDS / 4}
        self._listener = listener
        self._numbers = itertools.count(1)
        self._calls: dict[int, asyncio.Future[Body]] = {}
        self._process: Process | None = None
        self._stood = time.monotonic()
        self._changed = asyncio.Condition()
        self.state = ConnectionState(ConnectionStatus.CONNECTING)
        self.trouble = ""
        self.account: Account | None = None

    @property
    def child(self) -> int | None:
        """The number of the child process, while there is one."""
        return None if self._process is None else self._process.pid

    async def load(self) -> None:
        """Learn whose session it is, before anything is asked."""
        self.account = await asyncio.to_thread(read_account, self._home)

    def problem(self) -> str | None:
        """Say what is wrong; None if nothing is."""
        return self.state.problem() or self.trouble or None

    async def ready(self, seconds: float) -> None:
        """Return when connected. Raise NotSent at once if that is not about to be."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(
                    lambda: (
                        self.state.status is ConnectionStatus.CONNECTED
                        or not self.state.status.may_pass
                    )
                )
        except TimeoutError:
            pass
        if (problem := self.state.problem()) is not None:
            raise (NotSent if self.state.status.may_pass else CannotSend)(problem)

    def ask(self, do: str, **fields: object) -> asyncio.Future[Body]:
        """Ask the child to do something. The future raises MaybeSent if the child ends first."""
        if self._process is None or self.state.status is not ConnectionStatus.CONNECTED:
            raise NotSent(self.state.problem() or "not connected")
        number = next(self._numbers)
        asked = asyncio.get_running_loop().create_future()
        self._calls[number] = asked
        self._process.line.say(do=do, id=number, **fields)
        return asked

    async def run(self) -> None:
        """Keep a child running, for ever."""
        wait = _RETRY_SECONDS
        await self._wait_for_the_end_of_a_ban(read_state(self._home))
        while True:
            await self._wait_for_an_account()
            began = time.monotonic()
            try:
                await self._run_child()
            except OSError as exc:
                await self._set(ConnectionStatus.CRASHED, f"it cannot be started: {exc.strerror}")
            if time.monotonic() - began > _RETRY_MAX_SECONDS:
                wait = _RETRY_SECONDS
            await self._pause(wait)
            wait = min(wait * 2, _RETRY_MAX_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next child, as long as the state asks for."""
        if self.state.status is ConnectionStatus.BANNED:
            await self._wait_for_the_end_of_a_ban(self.state)
        elif self.state.status.needs_person:
            await asyncio.Event().wait()
        elif self.state.status is not ConnectionStatus.LOGGED_OUT:
            await asyncio.sleep(seconds)

    async def _wait_for_the_end_of_a_ban(self, state: ConnectionState | None) -> None:
        if state is not None and state.status is ConnectionStatus.BANNED:
            await self._set(ConnectionStatus.BANNED, state.detail, state.until)
            await asyncio.sleep(max(0.0, state.until - time.time()))
        await self._set(ConnectionStatus.CONNECTING)

    async def _wait_for_an_account(self) -> None:
        """Wait until somebody has paired a phone, with `pynchy whatsapp pair`."""
        while (account := await asyncio.to_thread(read_account, self._home)) is None:
            if self.state.status not in {ConnectionStatus.LOGGED_OUT, ConnectionStatus.UNPAIRED}:
                await self._set(ConnectionStatus.UNPAIRED)
            await asyncio.sleep(_POLL_SECONDS)
        self.account = account

    async def _run_child(self) -> None:
        if self.state.status in {ConnectionStatus.LOGGED_OUT, ConnectionStatus.UNPAIRED}:
            await self._set(ConnectionStatus.CONNECTING)
        self._stood = time.monotonic()
        self._process = process = await Process.start(self._path, self._store, **self._order)
        try:
            while (told := await self._next(process)) is not None:
                await self._take(told)
        finally:
            self._process = None
            code = await process.end()
        if self.state.status in {ConnectionStatus.CONNECTED, ConnectionStatus.CONNECTING}:
            log.error("whatsapp.child_died", extra={"code": code})
            await self._set(
                ConnectionStatus.CRASHED, f"exit code {code}; see {LOG} in {self._path}"
            )
        # Those who try again at once must find the state as it is now.
        self._give_up()
        self._listener.child_ended()

    async def _next(self, process: Process) -> Body | None:
        """Return what the child says next; None if it has ended, hangs, or does not connect."""
        is_well = self.state.status is ConnectionStatus.CONNECTED
        since = time.monotonic() if is_well else self._stood
        patience = max(0.0, since + _SILENT_SECONDS - time.monotonic())
        try:
            async with asyncio.timeout(patience):
                return await process.hear()
        except TimeoutError:
            log.warning("whatsapp.child_restarted")
            return None

    async def _take(self, told: Body) -> None:
        match told:
            case {"event": "said", "name": str(name)}:
                self._listener.message_queued(name)
            case {"event": "stands", "status": status, "detail": detail, "until": until}:
                await self._set(ConnectionStatus(status), str(detail), float(until))
            case {"event": "alive"}:
                pass
            case {"event": "trouble", "text": str(text)}:
                self.trouble = text
            case {"re": int(number)}:
                asked = self._calls.pop(number, None)
                if asked is not None and not asked.done():
                    asked.set_result(told)
            case _:
                log.error("whatsapp.child_unknown_message", extra={"keys": sorted(told)})

    async def _set(self, status: ConnectionStatus, detail: str = "", until: float = 0.0) -> None:
        if status is ConnectionStatus.CONNECTED:
            self.account = await asyncio.to_thread(read_account, self._home)
        self._stood = time.monotonic()
        state = ConnectionState.of(status, time.time(), detail, until)
        # First on the disk: a host that dies now must not forget a ban.
        try:
            await asyncio.to_thread(state.keep, self._home)
        except OSError as exc:
            log.warning("whatsapp.state_unsaved", extra={"why": exc.strerror})
        async with self._changed:
            self.state = state
            self._changed.notify_all()
        log.info("whatsapp.connection_changed", extra={"state": status})

    def _give_up(self) -> None:
        calls, self._calls = self._calls, {}
        for asked in calls.values():
            if not asked.done():
                asked.set_exception(MaybeSent("the process that talks to WhatsApp has died"))
                # Nobody may be waiting any more.
                asked.exception()
