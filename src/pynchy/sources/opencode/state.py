"""What is known of one server, and what follows from it: who works, and who waits for a person.

Nothing here speaks to a server.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pynchy.model import GroupName, Kind, Urgency
from pynchy.sources.base import OPENCODE, AgentState, SeenAgent, SeenAsk, ToolRun
from pynchy.sources.opencode.reading import (
    MAX_ASKS,
    PROGRAM,
    AskedChoices,
    AskedPermission,
    Notice,
    RunningTool,
    SeenSession,
)

MAX_ROWS = 100
# How many folders of a server are followed beside its own.
_MAX_PLACES = 20
# One that fails is read at each so many polls, at least.
_MAX_PAUSE = 32
_MAX_FAMILY = 20
_MAX_TITLE = 500

Asked = AskedPermission | AskedChoices | Notice


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How often to look, in seconds, and until when what was found counts."""

    poll: float
    ask_timeout: float


@dataclass(frozen=True, slots=True)
class OpenAsk:
    """What a session waits for a person with. `session_id` is that of its topmost parent."""

    id: str
    session_id: str
    directory: str
    asked: Asked

    @property
    def kind(self) -> Kind:
        """What sort of thing it is."""
        return Kind.PERMISSION if isinstance(self.asked, AskedPermission) else Kind.QUESTION

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        match self.asked:
            case AskedPermission():
                return self.asked.about
            case AskedChoices():
                first = self.asked.choices[0]
                return first.header or first.text
            case Notice():
                return self.asked.title or self.asked.question

    @property
    def text(self) -> str:
        """What is asked, where the title does not say it all."""
        match self.asked:
            case AskedChoices():
                text = "\n".join(choice.text for choice in self.asked.choices)
            case Notice():
                text = self.asked.question
            case AskedPermission():
                text = ""
        return "" if text == self.title else text

    @property
    def agent(self) -> str:
        """Who asks, if it is not the program itself."""
        return self.asked.agent if isinstance(self.asked, Notice) else ""

    @property
    def urgency(self) -> Urgency:
        """How soon an answer is wanted, where the session says."""
        return Urgency(self.asked.urgency) if isinstance(self.asked, Notice) else Urgency.NORMAL

    @property
    def options(self) -> tuple[str, ...]:
        """What is offered as an answer, if one question is asked."""
        match self.asked:
            case AskedChoices(choices=(choice,)):
                return tuple(label for label, _ in choice.options)
            case Notice():
                return self.asked.options
        return ()

    @property
    def since(self) -> datetime | None:
        """When it was asked, where the server says."""
        return _moment(self.asked.asked) if isinstance(self.asked, Notice) else None


@dataclass(slots=True)
class ServerFolder:
    """One folder of the server: what is asked there, and whose sessions are at work.

    `version` counts what was told of it: what was read before that is old. `is_read` is False
    until it has been read: what is not here may be asked there all the same.
    """

    permissions: list[AskedPermission] = field(default_factory=list)
    questions: list[AskedChoices] = field(default_factory=list)
    busy: frozenset[str] = frozenset()
    version: int = 0
    is_read: bool = False
    _pause: int = 1
    _polls_left: int = 0

    def read(self) -> None:
        """Note that all of it has been read."""
        self.is_read, self._pause, self._polls_left = True, 1, 0

    def failed(self) -> None:
        """Note that it could not be read, though others could."""
        self._pause = min(2 * self._pause, _MAX_PAUSE)
        self._polls_left = self._pause

    def is_due(self) -> bool:
        """True if it is to be read at this poll: one that fails is so less and less often."""
        self._polls_left = max(0, self._polls_left - 1)
        return not self._polls_left

    def add(self, *asked: AskedPermission | AskedChoices) -> None:
        """Note what a session has just asked, which is at work, then."""
        known = {one.id for one in self.asked}
        for one in asked:
            if len(known) >= MAX_ASKS:
                break
            self.busy |= {one.session_id}
            if isinstance(one, AskedChoices) and one.id not in known:
                self.questions.append(one)
            elif isinstance(one, AskedPermission) and one.id not in known:
                self.permissions.append(one)
        self.version += 1

    def drop(self, ids: set[str]) -> None:
        """Note what has just been answered."""
        self.permissions = [one for one in self.permissions if one.id not in ids]
        self.questions = [one for one in self.questions if one.id not in ids]
        self.version += 1

    @property
    def asked(self) -> list[AskedPermission | AskedChoices]:
        """Everything that is asked there, also what a stopped session left behind."""
        return [*self.permissions, *self.questions]


