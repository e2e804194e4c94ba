"""The list of agents in the terminal's inbox has those that pynchy did not start."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.seen_agents import SeeingHost, question, seeing_host, seen, tool
from tests.unit.screen.support import Desk, HandClock

from pynchy.model import Urgency
from pynchy.sources.base import AgentState


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeeingHost]:
    with seeing_host(tmp_path / "data", monkeypatch) as host:
        yield host


async def test_what_is_asked_at_its_own_screen_is_told_in_full(
    host: SeeingHost, clock: HandClock
) -> None:
    asked = question("Merge?", text="May I, with a merge?", urgency=Urgency.HIGH)
    host.agents = [seen("asker", AgentState.WAITING, asks=(asked,))]

    async with Desk(host, clock).sit_down() as person:
        await person.press("a")
        await person.see("Merge?  urgent  May I, with a merge?  at its own screen")


async def test_foreign_agents_are_listed_with_their_tools_and_questions(
    host: SeeingHost, clock: HandClock
) -> None:
    host.agents = [
        seen("asker", AgentState.WAITING, asks=(question(),)),
        seen("builder", tools=(tool(), tool("./x.sh", may_need_permission=True))),
        seen("idler", AgentState.IDLE),
    ]

    async with Desk(host, clock).sit_down() as person:
        await person.press("a")
        await person.see("waiting on you", "asker", "Which branch?  at its own screen")
        await person.see("bash: make test  1h 5m", "idle ", "idler")
        await person.see("bash: ./x.sh  may need permission, running 1h 5m (a guess)")
