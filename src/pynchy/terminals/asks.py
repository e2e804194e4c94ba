"""A question that a title asks, from its card to the line that is typed.

    title asks ─► question of the group ─► answer ─► may it be typed? ─► receipt ─► typed ─► said so
        └─ asks no more, or something else ─► taken back

The receipt comes before the typing, and what became of it after: a crash in between leaves an
answer that may have been typed, and nobody types it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from agent_runner.asking import (
    Announcement,
    Asker,
    Option,
    Outcome,
    Question,
    Request,
    RequestId,
    Result,
    TerminalAsk,
)
from agent_runner.asking.arguments import MAX_LINE_CHARACTERS, MAX_QUESTION_CHARACTERS
from pynchy.aio import Rate
from pynchy.phux import Asked
from pynchy.terminals.output import TerminalNotice
from pynchy.typed_line import MAX_TYPED_BYTES, Typed, TypingResult, one_typed_line
from pynchy.unicode_safety import strip_hidden

PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
ENTER = b"\r"

_MAX_OPTIONS = 16
_MAX_ID = 128
# As long as a request may say: the title decides when it is over, or the host.
_WAIT_SECONDS = 366 * 86_400.0
_LOOK_SECONDS = 3_600.0
_RETRY_SECONDS = 5.0
_CUT = 500
# Of a terminal that asks without end, so many at once, and one every five seconds after that.
ASKS_AT_ONCE, ASKS_PER_SECOND = 10, 0.2

T = TypeVar("T")


class AskingTerminal(Protocol):
    """The terminal of a program that asks."""

    async def until_typable(self) -> str:
        """Return when the answer may be typed: empty, or why it never may be."""

    async def type_line(self, text: str) -> TypingResult:
        """Type the text and Enter, unless it may not be typed just now after all."""


def question_of(asked: Asked) -> Question:
    """Return what people are asked: as much of it as a card takes."""
    text = asked.question.strip()[:MAX_QUESTION_CHARACTERS]
    return Question(text, options=tuple(Option(one) for one in _labels(asked.suggestions)))


def _labels(suggestions: Iterable[str]) -> list[str]:
    """Return what can be offered: what differs to the eye, and can be typed as it is shown."""
    found: dict[str, str] = {}
    for one in suggestions:
        seen = " ".join(strip_hidden(one).casefold().split())
        if seen and len(one) <= MAX_LINE_CHARACTERS and one_typed_line(one) == one.strip():
            found.setdefault(seen, one.strip())
    return list(found.values())[:_MAX_OPTIONS]


def bytes_of(line: str, *, is_pasted: bool) -> bytes:
    """Return what is written to the terminal for a line, with Enter."""
    data = line.encode("utf-8", "replace")
    return (PASTE_BEGIN + data + PASTE_END if is_pasted else data) + ENTER


def answer_line(result: Result) -> str:
    """Return what was answered: what was chosen, and what was written."""
    parts = [part for answer in result.answers for part in (*answer.selected, answer.text or "")]
    return one_typed_line(", ".join(part for part in parts if part))


class TitleAsk:
    """One ask of one terminal, as long as it stands."""

    def __init__(self, asker: Asker, terminal: AskingTerminal, asked: Asked) -> None:
        self.asked = asked
        self._asker = asker
        self._terminal = terminal
        self._cleared: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def clear(self, reason: str) -> None:
        """The terminal asks it no more."""
        if not self._cleared.done():
            self._cleared.set_result(reason)

    async def run(self, agent: str, task: str, rate: Rate) -> None:
        """See the question to its end, as soon as the rate of its terminal has a place for it.

        Raise OSError if the mailbox cannot be written.
        """
        await self._unless_cleared(rate.take())
        if self._cleared.done():
            return
        request = Request(
            (question_of(self.asked),),
            agent=agent,
            task=task,
            wait_seconds=_WAIT_SECONDS,
            terminal=TerminalAsk(self.asked.id[:_MAX_ID]),
        )
        request_id = request.request_id
        await self._unless_cleared(self._send(request))
        found = await self._unless_cleared(self._outcome(request_id))
        if found is None:
            await self._asker.take_back(request_id, self._cleared.result())
        elif found.outcome is Outcome.ANSWERED:
            await self._answer(found)
        elif self._asker.claim(found):
            # There is nothing to type: the program asks on, and a person in front of it may answer.
            self._asker.pass_on([request_id])

    async def _send(self, request: Request) -> None:
        """Ask; again and again where the mailbox takes nothing, such as a full disk."""
        # No event tells when there is room on a disk.
        while (await self._asker.ask(request, wait=False)).outcome is Outcome.ERROR:  # noqa: ASYNC110
            await asyncio.sleep(_RETRY_SECONDS)

    async def _outcome(self, request_id: RequestId) -> Result:
        while (found := await self._asker.outcome(request_id, seconds=_LOOK_SECONDS)) is None:
            pass
        return found

    async def _answer(self, found: Result) -> None:
        line = answer_line(found)
        why = "there was nothing to type" if not line else ""
        if len(line.encode("utf-8", "replace")) > MAX_TYPED_BYTES:
            why = f"a line of more than {MAX_TYPED_BYTES} bytes may not be read whole"
        if not why:
            said = await self._unless_cleared(self._terminal.until_typable())
            why = self._cleared.result() if said is None else said
        if not why and not self._asker.claim(found):
            why = "it could not be taken for the terminal"
        if why:
            await self._asker.take_back(found.request_id, why)
        else:
            # From here on whatever happens: it is typed, or said not to be.
            attempt = await self._terminal.type_line(line)
            if attempt.typed is Typed.YES:
                self._asker.pass_on([found.request_id])
            else:
                maybe = attempt.typed is Typed.MAYBE
                await self._asker.take_back(found.request_id, attempt.why, maybe_typed=maybe)

    async def _unless_cleared(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what the work returns; None if the terminal asks no more before that."""
        doing = asyncio.ensure_future(work)
        either: list[asyncio.Future[Any]] = [doing, self._cleared]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            doing.cancel()


async def tell(asker: Asker, notice: TerminalNotice, agent: str, task: str) -> None:
    """Tell people what a program says. Raise OSError if the mailbox cannot be written."""
    title = one_typed_line(notice.title)[:MAX_LINE_CHARACTERS] or agent
    await asker.announce(Announcement(title, notice.text[:_CUT], agent=agent, task=task))
