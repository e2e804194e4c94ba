"""Who is waiting: every agent that lives or has something open, and how it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pynchy.inbox.views import brief, one_line, order_of
from pynchy.model import GroupName, Kind, PendingQuestion, SessionId, State, Urgency

OURS = "pynchy"
# What is made of a text that others wrote, however long it is.
_MAX_SOURCE = 1_000
_MAX_TEXT = 300
AgentKey = tuple[GroupName, str]


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
    """A process that shows signs of life in a group's mailbox, and what it calls itself."""

    group: GroupName
    lease: str
    session_id: SessionId
    agent: str = ""
    task: str = ""

    @property
    def key(self) -> AgentKey:
        """What tells its agent from others: the session, or the lease if it has none."""
        return self.group, self.session_id or self.lease


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
    """What an agent waits for a person with.

    One without a `key` is answered at its own screen. What is asked in full is in its `text` then,
    and else on the question's page.
    """

    kind: Kind
    title: str
    since: datetime | None
    key: str = ""
    short_id: str = ""
    text: str = ""
    options: tuple[str, ...] = ()
    agent: str = ""
    urgency: Urgency = Urgency.NORMAL

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
    of sources, and `guessed` if that is concluded from something else, or not known (idle then);
    `title` is what it waits for, or else works on. `source` is ours, or says who sees an agent that
    pynchy did not start.
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


def agent_views(live: Iterable[LiveRunner], pending: Iterable[PendingQuestion]) -> list[AgentView]:
    """Return the agents, the most pressing first: one for each session, whoever asked in it."""
    asked: dict[tuple[GroupName, str, str], list[PendingQuestion]] = {}
    for question in pending:
        if question.delivered is None:
            asked.setdefault(_who(question), []).append(question)
    runners = _Runners(live)
    views = [_asker(questions, runners.of(questions)) for questions in asked.values()]
    views += [_worker(runner) for runner in runners.silent()]
    ranks = list(AgentStatus)
    return sorted(views, key=lambda v: (ranks.index(v.status), v.group, v.name, v.session_id))


class _Runners:
    """Who lives, and which of them none of the questions is of."""

    def __init__(self, live: Iterable[LiveRunner]) -> None:
        self._all = list(live)
        self._by_lease = {(runner.group, runner.lease): runner for runner in self._all}
        self._by_key = {runner.key: runner for runner in self._all}
        self._asking: set[AgentKey] = set()

    def of(self, questions: Sequence[PendingQuestion]) -> list[LiveRunner]:
        """Return those that asked the questions, or work on their session."""
        by_lease = [self._by_lease.get((q.group, q.lease)) for q in questions]
        by_key = [self._by_key.get((q.group, q.session_id)) for q in questions if q.session_id]
        found = [runner for runner in (*by_lease, *by_key) if runner is not None]
        self._asking |= {runner.key for runner in found}
        return found

    def silent(self) -> list[LiveRunner]:
        """Return those that have asked nothing, each agent once."""
        return [r for r in self._by_key.values() if r.key not in self._asking]


def _who(question: PendingQuestion) -> tuple[GroupName, str, str]:
    """Return what tells its agent from others; the name only where there is nothing else."""
    known = question.session_id or question.lease
    return question.group, known, "" if known else question.agent


def _asker(questions: Sequence[PendingQuestion], runners: Sequence[LiveRunner]) -> AgentView:
    ordered = sorted(questions, key=order_of)
    newest = max(questions, key=lambda q: q.timestamp)
    lives = bool(runners)
    knows = lives or any(q.lease for q in questions)
    status = _status(ordered, lives=lives)
    shown = [q for q in ordered if _status([q], lives=lives) is status]
    told = {q.key: question_views(q) for q in ordered}
    is_ours = lives or not all(q.source for q in questions)
    return AgentView(
        group=newest.group,
        name=one_line(newest.agent or _first(r.agent for r in runners)),
        task=one_line(newest.task or _first(r.task for r in runners)),
        session_id=one_line(newest.session_id),
        lives=lives if knows else None,
        status=status,
        items=tuple(told[q.key][0] for q in shown if status is not AgentStatus.WORKING),
        asks=tuple(told[q.key][1] for q in ordered if q.state.waits_for_person),
        source=OURS if is_ours else newest.source,
    )


def _first(names: Iterable[str]) -> str:
    return next((name for name in names if name), "")


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


def _worker(runner: LiveRunner) -> AgentView:
    """Return an agent of which nothing is known but that it lives."""
    return AgentView(
        group=runner.group,
        name=one_line(runner.agent),
        task=one_line(runner.task),
        session_id=one_line(runner.session_id),
        lives=True,
        status=AgentStatus.IDLE,
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
    return item, AskView(
        question.kind,
        text,
        question.timestamp,
        key,
        question.short_id,
        agent=one_line(question.agent),
        urgency=question.urgency,
    )


def short(text: str) -> str:
    """Return a text that others wrote in one line, cut where it is long."""
    line = one_line(text[:_MAX_SOURCE])
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1] + "…"
