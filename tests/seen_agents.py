"""A real host to which a test says which foreign agents it sees."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.cli.support import Host
from tests.waiting import DEADLINE_SECONDS

from pynchy.config import Settings
from pynchy.http.context import HttpContext
from pynchy.model import GroupName, Kind
from pynchy.sources.base import AgentState, SeenAgent, SeenAsk, ToolRun
from pynchy.status_line import get_object

# A source that every host has a way back to.
SOURCE = "codex-terminal"


def seen(
    agent: str = "builder", state: AgentState = AgentState.WORKING, **fields: Any
) -> SeenAgent:
    """Return an agent of the source, whose session is called like it."""
    made = {"source": SOURCE, "group": GroupName("web-team"), "session_id": f"ses_{agent}"}
    return SeenAgent(agent=agent, state=state, **(made | fields))


# 1h 5m, for long enough that a slow test does not see another minute.
LONG_SECONDS = 3930.0


def tool(
    argument: str = "make test", seconds: float | None = LONG_SECONDS, **fields: Any
) -> ToolRun:
    """Return a call of bash that has run for so long."""
    began = None if seconds is None else datetime.now(UTC) - timedelta(seconds=seconds)
    return ToolRun("bash", argument, began, **fields)


def permission(title: str = "bash: git push", **fields: Any) -> SeenAsk:
    return SeenAsk(Kind.PERMISSION, title, **fields)


def question(title: str = "Which branch?", **fields: Any) -> SeenAsk:
    return SeenAsk(Kind.QUESTION, title, **fields)


class SeeingHost(Host):
    """A host in a thread that sees the agents in `agents`; the test changes them at will."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.agents: list[SeenAgent] = []
        self.looks = 0
        self.context: HttpContext

    def make_context(self, **parts: Any) -> HttpContext:
        """Return the parts of the host that HTTP shows, with what the test says it sees."""
        self.context = HttpContext(**{**parts, "seen_agents": self._look})
        return self.context

    def status(self) -> dict[str, Any]:
        """Return the figures that a status bar asks for."""
        address = self.data.host()
        return get_object(address.url, address.token, "/api/status", DEADLINE_SECONDS)

    def _look(self) -> list[SeenAgent]:
        self.looks += 1
        return list(self.agents)


@contextmanager
def seeing_host(path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeeingHost]:
    """Run such a host for as long as the context lasts."""
    host = SeeingHost(path, Settings.model_validate({"http": {"port": 0}}))
    monkeypatch.setattr("pynchy.host.HttpContext", host.make_context)
    host.start()
    try:
        yield host
    finally:
        host.stop()
