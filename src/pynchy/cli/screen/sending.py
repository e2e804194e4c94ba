"""What is on its way to the host. Nothing is called answered before the host says that it is.

A choice by a click can be taken back for a while; what the person said is kept until it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pynchy.cli.screen.feed import understand
from pynchy.cli.screen.question_list import Key
from pynchy.cli.screen.saved_state import DraftPart
from pynchy.cli.text import clean
from pynchy.cli.views import HostQuestion
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError, NoHost, PynchyError
from pynchy.exits import QuestionOver


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
