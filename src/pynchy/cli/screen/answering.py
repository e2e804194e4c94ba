"""What a person has marked, written and sent, question by question; no widget is known here.

Nothing is called answered before the host says that it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from typing import Any

from rich.text import Text

from pynchy.cli.screen.feed import understand
from pynchy.cli.screen.keys import Clock
from pynchy.cli.screen.question_list import Key, ListedQuestion, QuestionList, key_of
from pynchy.cli.screen.saved_state import DraftPart, SavedState
from pynchy.cli.text import clean, flat, one_line
from pynchy.cli.views import HostQuestion
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError, NoHost, PynchyError, QuestionOver
from pynchy.model import Option, Question


class Phase(StrEnum):
    """How far it has come."""

    UNDO = "undo"
    SENDING = "sending"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it: the question as it is now, where the host told, and words for the person."""

    view: HostQuestion | None
    text: str = ""
    is_bad: bool = False


class SendQueue:
    """What waits to be sent, and what is being sent."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._due: dict[Key, float] = {}
        self._sending: set[Key] = set()

    def phase(self, key: Key | None) -> Phase | None:
        """Return how far the question's answer has come."""
        if key in self._sending:
            return Phase.SENDING
        return Phase.UNDO if key in self._due else None

    def left_seconds(self, key: Key) -> float:
        """Return for how long it can still be taken back."""
        return max(self._due.get(key, 0.0) - self._monotonic(), 0.0)

    def wait(self, key: Key, seconds: float) -> None:
        """Let it be taken back for so long."""
        self._due[key] = self._monotonic() + seconds

    def take_back(self, key: Key) -> bool:
        """Return True if it was not sent yet; now it will not be."""
        return self._due.pop(key, None) is not None

    def due(self) -> list[Key]:
        """Return what can no longer be taken back."""
        now = self._monotonic()
        return [key for key, at in self._due.items() if at <= now]

    def waiting(self) -> list[Key]:
        """Return what can still be taken back."""
        return list(self._due)

    def on_way(self) -> frozenset[Key]:
        """Return what is being sent."""
        return frozenset(self._sending)

    def begin(self, key: Key) -> bool:
        """Return True if it may be sent now: nothing of it is on its way."""
        self._due.pop(key, None)
        if key in self._sending:
            return False
        self._sending.add(key)
        return True

    def end(self, key: Key) -> None:
        """It has arrived, or failed."""
        self._sending.discard(key)


def send(data: DataFolder, key: Key, verb: str, body: Json) -> Result:
    """Say it to the host and return what came of it; takes as long as the host takes."""
    try:
        client = HostClient.of(data)
        return Result(understand(client.reply(*key, verb, body)))
    except QuestionOver as exc:
        return Result(_look(data, key), clean(str(exc)), is_bad=True)
    except NoHost as exc:
        told = f"Not sent: {clean(str(exc))}. What you said is kept; try again."
        return Result(None, told, is_bad=True)
    except HostError as exc:
        told = f"No word that it counts: {clean(str(exc))}. What you said is kept; try again."
        return Result(None, told, is_bad=True)
    except PynchyError as exc:
        return Result(_look(data, key), f"Not taken: {clean(str(exc))}", is_bad=True)


def is_ours(view: HostQuestion, parts: Sequence[DraftPart], by: str) -> bool:
    """True if it ended with what was said here, though the host's word for it was lost."""
    ending = view.ending
    if ending is None or ending.outcome != "answered" or ending.by != by:
        return False
    said = [(frozenset(a.selected), (a.text or "").strip()) for a in ending.answers]
    return said == [
        (frozenset(question.labels[n - 1] for n in part.options), part.text.strip())
        for question, part in zip(view.questions, parts, strict=False)
    ]


def _look(data: DataFolder, key: Key) -> HostQuestion | None:
    try:
        return understand(HostClient.of(data).question_of(*key))
    except PynchyError:
        return None


@dataclass(frozen=True, slots=True)
class Errands:
    """What answering needs of the screen: work to be done meanwhile, and a look at what changed."""

    spawn: Callable[[Coroutine[Any, Any, None]], object]
    changed: Callable[[], Awaitable[None]]


