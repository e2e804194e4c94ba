"""What programs ask in terminals of phux: on their screen, and on a person's phone as well.

    phux ls ─► each terminal ─► phux watch ─► asks ─► card ─┬─ answered ─► phux types it, once
                                                            └─ asks no more ─► the card is cleared

phux tells what happens from now on: what stood before is read from the terminal's title, as far as
phux shows that. So a question from before a restart of the host is kept until something is heard
of its terminal; its answer is typed only if phux itself still finds that very ask there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from pynchy import wire
from pynchy.aio import Rate
from pynchy.config import PhuxSourceSettings
from pynchy.errors import MalformedRequest
from pynchy.model import GroupName, OutcomeKind, PendingQuestion, Question, RequestId
from pynchy.pending.base import Key, OpenQuestions
from pynchy.phux import Asked
from pynchy.sources.base import (
    MAX_OPEN,
    AnswerRoute,
    SeenAgent,
    SourceHandler,
    SourceQuestion,
    TypingRoute,
    end,
    let_go,
    open_of,
)
from pynchy.sources.phux_asks import (
    CLOSED,
    Ask,
    CannotType,
    TerminalAsks,
    reported_question,
    request_id_of,
    terminal_of,
    typed_line,
)
from pynchy.sources.phux_program import PhuxFailed, PhuxMissing, PhuxNotRunning, PhuxProgram
from pynchy.sources.running import keep_trying
from pynchy.typed_line import Typed, TypingResult
from pynchy.wire import PHUX

log = logging.getLogger(__name__)

Find = Callable[[Key], Awaitable[PendingQuestion | None]]

GONE = "phux's server has ended"
OTHER_GROUP = "[sources.phux] asks another group now"

_LOOK_SECONDS = 2.0
_LASTING_SECONDS = 10.0
_MAX_DOUBLINGS = 5
# So often something may fail before a person is told of it.
_FEW = 3
# A title can change a thousand times a second: a terminal's questions are few at once, and rare
# after that. What is asked meanwhile, and no more, nobody needs to see.
_CALM_SECONDS = 0.2
_BURST, _PER_SECOND = 10, 0.2
# An agent reports to phux as soon as it has written its question, which the host may read later.
_REPORT_LOOKS, _REPORT_LOOK_SECONDS = 30, 0.1
_MAX_NUMBERS = 10_000


class PhuxSource:
    """See Source: what programs in terminals of phux ask. It also types the answers."""

    name = PHUX

    def __init__(
        self,
        settings: PhuxSourceSettings,
        route: TypingRoute,
        index: OpenQuestions,
        find: Find,
        environ: Mapping[str, str],
    ) -> None:
        self.group = GroupName(settings.group)
        self.program = PhuxProgram(settings.command, settings.socket, environ)
        self.typing_route = route
        self.index = index
        self.find = find
        # How often the same words were asked, so that not every one of those is looked for.
        self.numbers: dict[str, int] = {}
        self.warnings: tuple[str, ...] = ()
        self._followed: dict[str, _Terminal] = {}
        self._failures = 0
        self._why = ""
        route.typist = self

    @property
    def route(self) -> AnswerRoute:
        """See Source."""
        return self.typing_route

    @property
    def problem(self) -> str | None:
        """See Source."""
        if self._why:
            return f"phux: {self._why}"
        troubled = [name for name, one in self._followed.items() if one.failures >= _FEW]
        return f"phux: phux watch {troubled[0]} ends again and again" if troubled else None

    def agents(self) -> tuple[SeenAgent, ...]:
        """See Source: phux does not say who works in a terminal."""
        return ()

    async def run(self, handler: SourceHandler) -> None:
        """See Source."""
        self._followed.clear()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._look(handler, tasks)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self, handler: SourceHandler, tasks: asyncio.TaskGroup) -> None:
        """Follow each terminal that is there, and end what others have asked."""
        try:
            terminals = await self.program.terminals()
        except PhuxNotRunning:
            self._note_success()
            self._leave(set(self._followed))
            await self._let_go(handler)
        except PhuxFailed as exc:
            self._note_failure(exc)
        else:
            self._note_success()
            self._leave(self._followed.keys() - set(terminals))
            await self._end_gone(handler, set(terminals))
            self._follow(terminals, handler, tasks)

    def _follow(
        self, terminals: list[str], handler: SourceHandler, tasks: asyncio.TaskGroup
    ) -> None:
        new = [one for one in terminals if one not in self._followed]
        room = MAX_OPEN - len(self._followed)
        is_full = len(new) > room
        told = f"phux has {len(terminals)} terminals: {MAX_OPEN} are followed"
        self.warnings = (told,) if is_full else ()
        for name in new[:room]:
            followed = self._followed[name] = _Terminal(self, handler, name)
            followed.task = tasks.create_task(followed.run(), name=f"phux {name}")

    def _leave(self, names: set[str]) -> None:
        for name in names:
            left = self._followed.pop(name)
            if left.task is not None:
                left.task.cancel()

    async def _let_go(self, handler: SourceHandler) -> None:
        if any(pending.ending is None for pending in open_of(self.index, PHUX)):
            log.info("phux.ended")
        work = partial(let_go, PHUX, self.typing_route, self.index, handler, GONE)
        await keep_trying(work, "phux.not_let_go")

    async def _end_gone(self, handler: SourceHandler, there: set[str]) -> None:
        for pending in open_of(self.index, PHUX):
            if pending.group != self.group:
                await self.end(handler, pending, OTHER_GROUP)
            elif terminal_of(pending.request_id) not in there:
                await self.end(handler, pending, CLOSED)

    async def end(self, handler: SourceHandler, pending: PendingQuestion, reason: str) -> None:
        """End a question that is asked no more."""
        work = partial(end, self.typing_route, handler, pending, reason)
        await keep_trying(work, "phux.not_cleared")

    def _note_success(self) -> None:
        self._failures, self._why = 0, ""

    def _note_failure(self, exc: PhuxFailed) -> None:
        self._failures += 1
        if self._failures == 1:
            log.warning("phux.failed", extra={"why": str(exc)})
        if self._failures >= _FEW or isinstance(exc, PhuxMissing):
            self._why = str(exc)

    async def type_answer(self, pending: PendingQuestion) -> TypingResult:
        """See Typist."""
        terminal = terminal_of(pending.request_id)
        followed = self._followed.get(terminal)
        try:
            line, is_offered = typed_line(pending)
        except CannotType as exc:
            return TypingResult(Typed.NO, str(exc))
        if followed is not None and (why := followed.why_over(pending.request_id)):
            return TypingResult(Typed.NO, why)
        if pending.ask_id:
            result = await self.program.answer(
                terminal, pending.ask_id, line, is_offered=is_offered
            )
            if result is not None:
                return result
        return await self._paste(pending.request_id, terminal, line)

    async def _paste(self, request_id: RequestId, terminal: str, line: str) -> TypingResult:
        """Type it as a person would, where phux cannot check what it is typed for."""
        if not self._stands(request_id, terminal):
            why = "nobody can tell whether the program still asks it"
            return TypingResult(Typed.NO, why)
        pasted = await self.program.paste(terminal, line)
        if pasted.typed is not Typed.YES:
            return pasted
        if not self._stands(request_id, terminal):
            why = "the program went on meanwhile, and Enter was not pressed"
            return TypingResult(Typed.MAYBE, why)
        entered = await self.program.enter(terminal)
        if entered.typed is Typed.YES:
            return entered
        return TypingResult(Typed.MAYBE, f"Enter was not pressed: {entered.why}")

    def _stands(self, request_id: RequestId, terminal: str) -> bool:
        followed = self._followed.get(terminal)
        return followed is not None and followed.stands(request_id)


class _Terminal:
    """One terminal that is followed, and what of it people are asked."""

    def __init__(self, source: PhuxSource, handler: SourceHandler, name: str) -> None:
        self._source = source
        self._handler = handler
        self._name = name
        self._asks = TerminalAsks()
        self._poked = asyncio.Event()
        # What people were asked last, by the serial of the ask.
        self._shown: tuple[int, RequestId | None] = (0, None)
        # What stands was heard from the phux that runs now: nothing was missed since.
        self._is_sure = False
        self._lines = 0
        self._rate = Rate(_PER_SECOND, _BURST)
        self.failures = 0
        self.task: asyncio.Task[None] | None = None

    def stands(self, request_id: RequestId) -> bool:
        """True if the last thing that was heard is this question, and nothing was missed."""
        ask = self._asks.ask
        is_shown = ask is not None and self._shown == (ask.serial, request_id)
        return is_shown and self._is_sure

    def why_over(self, request_id: RequestId) -> str:
        """Say why it is asked no more; empty if it may be."""
        if self._asks.is_silent or request_id != self._shown[1]:
            return ""
        ask = self._asks.ask
        return "" if ask is not None and ask.serial == self._shown[0] else self._asks.why_over

    async def run(self) -> None:
        """Ask people what the terminal asks, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._settle_all(), name=f"phux asks {self._name}")
            while True:
                began = time.monotonic()
                try:
                    await self._listen()
                except PhuxFailed as exc:
                    log.info("phux.not_watched", extra={"why": str(exc)})
                self._is_sure = False
                has_lasted = time.monotonic() - began > _LASTING_SECONDS
                self.failures = 0 if has_lasted else self.failures + 1
                await asyncio.sleep(_LOOK_SECONDS * 2 ** min(self.failures, _MAX_DOUBLINGS))

    async def _listen(self) -> None:
        """Note what phux tells until it ends."""
        async with (
            self._source.program.watching(self._name) as lines,
            asyncio.TaskGroup() as tasks,
        ):
            finding = tasks.create_task(self._find_title(), name=f"phux title {self._name}")
            is_told = False
            async for line in lines:
                if not self._hear(line) and not is_told:
                    is_told = True
                    log.warning("phux.unreadable", extra={"terminal": self._name})
            finding.cancel()

    def _hear(self, line: bytes | None) -> bool:
        """Note the line; False if it cannot be read."""
        try:
            told = wire.read_phux(wire.PhuxLine, line or b"")
        except MalformedRequest:
            return False
        if told.terminal == self._name:
            self._lines += 1
            self._is_sure = self._is_sure or told.event == "asked"
            self._asks.hear(told)
            self._poked.set()
        return True

    async def _find_title(self) -> None:
        """Note what stood before, unless something newer has been heard meanwhile."""
        before = self._lines
        with suppress(PhuxFailed):
            title = await self._source.program.title(self._name)
            if title is not None and self._lines == before:
                self._is_sure = True
                self._asks.find_title(title)
                self._poked.set()

    async def _settle_all(self) -> None:
        while True:
            await self._poked.wait()
            self._poked.clear()
            await self._settle()
            await asyncio.sleep(_CALM_SECONDS)

    async def _settle(self) -> None:
        """Let people be asked what the terminal asks now, and nothing else."""
        if self._asks.is_silent:
            return
        ask = self._asks.ask
        is_new = ask is not None and ask.serial != self._shown[0]
        if ask is not None and is_new:
            self._shown = (ask.serial, self._adopt(ask))
        for pending in self._open():
            if ask is None or pending.request_id != self._shown[1]:
                await self._source.end(self._handler, pending, self._asks.why_over)
        if ask is not None and is_new and self._shown[1] is None:
            await self._ask(ask)

    def _open(self) -> Iterator[PendingQuestion]:
        for pending in open_of(self._source.index, PHUX):
            if terminal_of(pending.request_id) == self._name:
                yield pending

    def _adopt(self, ask: Ask) -> RequestId | None:
        """Return the question of an earlier host that asks the same."""
        if self._shown[0]:
            return None
        with suppress(MalformedRequest):
            question = wire.phux_question(ask.asked)
            for pending in self._open():
                if _is_same(pending, question, wire.phux_ask_id(ask.asked)):
                    return pending.request_id
        return None

    async def _ask(self, ask: Ask) -> None:
        try:
            question = wire.phux_question(ask.asked)
            if await self._is_report(ask) or self._is_full():
                return
            await self._rate.take()
            request_id = await self._request_id(ask)
            if request_id is None or self._asks.ask is not ask:
                return
            self._shown = (ask.serial, request_id)
            asked = self._source_question(request_id, ask.asked, question)
            await keep_trying(partial(self._handler.asked, PHUX, asked), "phux.not_asked")
        except MalformedRequest as exc:
            log.info("phux.refused", extra={"terminal": self._name, "why": exc.reason})

    def _source_question(
        self, request_id: RequestId, asked: Asked, question: Question
    ) -> SourceQuestion:
        return SourceQuestion(
            self._source.group,
            request_id,
            (question,),
            title=self._asks.title,
            agent=f"terminal {self._name}",
            ask_id=wire.phux_ask_id(asked),
        )

    async def _is_report(self, ask: Ask) -> bool:
        """True if it is a question of ours, which its agent has told phux of."""
        key = reported_question(ask.asked.id)
        for _ in range(_REPORT_LOOKS if key else 0):
            if key is None or self._asks.ask is not ask:
                break
            if await self._source.find(key) is not None:
                return True
            await asyncio.sleep(_REPORT_LOOK_SECONDS)
        return False

    def _is_full(self) -> bool:
        is_open = [one for one in open_of(self._source.index, PHUX) if one.ending is None]
        if len(is_open) >= MAX_OPEN:
            log.warning("phux.too_many_questions", extra={"terminal": self._name})
        return len(is_open) >= MAX_OPEN

    async def _request_id(self, ask: Ask) -> RequestId | None:
        """Return an id that nobody has used; None for what people have ended already."""
        numbers, group = self._source.numbers, self._source.group
        first = request_id_of(self._name, ask.asked, 0)
        number, last = numbers.get(first, 0), None
        while known := await self._source.find(
            (group, request_id_of(self._name, ask.asked, number))
        ):
            number, last = number + 1, known
        if ask.is_found and last is not None and _was_ended_by_people(last):
            return None
        if len(numbers) >= _MAX_NUMBERS:
            numbers.clear()
        # The last one is looked at again: it may stand when it is found the next time.
        numbers[first] = number
        return request_id_of(self._name, ask.asked, number)


def _is_same(pending: PendingQuestion, question: Question, ask_id: str) -> bool:
    return pending.questions == (question,) and pending.ask_id == ask_id


def _was_ended_by_people(pending: PendingQuestion) -> bool:
    return pending.ending is not None and pending.ending.outcome is not OutcomeKind.CLEARED
