"""Real agent programs against a scripted model: `make test-agents`, and never `make test`.

Nothing here may reach further than loopback: the whole test process moves into a network of its
own where the system lets it, and every program is told proxies that lead nowhere.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agents.loopback import enter_own_network
from tests.agents.programs import IS_THOROUGH, TRIED, Program
from tests.agents.support import Stage

collect_ignore_glob = [] if os.environ.get("PYNCHY_TEST_AGENTS") else ["test_*.py"]
collect_ignore = [] if IS_THOROUGH else ["test_acp_adapters.py"]


_CUT_OFF = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    # Before the workers are started, since they inherit it.
    if os.environ.get("PYNCHY_TEST_AGENTS") and not hasattr(config, "workerinput"):
        config.stash[_CUT_OFF] = enter_own_network()


def pytest_report_header(config: pytest.Config) -> str | None:
    cut_off = config.stash.get(_CUT_OFF, None)
    if cut_off is None:
        return None
    return f"network: {'loopback alone' if cut_off else 'not cut off, the system does not let us'}"


@pytest.fixture(params=TRIED, ids=lambda program: program.id)
def program(request: pytest.FixtureRequest) -> Program:
    found: Program = request.param
    assert found.is_installed, f"{found.id} is not installed: python -m tests.agents.programs"
    return found


@pytest.fixture
async def stage(program: Program, tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(program, tmp_path)
    stage.model.start()
    yield stage
    stage.close()
