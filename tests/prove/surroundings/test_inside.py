"""Troubles that only the host's own process can have: its clock jumps, its threads die.

The real host runs in the test's own process; people and agents come over HTTP and files.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest
from tests.acceptance.support import MailboxAgent, Person
from tests.waiting import until
from watchdog.observers.api import BaseObserver, EventEmitter

from pynchy import aio
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host

SETTINGS = Settings.model_validate({"http": {"port": 0}})
WEEK = timedelta(days=8)


class Here(Person):
    """A person who asks a host in this same loop, so from another thread."""

    async def get(self, path: str) -> Any:
        return (await asyncio.to_thread(self.http, "GET", path)).body

    async def answers(self, target: str) -> int:
        return (await asyncio.to_thread(self.answer, target, "Yes")).status

    async def is_in(self, target: str, state: str) -> None:
        async def look() -> bool:
            found: str = (await self.get(f"/api/questions/{target}")).get("state")
            return found == state

        await until(look, f"{target} to be {state}")

    async def problems(self) -> list[str]:
        found: list[str] = (await self.get("/healthz"))["problems"]
        return found

    async def serves(self, group: str) -> None:
        agent = MailboxAgent(self.group(group))
        request_id = agent.ask("Does it work?")
        await self.is_in(request_id, "open")
        assert await self.answers(request_id) == 200
        assert (await agent.receive(request_id))["outcome"] == "answered"
        await self.is_in(request_id, "closed")


@asynccontextmanager
async def host_here(path: Path) -> AsyncIterator[Here]:
    async with running_host(SETTINGS, DataFolder(path)) as running:
        yield Here(path, running.url)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> type:
    """The machine's wall clock as pynchy.aio sees it; `offset` sets it."""

    class Wall(datetime):
        offset = timedelta()

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + cls.offset

    monkeypatch.setattr(aio, "datetime", Wall)
    return Wall


@pytest.mark.parametrize("jump", [WEEK, -WEEK], ids=["forward", "back"])
async def test_a_clock_that_jumps_ends_no_question_is_told_of_and_forgotten_when_set_right(
    tmp_path: Path, wall: Any, jump: timedelta
) -> None:
    async with host_here(tmp_path / "data") as host:
        agent = MailboxAgent(host.group("team"))
        asked = agent.ask("Deploy?")
        await host.is_in(asked, "open")
        before = await host.get(f"/api/questions/{asked}")

        wall.offset = jump
        assert any("clock has jumped" in text for text in await host.problems())
        await host.serves("team")
        during = agent.ask("And now?")
        await host.is_in(during, "open")
        assert (await host.get(f"/api/questions/{asked}")) == before
        deadline = datetime.fromisoformat(
            (await host.get(f"/api/questions/{during}"))["expires_at"]
        )
        first = datetime.fromisoformat(before["expires_at"])
        assert timedelta() < deadline - first < timedelta(minutes=5)

        wall.offset = timedelta()
        assert await host.problems() == []
        for request_id in (asked, during):
            assert await host.answers(request_id) == 200
            assert (await agent.receive(request_id))["outcome"] == "answered"
            await host.is_in(request_id, "closed")


async def test_a_start_after_a_jump_back_keeps_what_is_open_and_after_one_forward_says_expired(
    tmp_path: Path, wall: Any
) -> None:
    data = tmp_path / "data"
    async with host_here(data) as host:
        agent = MailboxAgent(host.group("team"))
        asked = agent.ask("Deploy?")
        await host.is_in(asked, "open")
    wall.offset = -WEEK
    async with host_here(data) as host:
        await host.is_in(asked, "open")
        await host.serves("team")
    wall.offset = WEEK
    async with host_here(data) as host:
        await host.is_in(asked, "closed")
        assert (await agent.responded(asked))["outcome"] == "expired"


@pytest.mark.parametrize("kind", [BaseObserver, EventEmitter])
async def test_a_watch_whose_thread_dies_is_armed_again(tmp_path: Path, kind: type) -> None:
    others = _threads(kind)
    async with host_here(tmp_path / "data") as host:
        await host.serves("team")
        victims = [thread for thread in _threads(kind) if thread not in others]
        assert victims
        for thread in victims:
            thread.stop()
            await asyncio.to_thread(thread.join)

        await host.serves("team")
        known = [*others, *victims]
        await until(
            lambda: sum(t not in known for t in _threads(kind)) >= len(victims),
            "threads in their place",
        )
        await host.serves("another")
        assert await host.problems() == []


def _threads(kind: type) -> list[Any]:
    return [thread for thread in threading.enumerate() if isinstance(thread, kind)]
