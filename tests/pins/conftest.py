"""What was seen of the programs: each is run once for all tests of the folder."""

import asyncio
from typing import Any

import pytest
from tests.pins.agents_side import see_agents_side
from tests.pins.world import see_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of a host through its life."""
    return asyncio.run(see_world(tmp_path_factory.mktemp("world") / "life"))


@pytest.fixture(scope="session")
def agents_side(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of the agent's MCP server and of its files."""
    return asyncio.run(see_agents_side(tmp_path_factory.mktemp("agent") / "ipc"))
