"""What outlives the screen: what was begun to write, what is hidden, and whether single keys work.

Marks are kept for as long as the screen is open and not longer: nothing is marked at the start. A
file in the data folder, for its owner alone. It is a convenience: where it cannot be read or
written, everything works, and is forgotten at the end. Several screens share it: each writes down
only what it has changed itself.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pynchy.cli.screen.question_list import Key
from pynchy.safe_folder import Folder, UnsafeFile

FILE_NAME = "inbox-terminal.json"
_LOCK_NAME = "inbox-terminal.lock"
_CAP = 4 * 1024 * 1024
_MAX_DRAFTS = 200
# What is hidden comes back this long before it ends by itself, so that there is time to answer.
BEFORE_END = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class DraftPart:
    """What is marked (numbers from 1) and written for one question."""

    options: tuple[int, ...] = ()
    text: str = ""

    @property
    def is_empty(self) -> bool:
        """True if this is no answer yet."""
        return not self.options and not self.text.strip()

    def body(self) -> dict[str, Any]:
        """Return it as the host takes it."""
        return {"options": list(self.options), "text": self.text.strip() or None}


Drafts = dict[Key, tuple[DraftPart, ...]]
Snoozes = dict[Key, datetime]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is in the file."""

    drafts: Drafts = field(default_factory=dict)
    snoozes: Snoozes = field(default_factory=dict)
    single_keys: bool = True


class SavedState:
    """Drafts and snoozes by question, and what the person has set."""

    def __init__(self, folder: Folder, now: Callable[[], datetime]) -> None:
        self._folder = folder
        self._now = now
        stored = _read(folder)
        self._drafts, self._snoozes = stored.drafts, stored.snoozes
        self._single_keys = stored.single_keys
        self._switched = False
        self._changed_drafts: set[Key] = set()
        self._changed_snoozes: set[Key] = set()

    @property
    def single_keys(self) -> bool:
        """True if keys work on their own."""
        return self._single_keys

    def switch_single_keys(self) -> None:
        """Turn them on or off."""
        self._single_keys = not self._single_keys
        self._switched = True

    def draft(self, key: Key, count: int) -> tuple[DraftPart, ...]:
        """Return what was begun for each of so many questions."""
        parts = self._drafts.get(key, ())
        return (*parts[:count], *(DraftPart() for _ in range(count - len(parts))))

    def written(self, key: Key) -> str:
        """Return the words of the draft, to be copied."""
        return "\n\n".join(p.text.strip() for p in self._drafts.get(key, ()) if p.text.strip())

    def keep(self, key: Key, parts: Sequence[DraftPart]) -> None:
        """Keep a draft; an empty one is forgotten."""
        before = self._drafts.pop(key, ())
        if not all(part.is_empty for part in parts):
            self._drafts[key] = tuple(parts)
        if _written(before) != _written(parts):
            self._changed_drafts.add(key)

    def forget(self, key: Key) -> None:
        """Forget the draft and the snooze of a question."""
        self.rouse(key)
        if self._drafts.pop(key, None):
            self._changed_drafts.add(key)

    def snooze(self, key: Key, until: datetime) -> None:
        """Hide the question until then."""
        self._snoozes[key] = until
        self._changed_snoozes.add(key)

    def rouse(self, key: Key) -> None:
        """Hide it no longer."""
        if self._snoozes.pop(key, None):
            self._changed_snoozes.add(key)

    def asleep(self) -> dict[Key, datetime]:
        """Return what is hidden, and until when."""
        return dict(self._snoozes)

    def awoken(self) -> list[Key]:
        """Return what was hidden long enough, once."""
        now = self._now()
        due = [key for key, until in self._snoozes.items() if until <= now]
        for key in due:
            self.rouse(key)
        return due

    def tidy(self, open_: Iterable[Key]) -> None:
        """Forget the snoozes of what is not open."""
        for key in self._snoozes.keys() - set(open_):
            self.rouse(key)

    def save(self) -> None:
        """Write down what has changed, beside what other screens have."""
        if not (self._changed_drafts or self._changed_snoozes or self._switched):
            return
        with suppress(OSError, UnsafeFile), _locked(self._folder):
            stored = _read(self._folder)
            drafts = _merged(stored.drafts, self._drafts, self._changed_drafts)
            snoozes = _merged(stored.snoozes, self._snoozes, self._changed_snoozes)
            newest = list(drafts.items())[-_MAX_DRAFTS:]
            body = {
                "drafts": [[*key, [part.text for part in parts]] for key, parts in newest],
                "snoozes": [[*key, until.isoformat()] for key, until in snoozes.items()],
                "single_keys": self._single_keys if self._switched else stored.single_keys,
            }
            self._folder.replace(FILE_NAME, json.dumps(body).encode())
        self._changed_drafts.clear()
        self._changed_snoozes.clear()
        self._switched = False


def _read(folder: Folder) -> _Stored:
    # Whatever is in there was ours; whatever is not as expected is not.
    with suppress(OSError, UnsafeFile, ValueError, KeyError, TypeError, AttributeError):
        return _understood(json.loads(folder.read(FILE_NAME, _CAP)))
    return _Stored()


def _understood(body: dict[str, Any]) -> _Stored:
    drafts: Drafts = {}
    snoozes: Snoozes = {}
    for group, request_id, parts in body["drafts"]:
        drafts[str(group), str(request_id)] = tuple(DraftPart(text=str(t)) for t in parts)
    for group, request_id, until in body["snoozes"]:
        at = datetime.fromisoformat(until)
        snoozes[str(group), str(request_id)] = at if at.tzinfo else at.replace(tzinfo=UTC)
    return _Stored(drafts, snoozes, body.get("single_keys") is not False)


def _merged(there: Mapping[Key, T], ours: Mapping[Key, T], changed: set[Key]) -> dict[Key, T]:
    """Return what is there, but for what changed here; that comes last."""
    others = {key: value for key, value in there.items() if key not in changed}
    return others | {key: value for key, value in ours.items() if key in changed}


def _written(parts: Sequence[DraftPart]) -> list[tuple[int, str]]:
    return [(at, part.text) for at, part in enumerate(parts) if part.text.strip()]


@contextmanager
def _locked(folder: Folder) -> Iterator[None]:
    """Let no other screen write meanwhile."""
    folder.create(_LOCK_NAME, b"")
    fd = folder.open_file(_LOCK_NAME)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
