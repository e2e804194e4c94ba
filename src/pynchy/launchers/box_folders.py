"""The folders of a box: which of them the agent may write, and what may be looked up in them.

Who can write a folder can put a link in the place of anything in it, also between two looks. So
nothing that we bind, make or run outside of a box is looked up in a folder that an agent may write,
and where the places of a box lie is found out once: what is checked is what is bound.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import agent_runner
from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed

# Where the package is that runs.
PYNCHY = Path(__file__).resolve().parents[2]
_TO_INSTALL = {"bwrap": " (Debian: apt-get install bubblewrap)"}
_MAX_LINKS = 40
# What Python needs of the folder that it is installed in, which may be somebody's home.
_PYTHON = ("bin", "lib", "lib32", "lib64", "libexec", "include", "pyvenv.cfg")
# What tells that the folder is an environment, with nothing in it but what was installed.
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
_PACKAGES = ("agent_runner", "watchdog")


@dataclass(frozen=True, slots=True)
class FollowedPath:
    """Where a path leads, and the folders in which something on the way there is looked up."""

    named: Path
    end: Path
    folders: tuple[Path, ...]

    def through(self, places: Iterable[Path]) -> Path | None:
        """Return the first of the places in which something on the way is looked up."""
        return next((p for p in places if any(f.is_relative_to(p) for f in self.folders)), None)


@dataclass(frozen=True, slots=True)
class BoxFolders:
    """The folders of a box, each where it was when it was checked."""

    home: Path
    workspace: Path
    write: tuple[Path, ...]
    read: tuple[Path, ...]

    @property
    def writable(self) -> tuple[Path, ...]:
        """All that the agent may write."""
        return (self.home, self.workspace, *self.write)

    @property
    def given(self) -> list[Path]:
        """What is to be bound for that: none of them can the agent replace."""
        return outermost(self.writable)


def check_binds(launchers: Mapping[str, LauncherSettings], data: Path, group: str) -> BoxFolders:
    """Return the folders of the group's box.

    Raise DeliveryFailed if it would show, or let change, what it is to keep away.
    """
    settings, data = launchers[group], data.resolve()
    others = {name: launcher for name, launcher in launchers.items() if name != group}
    ways = [follow(path) for path in _named(settings, data, group)]
    read = [follow(path) for path in settings.read]
    home, workspace, *write = (way.end for way in ways)
    places = BoxFolders(home, workspace, tuple(write), tuple(way.end for way in read))
    for why in (
        *_lead_elsewhere(ways),
        *_were_led_elsewhere([*ways, *read], writable_by_agents(others, data)),
        *_reach_data(settings, places, data, data / "boxes" / group),
        *_can_be_replaced(settings, [*read, *ways[2:]], places.writable),
        *_missing(settings, places),
    ):
        raise DeliveryFailed(why)
    return places


def outermost(places: Iterable[Path]) -> list[Path]:
    """Return the places that lie in no other one: these show the others as well."""
    known = dict.fromkeys(places)
    return [path for path in known if not any(_is_below(path, other) for other in known)]


def writable_by_agents(launchers: Mapping[str, LauncherSettings], data: Path) -> list[Path]:
    """Return all folders that the agents of these groups may write in their boxes."""
    found: list[Path] = []
    for group, settings in launchers.items():
        if settings.is_box:
            ways = [follow(path) for path in _named(settings, data.resolve(), group)]
            # A place that was made a link is no longer given to anybody.
            while stray := _strays(ways):
                ways = [way for way in ways if way not in stray]
            found += [way.end for way in ways]
    return found


def shared_with_others(
    launchers: Mapping[str, LauncherSettings], data: Path, group: str
) -> Iterator[tuple[Path, str, Path]]:
    """Yield what a box binds that lies in a folder of another group: it, that group, and where."""
    settings = launchers[group]
    ways = [follow(path) for path in _named(settings, data.resolve(), group)]
    bound = outermost(way.end for way in ways)
    ways = [way for way in ways if way.end in bound] + [follow(path) for path in settings.read]
    for other in launchers.keys() - {group}:
        places = writable_by_agents({other: launchers[other]}, data)
        for way in ways:
            if place := way.through(places):
                yield way.named, other, place


def find_program(name: str, search: str | None, writable: Iterable[Path]) -> str:
    """Return where on the PATH a program is that no agent can have put there.

    Raise DeliveryFailed if it is nowhere else.
    """
    if found := shutil.which(name, path=safe_search(name, search, writable)):
        return found
    if found := shutil.which(name, path=search):
        why = f"{found} is not run, since an agent may have put it there"
        raise DeliveryFailed(f"{why}; have {name} in a folder of the PATH that no box may write")
    raise DeliveryFailed(f"{name} is not on the PATH{_TO_INSTALL.get(name, '')}")


def safe_search(name: str, search: str | None, writable: Iterable[Path]) -> str:
    """Return the PATH without the folders where an agent could put a program of that name."""
    folders = (os.defpath if search is None else search).split(os.pathsep)
    places = list(writable)
    paths = [Path(folder) for folder in folders if Path(folder).is_absolute()]
    # An empty PATH would stand for the working folder.
    return os.pathsep.join(
        [str(p) for p in paths if not leads_through(p / name, places)] or [os.devnull]
    )


def leads_through(path: Path, places: Iterable[Path]) -> Path | None:
    """Return the first of the places in which something on the way to the path is looked up."""
    return follow(path).through(places)


def follow(path: Path) -> FollowedPath:
    """Return the way that a path leads: each part of it is looked at once, and never again."""
    at, links, folders = Path("/"), 0, []
    todo = [*reversed(path.expanduser().absolute().parts[1:])]
    while todo:
        part = todo.pop()
        if part == os.pardir:
            at = at.parent
            continue
        folders.append(at)
        try:
            target = (at / part).readlink()
        except OSError:  # no link, or nothing is there
            at /= part
            continue
        links += 1
        if links > _MAX_LINKS:  # a circle, as the kernel sees it
            at = at.joinpath(part, *reversed(todo))
            break
        if target.is_absolute():
            at = Path("/")
        todo += reversed([part for part in target.parts if part != target.anchor])
    return FollowedPath(path, at, tuple(folders))


def pynchys_own() -> list[Path]:
    """Return where the Python is that runs us, with agent_runner and what that needs."""
    runner = Path(agent_runner.__file__).resolve().parents[1]
    prefixes = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    with suppress(OSError):
        # A Python may be a link in its venv to a place that is nowhere else named.
        prefixes.add(Path(sys.executable).resolve().parents[1])
    shown = {runner / name for name in _PACKAGES} if _holds_home(runner) else {runner}
    for prefix in prefixes:
        own = not _holds_home(prefix) and any((prefix / n).exists() for n in _ENVIRONMENT)
        shown |= {prefix} if own else {prefix / name for name in _PYTHON}
    return sorted(path for path in shown if path.exists())


def _holds_home(folder: Path) -> bool:
    homes = {Path.home()}
    with suppress(KeyError):
        homes.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return any(home.is_relative_to(folder) for home in resolved(homes))


def resolved(*groups: Iterable[Path]) -> list[Path]:
    """Return where the paths lead."""
    return [follow(path).end for group in groups for path in group]


def _named(settings: LauncherSettings, data: Path, group: str) -> list[Path]:
    """Return the folders that the agent may write as they are named: home, workspace, others."""
    return [*map(Path, settings.places(data, group, {})), *settings.write]


def _reach_data(
    settings: LauncherSettings, places: BoxFolders, data: Path, own: Path
) -> Iterator[str]:
    for path in [*places.writable, *places.read]:
        if path.is_relative_to(data) and not path.is_relative_to(own):
            yield f"{path} lies in pynchy's data folder, which no agent may see"
    for path in places.writable:
        if data.is_relative_to(path):
            yield f"{path} holds pynchy's data folder, so no agent may write there"
    for path in places.read:
        # bubblewrap shows such a folder without the data folder.
        if settings.kind == "docker" and data.is_relative_to(path):
            yield f"{path} holds pynchy's data folder, which no agent may see"


def _lead_elsewhere(ways: list[FollowedPath]) -> Iterator[str]:
    for way in _strays(ways):
        yield (
            f"{way.named} leads to {way.end} by a link in a folder where the agent "
            f"may write: remove the link, or name another folder"
        )


def _were_led_elsewhere(ways: list[FollowedPath], others: list[Path]) -> Iterator[str]:
    for way in ways:
        if way.through(others) and not any(way.end.is_relative_to(place) for place in others):
            yield (
                f"{way.named} leads to {way.end} by a link in {way.through(others)}, where agents "
                f"of another group may write: remove the link, or name another folder"
            )


def _strays(ways: list[FollowedPath]) -> list[FollowedPath]:
    """Return the places that are looked up in another one, and do not lie in any."""
    found = []
    for way in ways:
        others = [other.end for other in ways if other.end != way.end]
        if way.through(others) and not any(_is_below(way.end, other) for other in others):
            found.append(way)
    return found


def _can_be_replaced(
    settings: LauncherSettings, shown: list[FollowedPath], writable: tuple[Path, ...]
) -> Iterator[str]:
    own = [*pynchys_own(), PYNCHY, Path(sys.executable)]
    for way in [*shown, *map(follow, own)]:
        if place := way.through(writable):
            yield f"{way.named} lies in {place}, where the agent may write"
    for path in settings.hide:
        if place := leads_through(path, writable):
            why = f"it lies in {place}, where the agent may write; move it out of there"
            yield f"{path} cannot be hidden: {why}"


def _missing(settings: LauncherSettings, places: BoxFolders) -> Iterator[str]:
    for path in [*places.read, *places.write, *resolved(settings.hide)]:
        if not path.exists():
            yield f"{path} is not there"


def _is_below(path: Path, other: Path) -> bool:
    return path != other and path.is_relative_to(other)
