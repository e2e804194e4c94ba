"""What a store of pending questions promises, whatever it is made of.

Every method returns only when what it did would survive a crash. `end` is the commit point: of all
endings that are tried for a question, the first one wins, also across processes and hosts.

Each record has a revision, which grows with every change. Whoever writes says which revision that
was based on; if somebody else was faster, nothing is written and Conflict is raised. `watch` tells
of every change where others may write too, one's own included; a store that nobody shares has
nothing to tell.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pynchy.model import (
    Ending,
    GroupName,
    OutcomeKind,
    PendingQuestion,
    RequestId,
    SessionId,
    ShortId,
)

Key = tuple[GroupName, RequestId]
MakeShortId = Callable[[], ShortId]

SHORT_ID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
SHORT_ID_LENGTH = 4
_SHORT_ID = re.compile(rf"#?([{SHORT_ID_ALPHABET}]{{{SHORT_ID_LENGTH}}})", re.IGNORECASE | re.ASCII)


class Conflict(Exception):
    """The record has changed since the revision that a write was based on."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A question as it was found, with the ending that was committed for it, if any."""

    pending: PendingQuestion
    ending: Ending | None
    revision: int = 0


@dataclass(frozen=True, slots=True)
class StoreChange:
    """What became of one record; without `stored`, it was closed."""

    key: Key
    stored: Stored | None


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which closed questions to return, newest first. Every one of `words` must be in them."""

    limit: int = 50
    group: GroupName | None = None
    outcome: OutcomeKind | None = None
    words: tuple[str, ...] = ()

    def fits(self, pending: PendingQuestion) -> bool:
        """True if the closed question is one of those; its place in the list does not count."""
        outcome = pending.ending.outcome if pending.ending else None
        wanted = self.group in {None, pending.group} and self.outcome in {None, outcome}
        return wanted and has_words(pending, self.words)


class PendingStore(Protocol):
    """Keeps every question until it is closed."""

    async def load(self) -> list[Stored]:
        """Return every question that is not closed, having finished what a crash interrupted."""

    async def get(self, key: Key) -> Stored | None:
        """Return the question as it is now, None if it is closed or unknown."""

    async def record(self, pending: PendingQuestion) -> int:
        """Keep a new question; return its revision. Raise DuplicateRequest if its id is known."""

    async def update(self, pending: PendingQuestion, revision: int) -> int:
        """Keep the question as it is now; return its revision. Raise Conflict."""

    async def end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        """Commit the ending unless there is one. Return the one that won."""

    async def close(self, pending: PendingQuestion, revision: int) -> None:
        """Move the question into history. Raise Conflict."""

    def watch(self) -> AsyncIterator[StoreChange]:
        """Return the changes from this call on. It ends if nobody else can make any."""

    def problems(self) -> list[str]:
        """Say what is wrong with what is kept, in words for a person."""


class History(Protocol):
    """What is closed."""

    async def find(self, group: GroupName, request_id: RequestId) -> PendingQuestion | None:
        """Return the closed question of that group, if it is still kept."""

    async def with_short_id(self, short_id: ShortId) -> PendingQuestion | None:
        """Return the closed question that had the short id last."""

    async def with_request_id(self, request_id: RequestId) -> list[PendingQuestion]:
        """Return the closed questions that have the request id, one of each group at most."""

    async def recent(self, query: HistoryQuery) -> list[PendingQuestion]:
        """Return closed questions, newest first."""

    async def prune(self, before: datetime, max_bytes: int) -> int:
        """Forget what was closed before that moment, and a group's oldest past the size."""


class QuestionStore(PendingStore, History, Protocol):
    """Both: what is open, and what is closed."""


class QuestionObserver:
    """Whoever wants to know what happens to questions overrides what it wants to know.

    An observer is called at once and in order. It must not block, and what it raises is logged.
    """

    def question_recorded(self, pending: PendingQuestion) -> None:
        """A question was asked."""

    def question_changed(self, pending: PendingQuestion) -> None:
        """A question was asked, or has changed in any way."""

    def question_ended(self, pending: PendingQuestion) -> None:
        """An ending was committed."""

    def question_closed(self, pending: PendingQuestion) -> None:
        """A question is no longer open, so that its id may come again: forget what was its own."""


class OpenQuestions(Protocol):
    """The questions that are not closed, found without a search."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[PendingQuestion]: ...

    def put(self, pending: PendingQuestion) -> None:
        """Keep the question as it is now."""

    def remove(self, key: Key) -> None:
        """Forget the question if it is there."""

    def get(self, key: Key) -> PendingQuestion | None:
        """Return the question of that group, if it is open."""

    def with_short_id(self, short_id: ShortId) -> PendingQuestion | None:
        """Return the question that has the short id."""

    def with_request_id(self, request_id: RequestId) -> list[PendingQuestion]:
        """Return the questions that have the request id, one of each group at most."""

    def in_group(self, group: GroupName) -> list[PendingQuestion]:
        """Return the group's questions, oldest first."""

    def in_session(self, group: GroupName, session_id: SessionId) -> list[PendingQuestion]:
        """Return the session's questions, oldest first."""

    def count_in_group(self, group: GroupName) -> int:
        """Return how many questions the group has."""

    def bytes_in_group(self, group: GroupName) -> int:
        """Return how large the requests are that these questions came in."""


def read_short_id(text: str) -> ShortId | None:
    """Return the short id that a person typed, None if the text has another shape.

    What has the shape of a short id is never taken for a request id: agents choose those.
    """
    found = _SHORT_ID.fullmatch(text)
    return ShortId(found[1].lower()) if found else None


def has_words(pending: PendingQuestion, words: tuple[str, ...]) -> bool:
    """True if every word is in what was asked, by whom, or answered, however it is capitalised."""
    if not words:
        return True
    told = [pending.short_id, pending.request_id, pending.group]
    told += [pending.agent, pending.task, pending.title]
    told += [text for question in pending.questions for text in (question.header, question.text)]
    told += [label for question in pending.questions for label in question.labels]
    if pending.ending is not None:
        told += [answer.describe() for answer in pending.ending.answers]
        told.append(pending.ending.by or "")
    whole = "\n".join(told).casefold()
    return all(word.casefold() in whole for word in words)
