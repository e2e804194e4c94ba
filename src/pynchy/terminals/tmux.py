"""`pynchy watch --tmux`: what the panes of a tmux server ask by their titles, carried to people.

    something has changed ─► all panes are read ─► for each: asks, asks something else, asks no more
    answer ─► receipt ─► is the pane as it was? ─► written down in tmux, typed ─► Enter ─► said so

A title is read up to a second late, so who asks is whoever is in front of the pane when it is first
seen. Whatever becomes of us, nothing is typed twice: see tmux_panes.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent_runner.asking import Asker
from pynchy.aio import Rate
from pynchy.phux import Asked, parse_title
from pynchy.terminals.asks import ASKS_AT_ONCE, ASKS_PER_SECOND, TitleAsk
from pynchy.terminals.foreground import (
    IGNORED_IN_TMUX,
    Foreground,
    describe_group,
    group_in_front_of,
    look_at,
    waits_for_input,
    why_not_typed,
)
from pynchy.terminals.input_queue import READ_SECONDS, count_unread, drop_unread
from pynchy.terminals.tmux_control import ControlBroken, ControlClient, TmuxGone, TmuxRefused
from pynchy.terminals.tmux_panes import (
    LIST_PANES,
    SUBSCRIBE,
    TYPED,
    PaneSeen,
    forget_mark,
    mark_of,
    read_panes,
    type_enter,
    type_text,
)
from pynchy.terminals.tmux_server import CannotWatch, TmuxServer, hold, must_leave, release
from pynchy.terminals.watching import ENDED, RETITLED
from pynchy.typed_line import Typed, TypingResult

SERVER_ENDED = "the tmux server has ended"

_PANE_GONE = "its pane is gone"
_STOPPED = "pynchy watch was ended"
_LOOK_SECONDS = 0.005
_DOES_NOT_READ = "the program does not wait for input"
_NOT_IN_FRONT = "another program is in front of the pane"
_CHANGED = "the pane has changed in that moment"
_TMUX_GONE = "tmux has ended the connection"
_LOOK_SECONDS = 1.0
_MOST_IN_VAIN = 3

Say = Callable[[str], None]


class TmuxWatch:
    """Asks for all panes of one server; `describe` says what is worked on in a folder."""

    def __init__(
        self, server: TmuxServer, ipc_dir: Path, describe: Callable[[str], str], say: Say
    ) -> None:
        self._server, self._ipc_dir = server, ipc_dir
        self._describe, self._say = describe, say
        self._panes: dict[str, _Pane] = {}
        self._client: ControlClient | None = None
        self._has_looked = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Watch until the server ends, or cancelled: then what is asked is taken back.

        Raise CannotWatch, ControlBroken, MailboxMissing.
        """
        await self._server.check()
        async with Asker(self._ipc_dir, confirms=True, agent="tmux", tell=self._say) as asker:
            self._asker = asker
            try:
                await self._attach()
            finally:
                await self._end(SERVER_ENDED)

    async def _attach(self) -> None:
        session = await self._server.session()
        if session is None:
            raise CannotWatch("every session of this tmux would end when we leave it again")
        server = session.server
        in_vain = 0
        while session is not None:
            self._has_looked = False
            with suppress(TmuxGone, TmuxRefused):
                async with self._server.attach(session) as client:
                    await self._follow(client)
            in_vain = 0 if self._has_looked else in_vain + 1
            if in_vain >= _MOST_IN_VAIN:
                raise CannotWatch(
                    "tmux lets nobody attach in control mode; is its server older than 3.2?"
                )
            # That session has ended; the server lives as long as it has another.
            session = await self._server.session(server)

    async def _follow(self, client: ControlClient) -> None:
        await hold(client)
        await client.do(SUBSCRIBE)
        self._client = client
        if not self._panes:
            self._say("watching all panes of tmux; Ctrl-C ends it")
        try:
            while not await must_leave(client):
                client.changed.clear()
                await self.look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS if self._is_asking else None):
                        await client.changed.wait()
        except asyncio.CancelledError:
            # What is just being typed is typed to its end.
            await self._end(_STOPPED)
            with suppress(TmuxGone, TmuxRefused, ControlBroken):
                await release(client)
            raise
        finally:
            self._client = None

    @property
    def is_detached(self) -> bool:
        """True while there is no connection to tmux."""
        return self._client is None

    @property
    def _is_asking(self) -> bool:
        return any(pane.is_asking for pane in self._panes.values())

    async def do(self, command: str) -> list[str]:
        """Run a line of tmux commands. Raise TmuxRefused, TmuxGone, ControlBroken."""
        if self._client is None:
            raise TmuxGone(_TMUX_GONE)
        return await self._client.do(command)

    async def look(self) -> None:
        """Read all panes. Raise TmuxGone, ControlBroken."""
        seen = read_panes(await self.do(LIST_PANES))
        self._has_looked = True
        # No wait in between: another look may have come back that is newer than this one.
        for pane_id in self._take(seen):
            with suppress(TmuxRefused):  # it is gone by now
                await self.do(forget_mark(pane_id))

    def _take(self, seen: dict[str, PaneSeen]) -> list[str]:
        """Let all panes know. Return those that have changed their title since we typed."""
        retitled = []
        for pane_id, pane in list(self._panes.items()):
            if pane_id not in seen or seen[pane_id].pid != pane.seen.pid:
                self._panes.pop(pane_id).clear(_PANE_GONE)
        for pane_id, one in seen.items():
            if pane_id not in self._panes:
                self._panes[pane_id] = _Pane(self, one)
            elif self._panes[pane_id].look(one) and one.mark:
                retitled.append(pane_id)
        return retitled

    def begin(self, standing: _PaneAsk) -> None:
        """Ask people what a pane asks."""
        standing.ask = TitleAsk(self._asker, standing, standing.asked)
        task = asyncio.create_task(self._see_through(standing, standing.ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def say(self, pane: PaneSeen, what: str) -> None:
        """Tell who looks at us."""
        self._say(f"{pane.place}  {what}")

    async def _see_through(self, standing: _PaneAsk, ask: TitleAsk) -> None:
        name, folder = describe_group(standing.asker.group)
        seen = standing.pane.seen
        task = f"{self._describe(folder)} (tmux {seen.place})".strip()
        self.say(seen, f"{name} asks: {standing.asked.question}")
        try:
            await ask.run(name, task, standing.pane.rate)
        except Exception as exc:  # noqa: BLE001 - the other panes are asked for all the same
            standing.told = standing.told or f"could not be asked: {exc}"
        finally:
            standing.is_over = True
        self.say(standing.pane.seen, standing.told or "over: there is no answer to type")

    async def _end(self, reason: str) -> None:
        for pane in self._panes.values():
            pane.clear(reason)
        # Nobody reads the panes now: what is about to be typed is given up, or ends by itself.
        if self._tasks:
            await asyncio.wait(self._tasks)


class _Pane:
    """What a pane asks, if anything."""

    def __init__(self, watch: TmuxWatch, seen: PaneSeen) -> None:
        self.seen = seen
        self.rate = Rate(ASKS_PER_SECOND, ASKS_AT_ONCE)
        self.watch = watch
        self._standing: _PaneAsk | None = None
        self._consider(written_down=seen.mark)

    @property
    def is_asking(self) -> bool:
        return self._standing is not None and not self._standing.is_over

    def asks(self, standing: _PaneAsk) -> bool:
        """True if that is still what the pane asks."""
        return self._standing is standing

    def look(self, seen: PaneSeen) -> bool:
        """Take what tmux shows of the pane now. Return True if its title has changed."""
        is_retitled, self.seen = seen.title != self.seen.title, seen
        standing = self._standing
        if is_retitled:
            self._consider(written_down="")
        elif standing is not None and (seen.is_dead or standing.has_ended):
            self.clear(ENDED)
        if standing is not None:
            standing.looked.set()
        return is_retitled

    def clear(self, reason: str) -> None:
        """The pane asks no more."""
        standing, self._standing = self._standing, None
        if standing is not None and standing.ask is not None and not standing.is_over:
            standing.told = standing.told or f"cleared: {reason}"
            standing.ask.clear(reason)

    def _consider(self, written_down: str) -> None:
        asked = parse_title(self.seen.title)
        asker = look_at(group_in_front_of(self.seen.pid))
        standing = self._standing
        if standing is not None and (asked, asker) == (standing.asked, standing.asker):
            return
        self.clear(RETITLED)
        if asked is None:
            return
        why = why_not_typed(asker.group, IGNORED_IN_TMUX)
        if asker.group == os.getpgrp():
            why = "it is our own terminal"
        elif written_down == mark_of(self.seen, asker):
            why = "an answer may have been typed already"
        if why:
            self.watch.say(self.seen, f"not asked: {why}")
        else:
            self._standing = _PaneAsk(self, asked, asker)
            self.watch.begin(self._standing)


@dataclass(slots=True, eq=False)
class _PaneAsk:
    """One ask of a pane: the AskingTerminal that its answer is typed into."""

    pane: _Pane
    asked: Asked
    asker: Foreground
    ask: TitleAsk | None = None
    is_over: bool = False
    told: str = ""
    looked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_ended(self) -> bool:
        """True if the program is neither in front nor there at all."""
        is_in_front = group_in_front_of(self.pane.seen.pid) == self.asker.group
        return not is_in_front and look_at(self.asker.group) != self.asker

    async def until_typable(self) -> str:
        """See AskingTerminal."""
        waits = ""
        while True:
            with suppress(TmuxGone):
                await self.pane.watch.look()
            self.looked.clear()  # that was our own look
            if not (why := self._why_not_now()):
                break
            if why != waits:
                self.pane.watch.say(self.pane.seen, f"the answer waits: {why}")
            waits = why
            await self.looked.wait()
        never = why_not_typed(self.asker.group, IGNORED_IN_TMUX)
        self.told = f"not typed: {never}" if never else ""
        return never

    async def type_line(self, text: str) -> TypingResult:
        """See AskingTerminal."""
        attempt = await self._type(text)
        match attempt.typed:
            case Typed.YES:
                self.told = "typed"
            case Typed.NO:
                self.told = f"not typed: {attempt.why}"
            case Typed.MAYBE:
                self.told = f"may have been typed: {attempt.why}"
        return attempt

    def _why_not_now(self) -> str:
        if self.pane.watch.is_detached:
            return _TMUX_GONE
        if why := self.pane.seen.why_not_now or ("" if self._is_in_front() else _NOT_IN_FRONT):
            return why
        is_read = waits_for_input(self.asker.group) and not count_unread(self.pane.seen.tty)
        return "" if is_read else _DOES_NOT_READ

    def _is_in_front(self) -> bool:
        return look_at(group_in_front_of(self.pane.seen.pid)) == self.asker

    async def _type(self, text: str) -> TypingResult:
        pane = self.pane.seen
        mark = mark_of(pane, self.asker)
        if not self.pane.asks(self):
            return TypingResult(Typed.NO, RETITLED)
        if self.pane.watch.is_detached:
            return TypingResult(Typed.NO, _TMUX_GONE)
        if why := why_not_typed(self.asker.group, IGNORED_IN_TMUX):
            return TypingResult(Typed.NO, why)
        if not self._is_in_front():
            return TypingResult(Typed.NO, _NOT_IN_FRONT)
        try:
            if await self.pane.watch.do(type_text(pane, mark, text)) != [TYPED]:
                return TypingResult(Typed.NO, _CHANGED)
        except TmuxRefused as exc:
            return TypingResult(Typed.NO, f"tmux says: {exc}")
        except (TmuxGone, ControlBroken):
            return TypingResult(Typed.MAYBE, _TMUX_GONE)
        return await self._press_enter(pane, mark)

    async def _press_enter(self, pane: PaneSeen, mark: str) -> TypingResult:
        """Press Enter, if what was typed is still in front of the program that asked."""
        if not self._is_in_front():
            drop_unread(pane.tty)
            return TypingResult(Typed.MAYBE, "the program ended while it was typed; Enter was not")
        try:
            if await self.pane.watch.do(type_enter(pane, mark)) != [TYPED]:
                return TypingResult(Typed.MAYBE, f"{_CHANGED}, before Enter")
        except (TmuxRefused, TmuxGone, ControlBroken) as exc:
            return TypingResult(Typed.MAYBE, f"Enter may not have been: {exc}")
        return await self._see_read(pane)

    async def _see_read(self, pane: PaneSeen) -> TypingResult:
        """Wait until the line was read; what is not is taken back, since a shell may come next."""
        ends = time.monotonic() + READ_SECONDS
        while count_unread(pane.tty):
            if not self._is_in_front() or time.monotonic() > ends:
                drop_unread(pane.tty)
                return TypingResult(Typed.MAYBE, "the program did not read all of it")
            await asyncio.sleep(_LOOK_SECONDS)
        return TypingResult(Typed.YES)
