"""What a store of pending questions promises, whatever it is made of.

Every method returns only when what it did would survive a crash. `end` is the commit point:
of all endings that are tried for a question, the first one wins, also across processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pynchy.model import Ending, GroupName, OutcomeKind, PendingQuestion, RequestId, ShortId


@dataclass(frozen=True, slots=True)
class Stored:
    """A question as it was found, with the ending that was committed for it, if any."""

    pending: PendingQuestion
    ending: Ending | None


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which closed questions to return, newest first; `fits` is asked of every one."""

    limit: int = 50
    group: GroupName | None = None
    outcome: OutcomeKind | None = None
    fits: Callable[[PendingQuestion], bool] = lambda _: True


class PendingStore(Protocol):
    """Keeps every question until it is closed."""

    async def load(self) -> list[Stored]:
        """Return every question that is not closed, having finished what a crash interrupted."""

    async def record(self, pending: PendingQuestion) -> None:
        """Keep a new question. Raise DuplicateRequest if its id is known in its group."""

    async def update(self, pending: PendingQuestion) -> None:
        """Keep the question as it is now."""

    async def end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        """Commit the ending unless there is one. Return the one that won."""

    async def close(self, pending: PendingQuestion) -> None:
        """Move the question into history."""


class History(Protocol):
    """What is over."""

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