class PersonReplies:
    """The person's side of every question."""

    def __init__(
        self, data: DataFolder, by: str, clock: Clock, question_list: QuestionList
    ) -> None:
        self._data = data
        self._by = by
        self._clock = clock
        self._roster = question_list
        self._outbox = SendQueue(clock.monotonic)
        self._said: dict[Key, Text] = {}
        self._late: dict[Key, Text] = {}
        self._sent: dict[Key, tuple[DraftPart, ...]] = {}
        self._counted: set[Key] = set()
        self.kept = SavedState(data.folder, clock.now)
        self.undo_seconds: dict[str, float] = {"high": 3.0}

    def parts(self, entry: ListedQuestion) -> tuple[DraftPart, ...]:
        """Return what is marked and written for each question."""
        return self.kept.draft(entry.key, len(entry.view.questions))

    def write(self, entry: ListedQuestion, texts: Mapping[int, str]) -> None:
        """Keep what is in the fields, unless it has been sent and counts."""
        if entry.key not in self._counted:
            parts = self.parts(entry)
            written = [replace(p, text=texts.get(at, p.text)) for at, p in enumerate(parts)]
            self.kept.keep(entry.key, written)

    def is_busy(self, entry: ListedQuestion) -> bool:
        """True if nothing can be changed: it is over, or being sent."""
        return entry.view.ending is not None or self._outbox.phase(entry.key) is not None

    def mark(self, entry: ListedQuestion, at: int, number: int) -> bool:
        """Mark an option. Return False if there is none of that number, or it is too late."""
        if self.is_busy(entry) or at >= len(entry.view.questions):
            return False
        question = entry.view.questions[at]
        if not 1 <= number <= len(question.options):
            self.say(entry.key, _no_option(number, len(question.options)), bad=True)
            return False
        parts = list(self.parts(entry))
        parts[at] = _marked(parts[at], number, multi=question.multi_select)
        self.kept.keep(entry.key, parts)
        option = question.options[number - 1]
        sends = f"↵ sends “{flat(option.label)}”, u takes it back"
        said = _agrees(question, option) if option.confirm else sends
        self.say(entry.key, said if is_plain(entry) else "")
        return True

    def must_agree(self, entry: ListedQuestion, at: int, number: int) -> bool:
        """True if the option does more than answer, and the person has not been told yet what."""
        options = entry.view.questions[at].options[number - 1 : number]
        marked = self.parts(entry)[at].options
        return any(option.confirm for option in options) and number not in marked

    def missing(self, entry: ListedQuestion) -> int | None:
        """Return the first question that has no answer, here or from somebody before, if any."""
        view = entry.view
        pairs = zip(view.questions, self.parts(entry), strict=True)
        lacking = (
            at for at, (question, part) in enumerate(pairs) if _lacks(view, at, question, part)
        )
        return next(lacking, None)

    def take_back(self, entry: ListedQuestion) -> None:
        """Take marks back, and with them what was about to be sent."""
        waited = self._outbox.take_back(entry.key)
        if waited or not self.is_busy(entry):
            self.kept.keep(entry.key, [replace(part, options=()) for part in self.parts(entry)])
            self.say(entry.key, "Taken back. Nothing was sent." if waited else "")

    def submit(self, entry: ListedQuestion, errands: Errands, *, at_once: bool) -> None:
        """Send it, at once or after the time in which it can be taken back."""
        if self._outbox.phase(entry.key) is Phase.UNDO:
            self._send(entry.key, errands)
            return
        if self.is_busy(entry):
            return
        missing = self.missing(entry)
        if missing is not None:
            self.say(entry.key, _missing(missing, entry.view.questions), bad=True)
            return
        pace = "high" if entry.view.needs_word else entry.view.urgency
        seconds = 0.0 if at_once else self.undo_seconds.get(pace, 0.0)
        if seconds > 0:
            self._outbox.wait(entry.key, seconds)
        else:
            self._send(entry.key, errands)

    def send_due(self, errands: Errands) -> None:
        """Send what can no longer be taken back."""
        for key in self._outbox.due():
            self._send(key, errands)

    def send_all(self, errands: Errands) -> frozenset[Key]:
        """Send also what could still be taken back. Return what is on its way."""
        for key in self._outbox.waiting():
            self._send(key, errands)
        return self._outbox.on_way()

    def on_way(self) -> frozenset[Key]:
        """Return what is being sent."""
        return self._outbox.on_way()

    def counts(self, key: Key) -> bool:
        """True if the host has taken what was said here."""
        return key in self._counted

    def decline(self, key: Key, reason: str, errands: Errands) -> None:
        """End it without an answer."""
        self._post(key, "decline", {"reason": reason} if reason else {}, errands)

    def settle(self, view: HostQuestion) -> None:
        """Forget what was said here if that is how it ended."""
        if is_ours(view, self._sent.get(key_of(view), ()), self._by):
            self._forget(key_of(view))

    def status(self, entry: ListedQuestion) -> Text:
        """Return the line below the question."""
        key = entry.key
        if entry.view.ending is not None:
            return self._late.get(key, Text())
        match self._outbox.phase(key):
            case Phase.SENDING:
                return Text("Sending…", "yellow")
            case Phase.UNDO:
                left = ceil(self._outbox.left_seconds(key))
                return Text(f"Sending in {left} s… u takes it back, ↵ sends it now", "bold yellow")
            case None:
                return self._said.get(key, Text())

    def say(self, key: Key, text: str, *, bad: bool = False) -> None:
        """Tell the person something about an open question."""
        self._said[key] = Text(text, "bold red" if bad else "bold")

    def say_late(self, key: Key, text: str, *, bad: bool = False) -> None:
        """Tell the person something about a question that is over."""
        self._late[key] = Text(text, "bold red" if bad else "bold")

    def _send(self, key: Key, errands: Errands) -> None:
        entry = self._roster.get(key)
        self._outbox.take_back(key)
        if entry is not None and entry.view.ending is None:
            self._sent[key] = self.parts(entry)
            answers = [part.body() for part in self._sent[key]]
            self._post(key, "answer", {"answers": answers}, errands)

    def _post(self, key: Key, verb: str, body: Json, errands: Errands) -> None:
        if self._outbox.begin(key):
            errands.spawn(self._deliver(key, verb, {"by": self._by, **body}, errands))

    async def _deliver(self, key: Key, verb: str, body: Json, errands: Errands) -> None:
        result = await asyncio.to_thread(send, self._data, key, verb, body)
        self._outbox.end(key)
        view = result.view
        if view is not None:
            self._roster.put(view, self._clock.monotonic())
            self.settle(view)
        if not result.is_bad:
            self._forget(key)
        elif view is None or view.ending is None:
            self.say(key, result.text, bad=True)
        elif key not in self._counted:
            was = one_line(view.ending.summary)
            self.say_late(key, f"Not yours: somebody was first. It was {was}.", bad=True)
        await errands.changed()

    def _forget(self, key: Key) -> None:
        self._counted.add(key)
        self.kept.forget(key)
        self._said.pop(key, None)
        self._sent.pop(key, None)


