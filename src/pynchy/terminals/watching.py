"""What a program in a terminal of ours asks by its title, carried to people and back.

The thread that copies bytes hears titles and types; another asks. They hand each other only what is
to be done next, so that no key waits for a disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from agent_runner.asking import Asker
from pynchy.aio import Rate
from pynchy.phux import Asked, parse_title
from pynchy.terminals.asks import ASKS_AT_ONCE, ASKS_PER_SECOND, TitleAsk, tell
from pynchy.terminals.foreground import Foreground, look_at, waits_for_input, why_not_typed
from pynchy.terminals.output import TerminalNotice
from pynchy.terminals.pump import Pump
from pynchy.typed_line import Typed, TypingResult

SETTLE_SECONDS = 0.1
_NOTICES_PER_SECOND, _NOTICES_AT_ONCE = 1 / 6, 10
_LOOK_SECONDS = 0.1
_LOOK_AGAIN_SECONDS = 0.03
_END_SECONDS = 5.0
_MAX_MESSAGES = 20
RETITLED = "its terminal says something else now"
ENDED = "the program has ended"


@dataclass(frozen=True, slots=True)
class Names:
    """Who asks, for people: the program, and what it works on."""

    agent: str
    task: str


@dataclass(slots=True)
class _StandingAsk:
    """What the title asks just now, and what the asking thread wants of us for it."""

    asked: Asked
    asker: Foreground
    since: float
    is_posted: bool = False
    cleared: str = ""
    line: tuple[str, Callable[[TypingResult], None]] | None = None
    ask: TitleAsk | None = None

    def give_up(self, reason: str) -> None:
        """It is asked no more: what was not typed yet is not. From any thread, more than once."""
        self.cleared = self.cleared or reason
        line, self.line = self.line, None
        if line is not None:
            line[1](TypingResult(Typed.NO, self.cleared))


class TitleWatch:
    """The Listener of one program. `messages` is what went wrong, to be said at the end."""

    def __init__(self, pump: Pump, ipc_dir: Path, names: Names) -> None:
        self.messages: list[str] = []
        self._pump = pump
        self._standing: _StandingAsk | None = None
        self._notices = Rate(_NOTICES_PER_SECOND, _NOTICES_AT_ONCE)
        self._last_notice: TerminalNotice | None = None
        self._asking = _AskingThread(ipc_dir, names, self._tell)

    def _tell(self, message: str) -> None:
        if len(self.messages) < _MAX_MESSAGES and message not in self.messages:
            self.messages.append(message)

    def start(self) -> None:
        """Begin to ask. What is told before is not lost."""
        self._asking.start()

    def stop(self) -> None:
        """Take back what is asked, and end."""
        self._clear(ENDED)
        self._asking.stop()

    @property
    def is_waiting(self) -> bool:
        """See Listener: nobody tells when the program that asks ends, or comes to the front."""
        return self._standing is not None

    def titled(self, title: str, asker: Foreground) -> None:
        """See Listener."""
        asked = parse_title(title)
        standing = self._standing
        if standing is not None and (asked, asker) == (standing.asked, standing.asker):
            return
        self._clear(RETITLED)
        if asked is not None:
            self._standing = _StandingAsk(asked, asker, time.monotonic())

    def noticed(self, notice: TerminalNotice) -> None:
        """See Listener: of a flood the rest is left out."""
        if notice != self._last_notice and self._notices.take_now():
            self._last_notice = notice
            self._asking.post(self._asking.tell(notice))

    def tick(self) -> None:
        """See Listener."""
        standing = self._standing
        if standing is None:
            return
        in_front = self._pump.in_front
        if in_front != standing.asker.group and look_at(standing.asker.group) != standing.asker:
            self._clear(ENDED)
        elif not standing.is_posted:
            # What is gone at once is asked nobody: a program may set a thousand titles a second.
            if time.monotonic() - standing.since >= SETTLE_SECONDS:
                standing.is_posted = True
                self._asking.post(self._ask(standing))
        elif standing.line is not None and not self._pump.has_output:
            (line, reply), standing.line = standing.line, None
            self._pump.type_line(line, standing.asker, reply)

    def _clear(self, reason: str) -> None:
        standing, self._standing = self._standing, None
        if standing is None or not standing.is_posted:
            return
        standing.give_up(reason)
        self._asking.post(self._asking.clear(standing, reason))

    async def _ask(self, standing: _StandingAsk) -> None:
        await self._asking.ask(standing, self._pump)


class _Handed:
    """An AskingTerminal whose line is typed by the thread that copies bytes."""

    def __init__(self, standing: _StandingAsk, pump: Pump) -> None:
        self._standing, self._pump = standing, pump
        self._loop = asyncio.get_running_loop()

    async def until_typable(self) -> str:
        group = self._standing.asker.group
        while not self._standing.cleared:
            if self._pump.may_type(self._standing.asker):
                if why := await asyncio.to_thread(why_not_typed, group):
                    return why
                if await self._is_read(group):
                    return ""
            await asyncio.sleep(_LOOK_SECONDS)
        return self._standing.cleared

    async def _is_read(self, group: int) -> bool:
        """Look twice: between two things that it does, a program may seem to wait for input."""
        looks = [await asyncio.to_thread(waits_for_input, group)]
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        looks.append(await asyncio.to_thread(waits_for_input, group))
        return all(looks)

    async def type_line(self, text: str) -> TypingResult:
        done: asyncio.Future[TypingResult] = self._loop.create_future()
        self._standing.line = (text, self._reply(done))
        # It may have been given up just before that, by whom nobody tells.
        if self._standing.cleared:
            self._standing.give_up(self._standing.cleared)
        self._pump.wake()
        return await done

    def _reply(self, done: asyncio.Future[Any]) -> Callable[[Any], None]:
        def reply(said: object) -> None:
            self._loop.call_soon_threadsafe(_settle, done, said)

        return reply


def _settle(done: asyncio.Future[Any], said: object) -> None:
    if not done.done():
        done.set_result(said)


class _AskingThread:
    """Asks, in a loop of its own."""

    def __init__(self, ipc_dir: Path, names: Names, report: Callable[[str], None]) -> None:
        self._ipc_dir, self._names, self._report = ipc_dir, names, report
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="asking", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._asker: asyncio.Future[Asker] = self._loop.create_future()
        self._told = asyncio.Lock()
        self._ends = asyncio.Event()
        self._rate = Rate(ASKS_PER_SECOND, ASKS_AT_ONCE)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ends.set)
            self._thread.join(_END_SECONDS)

    def post(self, work: Coroutine[Any, Any, None]) -> None:
        """Let the work be done in the loop, unless that is gone. From any thread."""
        if not self._thread.is_alive():
            work.close()
            return
        self._loop.call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as exc:  # noqa: BLE001 - the program goes on without us
            self._report(f"a question could not be asked: {exc}")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as exc:  # noqa: BLE001 - as above
            self._report(f"nothing can be asked: {exc}")

    async def _serve(self) -> None:
        agent, task = self._names.agent, self._names.task
        async with Asker(
            self._ipc_dir, confirms=True, agent=agent, task=task, tell=self._report
        ) as asker:
            self._asker.set_result(asker)
            await self._ends.wait()
            while self._tasks:
                await asyncio.wait(self._tasks)

    async def ask(self, standing: _StandingAsk, pump: Pump) -> None:
        """See the question to its end."""
        standing.ask = TitleAsk(await self._asker, _Handed(standing, pump), standing.asked)
        # A title that nobody could be answered for is no question: see foreground.
        if not await asyncio.to_thread(why_not_typed, standing.asker.group):
            await standing.ask.run(self._names.agent, self._names.task, self._rate)

    async def clear(self, standing: _StandingAsk, reason: str) -> None:
        """The title asks it no more."""
        await self._asker
        if standing.ask is not None:
            standing.ask.clear(reason)

    async def tell(self, notice: TerminalNotice) -> None:
        """Tell people what the program says."""
        asker = await self._asker
        async with self._told:  # in the order in which they were told
            await tell(asker, notice, self._names.agent, self._names.task)