@dataclass(slots=True)
class SessionDetail:
    """What a session's messages tell."""

    tools: list[RunningTool] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    open_todos: int = 0
    updated: float = -1.0


@dataclass(slots=True)
class ServerState:
    """Everything that is known of one server.

    `is_exact`: it tells itself what it waits for; else that is guessed. `flagged` are calls whose
    permission an older server has announced; `granted` are calls that have had it.
    """

    sessions: dict[str, SeenSession] = field(default_factory=dict)
    places: dict[str, ServerFolder] = field(default_factory=dict)
    details: dict[str, SessionDetail] = field(default_factory=dict)
    is_exact: bool = True
    flagged: set[tuple[str, str]] = field(default_factory=set)
    granted: set[tuple[str, str]] = field(default_factory=set)
    over: set[str] = field(default_factory=set)

    @property
    def busy(self) -> frozenset[str]:
        """The sessions at work."""
        return frozenset().union(*(place.busy for place in self.places.values()))

    def add_place(self, directory: str, kept: Container[str | None]) -> bool:
        """Know the folder from now on, in the place of a quiet one if there are too many.

        False if something goes on in each. Those that are `kept` count for nothing.
        """
        others = [name for name in self.places if name not in kept]
        is_new = directory not in self.places and directory not in kept
        if is_new and len(others) >= _MAX_PLACES:
            quiet = next((name for name in others if self._is_quiet(self.places[name])), None)
            if quiet is None:
                return False
            del self.places[quiet]
        self.places.setdefault(directory, ServerFolder())
        return True

    def _is_quiet(self, place: ServerFolder) -> bool:
        return not place.busy and all(asked.id in self.over for asked in place.asked)

    def knows(self, directory: str) -> bool:
        """True if what is not known to be asked in the folder is not asked there."""
        place = self.places.get(directory)
        return place is None or place.is_read

    def forget(self) -> None:
        """Forget what was read, though not which folders there are."""
        self.places = {name: ServerFolder() for name in self.places}
        self.sessions, self.details = {}, {}
        self.flagged, self.granted, self.over = set(), set(), set()

    def root_of(self, session_id: str) -> str:
        """Return the session for which this one works, or itself."""
        for _ in range(_MAX_FAMILY):
            parent = self.sessions[session_id].parent if session_id in self.sessions else ""
            if not parent:
                break
            session_id = parent
        return session_id

    def asks(self, now: float, ask_timeout: float) -> list[OpenAsk]:
        """Return what sessions wait for.

        A session that has been stopped leaves its requests behind: only one at work asks them.
        """
        found = [
            OpenAsk(asked.id, self.root_of(asked.session_id), directory, self._with_folder(asked))
            for directory, place in self.places.items()
            for asked in place.asked
            if asked.session_id in place.busy
            and asked.session_id in self.sessions
            and asked.id not in self.over
        ]
        busy = self._busy_roots()
        for session_id, detail in self.details.items():
            session, root = self.sessions.get(session_id), self.root_of(session_id)
            if session is None or root in busy:
                continue
            found += [
                OpenAsk(f"{session_id} {notice.part_id}", root, session.directory, notice)
                for notice in detail.notices
                if now - (session.updated if notice.asked is None else notice.asked) <= ask_timeout
            ]
        return found[:MAX_ASKS]

    def _with_folder(self, asked: AskedPermission | AskedChoices) -> AskedPermission | AskedChoices:
        if isinstance(asked, AskedChoices):
            return asked
        folder = self.sessions[asked.session_id].directory
        is_usable = folder.startswith("/")
        return replace(asked, call=replace(asked.call, cwd=folder if is_usable else ""))

    def flag(self, session_id: str, call_id: str) -> None:
        """Note that an older server has announced a permission."""
        self.granted.discard((session_id, call_id))
        if len(self.flagged) < MAX_ASKS:
            self.flagged.add((session_id, call_id))

    def grant(self, session_id: str) -> None:
        """Note that a permission of the session was decided: what runs now has what it needs."""
        self.flagged = {pair for pair in self.flagged if pair[0] != session_id}
        if detail := self.details.get(session_id):
            self.granted |= {(session_id, tool.call_id) for tool in detail.tools}

    def tools(self, now: float, threshold: float) -> Iterator[tuple[str, ToolRun]]:
        """Yield the calls under way, each with the topmost session it is made for."""
        for session_id in sorted(self.busy):
            for tool in self.details.get(session_id, SessionDetail()).tools:
                run = ToolRun(
                    tool.tool,
                    tool.argument,
                    _moment(tool.started),
                    self._may_need_permission(session_id, tool, now, threshold),
                )
                yield self.root_of(session_id), run

    def _may_need_permission(
        self, session_id: str, tool: RunningTool, now: float, threshold: float
    ) -> bool:
        call = (session_id, tool.call_id)
        if self.is_exact or call in self.granted:
            return False
        announced = {call, (session_id, "")} & self.flagged
        return bool(announced) or tool.may_need_permission(now, threshold)

    def _busy_roots(self) -> set[str]:
        return {self.root_of(session_id) for session_id in self.busy}

    def forget_done(self) -> None:
        """Drop what is known of sessions and calls that are no more."""
        busy = self.busy
        self.details = {name: one for name, one in self.details.items() if name in self.sessions}
        running = {(name, t.call_id) for name in busy for t in self.details_of(name).tools}
        self.granted &= running
        self.flagged = {
            pair for pair in self.flagged if pair[0] in busy and _is_open(pair, running)
        }
        open_ids = {asked.id for place in self.places.values() for asked in place.asked}
        self.over &= open_ids

    def leave_behind(self, folder: ServerFolder) -> None:
        """Note what sessions that came to rest have asked: they do not wait for it any more."""
        self.over |= {asked.id for asked in folder.asked if asked.session_id not in folder.busy}

    def details_of(self, session_id: str) -> SessionDetail:
        """Return what is known of the session."""
        return self.details.get(session_id) or SessionDetail()


