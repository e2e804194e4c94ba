"""A source that follows stand-ins of OpenCode, and what it sees."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.standins.opencode import OpenCodeStandIn
from tests.waiting import until

from pynchy.config import OpenCodeSourceSettings
from pynchy.events import Event
from pynchy.model import GroupName, RequestId
from pynchy.pending.base import Key
from pynchy.pending.index import PendingIndex
from pynchy.sources.base import (
    AgentState,
    AnswerRoute,
    HeldConnection,
    SeenAgent,
    SourceQuestion,
    SourceServices,
)
from pynchy.sources.opencode.source import OpenCodeSource


@dataclass
class Asked:
    """A handler that remembers what it was told."""

    questions: list[SourceQuestion] = field(default_factory=list)
    cleared_ones: list[tuple[str, str]] = field(default_factory=list)

    async def asked(self, source: str, question: SourceQuestion) -> None:
        assert source == "opencode"
        self.questions.append(question)

    async def cleared(
        self, source: str, group: GroupName, request_id: RequestId, reason: str
    ) -> None:
        assert (source, group) == ("opencode", "opencode")
        self.cleared_ones.append((request_id, reason))


class QuietRoute(AnswerRoute):
    """A way back on which no answer comes."""

    def __init__(self) -> None:
        self.lost: list[Key] = []

    @contextmanager
    def connection(self, key: Key) -> Iterator[HeldConnection]:
        del key
        yield HeldConnection()

    def lose(self, key: Key) -> None:
        self.lost.append(key)


@dataclass
class Look:
    """A source that follows servers, and what it sees."""

    source: OpenCodeSource
    events: list[Event]
    task: "asyncio.Task[None]"

    @property
    def agents(self) -> list[SeenAgent]:
        return list(self.source.agents())

    async def see(self, look: Callable[[list[SeenAgent]], Any]) -> list[SeenAgent]:
        def found() -> tuple[list[SeenAgent]] | None:
            agents = self.agents
            return (agents,) if look(agents) else None

        seen: tuple[list[SeenAgent]] = await until(found, f"it to be seen: {self.agents}")
        return seen[0]

    async def agent(self, state: AgentState) -> SeenAgent:
        seen = await self.see(lambda agents: [a for a in agents if a.state is state])
        return next(agent for agent in seen if agent.state is state)


@asynccontextmanager
async def following(
    *servers: OpenCodeStandIn,
    environ: Mapping[str, str] | None = None,
    handler: Any = None,
    index: PendingIndex | None = None,
    **settings: Any,
) -> AsyncIterator[Look]:
    """Follow the servers without asking anybody, unless something is to be forwarded."""
    table = OpenCodeSourceSettings(
        **{
            "urls": tuple(server.url for server in servers),
            "group": "opencode",
            "discover": False,
            "poll": "100ms",
            "forward": (),
            **settings,
        }
    )
    events: list[Event] = []
    services = SourceServices(
        route=QuietRoute(),
        index=PendingIndex() if index is None else index,
        publish=events.append,
        now=lambda: datetime.now(UTC),
    )
    source = OpenCodeSource(table, environ or {}, services)
    task = asyncio.create_task(source.run(handler or Asked()))
    try:
        yield Look(source, events, task)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def ask_by_notify(server: OpenCodeStandIn, session: str, title: str, **more: Any) -> str:
    given = {"title": title, "question": f"{title} Really?", "options": ["Yes", "No"], **more}
    return server.run_tool(session, "notify_ask_user", 1.0, "completed", **given)
