"""What a source of questions is, and the way back to whoever asked.

A question names its source; an empty name means the mailbox. Only the way in and the way back
differ between sources: what lies between is one path for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pynchy.model import GroupName, Kind, PendingQuestion, Question, RequestId, SessionId, Urgency
from pynchy.pending.base import Key

MAILBOX = ""
NO_SESSION = SessionId("")


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Why an answer would not arrive as things are; `is_final` if it never will."""

    why: str
    is_final: bool


class AnswerRoute(Protocol):
    """The way back to whoever asked."""

    async def respond(self, pending: PendingQuestion) -> None:
        """Put the outcome where the asker finds it. To do it again is harmless."""

    async def see_through(self, key: Key) -> None:
        """Return when the asker has the outcome, or does not need it."""

    async def tell_unseen(self, pending: PendingQuestion, why: str) -> None:
        """Let the asker know that nobody can have seen the question yet; empty: somebody can."""

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """Say why a delivery that failed cannot be tried again; None if it can be."""

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """Say why an answer would not arrive; None if it may. It may look at the disk."""

    def problem(self, group: GroupName) -> str | None:
        """Say what is wrong with the way back to the group, in words for a person."""


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question that has appeared at a source. `request_id` is the same each time."""

    group: GroupName
    request_id: RequestId
    questions: tuple[Question, ...]
    kind: Kind = Kind.QUESTION
    title: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
    session_id: SessionId = NO_SESSION


class SourceHandler(Protocol):
    """What a source calls."""

    async def asked(self, source: str, question: SourceQuestion) -> None:
        """Record the question, durably. One that is known already is left alone.

        Raise MalformedRequest for what cannot be asked: a default that could never be applied,
        or more than the group may have open.
        """

    async def cleared(
        self, source: str, group: GroupName, request_id: RequestId, reason: str
    ) -> None:
        """End a question that its source took back: it is no longer asked, and not answered.

        A question of another source is left alone.
        """


class Source(Protocol):
    """Foreign agents that may wait for a person."""

    @property
    def name(self) -> str:
        """Return what the source is called in settings and records."""

    @property
    def route(self) -> AnswerRoute:
        """Return the way back to its agents."""

    async def run(self, handler: SourceHandler) -> None:
        """Tell the handler of questions that appear and are cleared, until cancelled."""
