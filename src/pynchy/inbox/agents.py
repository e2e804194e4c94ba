"""Who is waiting: every agent that lives or has something open, and how it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pynchy.inbox.views import brief, one_line, order_of
from pynchy.model import GroupName, Kind, PendingQuestion, SessionId, State

OURS = "pynchy"


class AgentStatus(StrEnum):
    """How an agent stands, the most pressing first."""

    UNDELIVERED = "undelivered"
    WAITING = "waiting"
    PARKED = "parked"
    RESUMING = "resuming"
    WORKING = "working"
    IDLE = "idle"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class LiveRunner:
    """A process that shows signs of life in a group's mailbox."""

    group: GroupName
    lease: str
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Item:
    """One question of an agent."""

    key: str
    short_id: str
    brief: str
    asked_at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class AskView:
    """What an agent waits for a person with. One without a `key` is answered at its own screen."""

    kind: Kind
    title: str
    since: datetime | None
    key: str = ""
    short_id: str = ""

    @property
    def is_permission(self) -> bool:
        """True if it asks for a yes or no before it does something."""
        return self.kind is not Kind.QUESTION


@dataclass(frozen=True, slots=True)
class ToolView:
    """A call that runs. `may_need_permission` is a guess, by how long it runs."""

    tool: str
    argument: str
    started: datetime | None
    may_need_permission: bool


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent: where it works, how it stands, and because of which questions.

    `lives` is None where nothing tells: it asked without a lease. `items` are the questions that
    its `status` is about, `asks` all that wait for a person. `state` is what it does, in the words
    of sources, and `guessed` if that is concluded from something else; `title` is what it waits
    for, or else works on. `source` is ours, or says who sees an agent that pynchy did not start.
    """

    group: str
    name: str
    task: str
    session_id: str
    lives: bool | None
    status: AgentStatus
    items: tuple[Item, ...]
    asks: tuple[AskView, ...] = ()
    source: str = OURS
    state: str = ""
    guessed: bool = False
    since: datetime | None = None
    title: str = ""
    tools: tuple[ToolView, ...] = ()
    todos: int = 0


def by_source(views: Iterable[AgentView]) -> list[tuple[str, list[AgentView]]]:
    """Return the agents by who sees them, ours first, else in their order."""
    found: dict[str, list[AgentView]] = {}
    for view in views:
        found.setdefault(view.source, []).append(view)
    return sorted(found.items(), key=lambda pair: (pair[0] != OURS, pair[0]))


def agent_views(
    live: Iterable[LiveRunner],
    pending: Iterable[PendingQuestion],
    names: Mapping[tuple[GroupName, str], str],
) -> list[AgentView]:
    """Return the agents, the most pressing first.

    `names` has what a runner called itself earlier, by its lease, for those that ask nothing now.
    """
    asked: dict[tuple[str, str, str], list[PendingQuestion]] = {}
    for question in pending:
        if question.delivered is None:
            asked.setdefault(_who(question), []).append(question)
    runners = {(runner.group, runner.lease): runner for runner in live}
    views = [_asker(questions, runners) for questions in asked.values()]
    busy = {(q.group, q.lease) for questions in asked.values() for q in questions}
    views += [
        _worker(runner, names.get(key, "")) for key, runner in runners.items() if key not in busy
    ]
    ranks = list(AgentStatus)
    return sorted(views, key=lambda v: (ranks.index(v.status), v.group, v.name, v.session_id))


def _who(question: PendingQuestion) -> tuple[str, str, str]:
    return question.group, question.session_id or question.lease, question.agent


def _asker(
    questions: Sequence[PendingQuestion], runners: Mapping[tuple[GroupName, str], LiveRunner]
) -> AgentView:
    ordered = sorted(questions, key=order_of)
    newest = max(questions, key=lambda q: q.timestamp)
    lives = any((q.group, q.lease) in runners for q in questions)
    knows = lives or any(q.lease for q in questions)
    status = _status(ordered, lives=lives)
    shown = [q for q in ordered if _status([q], lives=lives) is status]
    told = {q.key: question_views(q) for q in ordered}
    return AgentView(
        group=newest.group,
        name=one_line(newest.agent),
        task=one_line(newest.task),
        session_id=one_line(newest.session_id),
        lives=lives if knows else None,
        status=status,
        items=tuple(told[q.key][0] for q in shown if status is not AgentStatus.WORKING),
        asks=tuple(told[q.key][1] for q in ordered if q.state.waits_for_person),
        source=newest.source or OURS,
    )


def _status(questions: Sequence[PendingQuestion], *, lives: bool) -> AgentStatus:
    states = {question.state for question in questions}
    if State.UNDELIVERED in states:
        return AgentStatus.UNDELIVERED
    if any(state.waits_for_person for state in states):
        is_parked = not lives and any(q.parked for q in questions if q.state.waits_for_person)
        return AgentStatus.PARKED if is_parked else AgentStatus.WAITING
    if lives and State.RESUMING not in states:
        return AgentStatus.WORKING
    return AgentStatus.RESUMING


def _worker(runner: LiveRunner, name: str) -> AgentView:
    return AgentView(
        group=runner.group,
        name=one_line(name),
        task="",
        session_id=one_line(runner.session_id),
        lives=True,
        status=AgentStatus.WORKING,
        items=(),
    )


def question_views(question: PendingQuestion) -> tuple[Item, AskView]:
    """Return what a list of agents says of the question, and what its agent waits for with it."""
    key, text = f"{question.group}/{question.request_id}", brief(question)
    item = Item(
        key=key,
        short_id=question.short_id,
        brief=text,
        asked_at=question.timestamp,
        error=one_line(question.late.error or ""),
    )
    return item, AskView(question.kind, text, question.timestamp, key, question.short_id)