def _is_open(call: tuple[str, str], running: set[tuple[str, str]]) -> bool:
    session_id, call_id = call
    return call in running or (not call_id and any(name == session_id for name, _ in running))


def _moment(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What rows depend on beside the state."""

    group: GroupName
    now: float
    threshold: float
    idle_for: float


def rows(
    state: ServerState, asks: list[tuple[OpenAsk, SeenAsk]], options: RowOptions
) -> list[SeenAgent]:
    """Return a row for each session that works, waits or has lately ended its work."""
    tools: dict[str, list[ToolRun]] = {}
    for root, run in state.tools(options.now, options.threshold):
        tools.setdefault(root, []).append(run)
    waiting: dict[str, list[SeenAsk]] = {}
    for ask, seen in asks:
        waiting.setdefault(ask.session_id, []).append(seen)
    busy = {state.root_of(name) for name in state.busy}
    found = []
    for session in state.sessions.values():
        row = _row(session, tools.get(session.id, []), waiting.get(session.id, []))
        if row.state is AgentState.IDLE and session.id in busy:
            row = replace(row, state=AgentState.WORKING)
        is_recent = options.now - session.updated <= options.idle_for
        if not session.parent and (is_recent or row.state is not AgentState.IDLE):
            todos = state.details_of(session.id).open_todos
            found.append(replace(row, group=options.group, open_todos=todos))
    found.sort(key=lambda row: list(AgentState).index(row.state))
    return found[:MAX_ROWS]


def _row(session: SeenSession, tools: list[ToolRun], asks: list[SeenAsk]) -> SeenAgent:
    guessed = not asks and any(tool.may_need_permission for tool in tools)
    state = AgentState.WAITING if asks else AgentState.IDLE
    if guessed or any(ask.kind is Kind.PERMISSION for ask in asks):
        state = AgentState.PERMISSION
    began = [tool.started for tool in tools if tool.started is not None]
    asked = [ask.since for ask in asks if ask.since is not None]
    return SeenAgent(
        source=OPENCODE,
        group=GroupName(""),
        agent=PROGRAM,
        session_id=session.id,
        state=state,
        title=(asks[-1].title if asks else session.title)[:_MAX_TITLE],
        task=session.directory,
        since=min(asked or began, default=None) or _moment(session.updated),
        guessed=guessed,
        tools=tuple(tools),
        asks=tuple(asks),
    )