def is_plain(entry: ListedQuestion) -> bool:
    """True if one option is enough: a single question with a single choice."""
    questions = entry.view.questions
    return len(questions) == 1 and bool(questions[0].options) and not questions[0].multi_select


def narrower_forms(question: Question, option: Option) -> list[int]:
    """Return the numbers of the options that are narrower forms of this one."""
    named = enumerate(question.options, 1)
    return [number for number, other in named if other.narrows and other.narrows == option.value]


def all_forms(question: Question, option: Option) -> list[int]:
    """Return the numbers of the widest form of the option, and of all that are narrower."""
    wider = (o for o in question.options if option.narrows and option.narrows == o.value)
    wide = next(wider, option)
    return [question.options.index(wide) + 1, *narrower_forms(question, wide)]


def _agrees(question: Question, option: Option) -> str:
    """Say what the person agrees to, and how they choose the narrower or the wider form of it."""
    forms = all_forms(question, option)
    others = [n for n in forms if question.options[n - 1] != option]
    ways = [f"{n} “{flat(question.options[n - 1].label)}”, " for n in others]
    return f"{flat(option.confirm)}.\n↵ agrees and sends it, {''.join(ways)}u takes it back"


def _marked(part: DraftPart, number: int, *, multi: bool) -> DraftPart:
    if not multi:
        return replace(part, options=(number,))
    others = tuple(n for n in part.options if n != number)
    return replace(part, options=others if len(others) < len(part.options) else (*others, number))


def _lacks(view: HostQuestion, at: int, question: Question, part: DraftPart) -> bool:
    """True if the part answers nothing, and nobody has answered that question before."""
    if part.is_empty:
        return at not in view.answered_numbers
    return not part.options and not question.takes_words_alone


def _missing(at: int, questions: Sequence[Question]) -> str:
    if len(questions) > 1:
        return f"Question {at + 1} has no answer yet."
    if not questions[at].takes_words_alone:
        return "Choose an option first."
    if not questions[at].options:
        return "Write an answer first: you are in its field now."
    return "Choose an option or write something first."


def _no_option(number: int, count: int) -> str:
    if count:
        return f"There is no option {number}: choose 1 to {count}."
    return "There are no options here: w writes an answer."
