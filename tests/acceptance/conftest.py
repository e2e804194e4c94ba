"""Fixtures that start real processes and leave none behind."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.acceptance.support import Host, Runs

StartHost = Callable[..., Awaitable[Host]]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
async def start_host(tmp_path: Path) -> AsyncIterator[StartHost]:
    """Start a host with the settings given as TOML; the test may kill and restart it."""
    hosts: list[Host] = []

    async def start(settings: str = "", name: str = "data", *, by_command: bool = False) -> Host:
        host = Host(tmp_path / name, settings)
        host.by_command = by_command
        hosts.append(host)
        return await host.start()

    yield start
    for host in hosts:
        host.kill()


@pytest.fixture
async def host(start_host: StartHost) -> Host:
    """A host without any settings."""
    return await start_host()


@pytest.fixture(scope="module")
def shared_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host for all tests of a file that neither kill it nor count what it lists."""
    host = Host(tmp_path_factory.mktemp("shared") / "data")
    asyncio.run(host.start())
    yield host
    host.kill()


@pytest.fixture
def group() -> str:
    """The name of a group that no other test uses."""
    return f"group-{os.urandom(6).hex()}"
