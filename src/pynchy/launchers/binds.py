"""Which folders a box may not show or give away.

No agent sees anything of the data folder but its own, and none may write where it could put a link
in the place of something that a box is made of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import agent_runner
from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed

# Where the package is that runs.
PYNCHY = Path(__file__).resolve().parents[2]


def check_binds(settings: LauncherSettings, data: Path, group: str) -> None:
    """Raise DeliveryFailed if the box would show, or let change, what it is to keep away."""
    data = data.resolve()
    places = resolved(tuple(map(Path, settings.places(data, group, {}))))
    writable = [*places, *resolved(settings.write)]
    for why in (
        *_reach_data(settings, writable, data, data / "boxes" / group),
        *_can_be_replaced(settings, writable),
        *_missing(settings),
    ):
        raise DeliveryFailed(why)


def _reach_data(
    settings: LauncherSettings, writable: list[Path], data: Path, own: Path
) -> Iterator[str]:
    readable = resolved(settings.read)
    for path in [*writable, *readable]:
        if path.is_relative_to(data) and not path.is_relative_to(own):
            yield f"{path} lies in pynchy's data folder, which no agent may see"
    for path in writable:
        if data.is_relative_to(path):
            yield f"{path} holds pynchy's data folder, so no agent may write there"
    for path in readable:
        # bubblewrap shows such a folder with nothing in the data folder's place.
        if settings.kind == "docker" and data.is_relative_to(path):
            yield f"{path} holds pynchy's data folder, which no agent may see"


def _can_be_replaced(settings: LauncherSettings, writable: list[Path]) -> Iterator[str]:
    bound = [*resolved(settings.read, settings.write), *pynchys_own(), PYNCHY]
    for path in writable:
        for other in bound:
            # Who can write a folder can put a link in the place of what is bound below it.
            if other != path and other.is_relative_to(path):
                yield f"{other} lies in {path}, where the agent may write"
        for hidden in resolved(settings.hide):
            # A cover cannot be moved, but the folder around it can: the next one misses then.
            if path in hidden.parent.parents:
                yield f"{hidden} cannot be hidden: the agent may move {hidden.parent}"


def _missing(settings: LauncherSettings) -> Iterator[str]:
    for path in resolved(settings.read, settings.write, settings.hide):
        if not path.exists():
            yield f"{path} is not there"


def pynchys_own() -> list[Path]:
    """Return where the Python is that runs us, with agent_runner and what that needs."""
    runner = Path(agent_runner.__file__).resolve().parents[1]
    places = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), runner}
    with suppress(OSError):
        # A Python may be a link in its venv to a place that is nowhere else named.
        places.add(Path(sys.executable).resolve().parents[1])
    return sorted(places)


def resolved(*groups: tuple[Path, ...]) -> list[Path]:
    """Return where the paths lead."""
    return [path.expanduser().resolve() for group in groups for path in group]
