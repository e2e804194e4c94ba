"""The host's core as tests build it: on a folder, with a clock that they move."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.core import Core, CoreContext
from pynchy.testing import FakeClock


def make_core(
    folder: Path,
    clock: FakeClock,
    settings: Settings,
    channels: Mapping[str, Channel],
    **parts: Any,
) -> Core:
    """Return a core that has not begun; `parts` are fields of CoreContext."""
    core = Core(CoreContext(folder, settings, channels, clock.now, **parts))
    core.audit.open()
    return core


async def start(core: Core, tasks: asyncio.TaskGroup) -> None:
    """Take up what the last host left, and go on with it."""
    workers = await core.load(tasks)
    workers.resume()
    tasks.create_task(core.ledger.follow())
