"""Fixtures: a stand-in of one's own, rooms of a shared host, and hosts that may be killed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Host
from tests.slack.support import ANA, BEN, EVE, Lobby, Room, group_table, people, settings, tokens_of
from tests.standins.slack import SlackStandIn
from tests.waiting import until

StartRoom = Callable[..., Awaitable[Room]]


@pytest.fixture(scope="module")
def lobby(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lobby]:
    lobby = Lobby(tmp_path_factory.mktemp("lobby"), rooms=50)
    try:
        asyncio.run(lobby.start())
        yield lobby
    finally:
        lobby.close()


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lobby]:
    """A shared host that keeps the questions of a session in one thread."""
    lobby = Lobby(tmp_path_factory.mktemp("threads"), rooms=12, thread_per_session=True)
    try:
        asyncio.run(lobby.start())
        yield lobby
    finally:
        lobby.close()


@pytest.fixture
async def threaded(threads: Lobby) -> AsyncIterator[Room]:
    """A room of that host, whose Slack may be given trouble."""
    room = threads.room()
    yield room
    await room.close()
    await threads.mend()


@pytest.fixture
async def room(lobby: Lobby) -> AsyncIterator[Room]:
    """A room of the shared host; whatever is done in it must not end that host."""
    refused = len(lobby.slack.refused())
    room = lobby.room()
    yield room
    await room.close()
    assert lobby.slack.refused()[refused:] == []


@pytest.fixture
async def troubled(lobby: Lobby) -> AsyncIterator[Room]:
    """A room of the shared host whose Slack may be given trouble."""
    room = lobby.room()
    yield room
    await room.close()
    await lobby.mend()


@pytest.fixture
async def troubled_pair(lobby: Lobby) -> AsyncIterator[Room]:
    """The same, for a group that asks in Slack and in the local channel."""
    room = Room(lobby.slack, lobby.host, "pair", "CPAIR")
    yield room
    await room.close()
    await lobby.mend()


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn() as slack:
        people(slack)
        slack.workspace.add_channel("C1", ANA, BEN, EVE)
        yield slack


@pytest.fixture
def tokens(slack: SlackStandIn) -> Iterator[pytest.MonkeyPatch]:
    with tokens_of(slack) as patch:
        yield patch


@pytest.fixture
async def start_room(
    slack: SlackStandIn, tokens: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[StartRoom]:
    """Start a host of one's own: the group `team` asks in C1, and where else the test says."""
    del tokens
    rooms: list[Room] = []

    async def start(
        *tables: str, channels: tuple[str, ...] = ("slack",), connected: bool = True, **slack_: Any
    ) -> Room:
        text = settings(slack, *tables, group_table("team", "C1", *channels), **slack_)
        host = Host(tmp_path / "data", text)
        rooms.append(Room(slack, host, "team", "C1"))
        await host.start()
        if connected:
            await until(lambda: slack.sockets.count, "the host's socket")
        return rooms[-1]

    yield start
    for room in rooms:
        await room.close()
        room.host.kill()
