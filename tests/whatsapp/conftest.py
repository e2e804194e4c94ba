"""Fixtures: a stand-in for WhatsApp, and hosts that ask there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Host
from tests.standins.whatsapp import WhatsAppStandIn, environ
from tests.waiting import until
from tests.whatsapp.support import TEAM, Lobby, Room, group_table, pair, settings


@pytest.fixture(scope="module")
def lobby(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lobby]:
    lobby = Lobby(tmp_path_factory.mktemp("lobby"), rooms=30)
    try:
        asyncio.run(lobby.start())
        yield lobby
    finally:
        lobby.close()


@pytest.fixture
async def room(lobby: Lobby) -> AsyncIterator[Room]:
    """A room of the shared host; whatever is done in it must not end that host."""
    room = lobby.room()
    yield room
    await room.close()


StartRoom = Callable[..., Awaitable[Room]]


@pytest.fixture
def whatsapp(monkeypatch: pytest.MonkeyPatch) -> Iterator[WhatsAppStandIn]:
    with WhatsAppStandIn() as whatsapp:
        for name, value in environ(whatsapp.address).items():
            monkeypatch.setenv(name, value)
        yield whatsapp


@pytest.fixture
async def start_room(whatsapp: WhatsAppStandIn, tmp_path: Path) -> AsyncIterator[StartRoom]:
    """Start a host: the group `team` asks in TEAM, and where else the test says."""
    rooms: list[Room] = []

    async def start(
        *tables: str,
        channels: tuple[str, ...] = ("whatsapp",),
        chat: str | None = TEAM,
        connected: bool = True,
        **group: Any,
    ) -> Room:
        text = settings(*tables, group_table("team", chat, *channels, **group))
        pair(tmp_path / "data")
        host = Host(tmp_path / "data", text)
        rooms.append(Room(whatsapp, host, "team", chat or "491700000000@s.whatsapp.net"))
        await host.start()
        if connected:
            await until(lambda: whatsapp.connected, "the host's child")
        return rooms[-1]

    yield start
    for room in rooms:
        await room.close()
        room.host.kill()
