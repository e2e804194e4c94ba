"""Fixtures: a desktop of one's own, and a host that runs in it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.acceptance.support import Host
from tests.desktop.support import Desktop

SETTINGS = """
[channels.desktop]
[groups.team]
channels = ["desktop", "local"]
"""
StartHost = Callable[..., Awaitable[Host]]


@pytest.fixture
async def desktop(tmp_path: Path) -> AsyncIterator[Desktop]:
    desktop = Desktop(tmp_path / "desktop")
    try:
        yield await desktop.start()
    finally:
        desktop.close()


@pytest.fixture
async def start_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StartHost]:
    """Return what starts a host in a session of a desktop."""
    hosts: list[Host] = []

    async def start(desktop: Desktop, settings: str = SETTINGS) -> Host:
        for name, value in desktop.environ.items():
            monkeypatch.setenv(name, value)
        host = Host(tmp_path / "data", settings)
        hosts.append(host)
        return await host.start()

    yield start
    for host in hosts:
        host.kill()
