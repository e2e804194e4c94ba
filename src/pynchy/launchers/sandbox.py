"""What every box has in common: what the agent in it sees, may write, and is told.

An agent in a box has its mailbox (`tasks/` to write, `responses/` and `input/` to read), a home and
a workspace that stay from one runner to the next, and what the settings name besides. It is given
no variable of the host's but a few harmless ones and those that `pass_env` names. What we run for
it outside of the box, or in the box before it, heeds nothing that the agent can write.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import agent_runner
from pynchy.config import LauncherSettings, split_address
from pynchy.errors import DeliveryFailed
from pynchy.launchers import sandbox_monitor
from pynchy.launchers.base import Launch
from pynchy.launchers.command import runner_environ
from pynchy.launchers.jobs import JobLauncher, Program
from pynchy.model import GroupName

# Where the package is that runs.
PYNCHY = Path(__file__).resolve().parents[2]

# The agent's own: its folders in the mailbox, and whether it may write there.
MAILBOX = {"tasks": True, "responses": False, "input": False}


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


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder of the host as the agent sees it."""

    source: Path
    inside: str
    writable: bool


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one runner is given. All else of the machine it cannot see or cannot change."""

    launch: Launch
    binds: list[Bind]
    home: str
    cwd: str
    command: list[str]
    env: dict[str, str]


class SandboxLauncher(JobLauncher):
    """Runs `agent_runner` in a box for each launch. `uid` is the agent's user, if not our own.

    A box that `can_cover` shows a folder without a file that lies in it.
    """

    can_cover = False

    def __init__(
        self,
        data: Path,
        group: GroupName,
        settings: LauncherSettings,
        environ: Mapping[str, str],
        uid: int | None = None,
    ) -> None:
        super().__init__(data, group, settings)
        self._settings = settings
        self._environ = environ
        self._data = data.resolve()
        self._group = group
        self._uid = None if uid == os.getuid() else uid
        # Who may write it could give itself another launcher; who may read it knows the others'.
        self.settings_file: Path | None = None

    @abstractmethod
    def inside(self, path: Path) -> str:
        """Return where the agent finds that path of the host's."""

    @abstractmethod
    def box(self, box: Sandbox) -> Program:
        """Return what makes the box and runs the command in it."""

    @abstractmethod
    def runner(self) -> str:
        """Return the runner's program as it is called in the box."""

    def harmless(self) -> dict[str, str]:
        """Return what the agent may know of the host's environment."""
        return {}

    def environment(self) -> dict[str, str]:
        """Return what the agent is given besides what every runner is told."""
        return self.harmless() | self._passed() | self._settings.env

    def program(self, launch: Launch) -> Program:
        """See JobLauncher."""
        settings = self._settings
        home, workspace, cwd = self._places(launch)
        check_binds(settings, self._data, self._group)
        self._check_settings_file()
        for folder in (home, workspace):
            self._make(folder)
        agent = launch.chosen or settings.agent or ""
        mailbox = launch.ipc_dir.resolve()
        launch = replace(launch, ipc_dir=mailbox)
        env = self.environment()
        env |= {
            "PYNCHY_AGENT": agent,
            **runner_environ(replace(launch, ipc_dir=Path(self.inside(mailbox)))),
        }
        initial = mailbox / launch.initial.resolve().relative_to(mailbox)
        command = [self.runner(), "--initial", self.inside(initial), "--agent", agent]
        command += ["--session", launch.session_id, *settings.args]
        binds = list(self._binds(mailbox, home, workspace))
        env["HOME"] = self.inside(home)
        made = self.box(Sandbox(launch, binds, env["HOME"], self.inside(cwd), command, env))
        return replace(made, folders=tuple(str(bind.source) for bind in binds if bind.writable))

    def first(self, boxed: list[str], command: list[str], *options: str) -> list[str]:
        """Return the command with what comes before it in the box, which may lead out of it."""
        if self._settings.proxy:
            _, port = split_address(self._settings.proxy)
            options = (*options, "--port", str(port))
        return [*boxed, *options, "--", *command]

    def monitored(self, argv: list[str], *options: str) -> list[str]:
        """Return what runs the box with its monitor before it."""
        if self._settings.proxy:
            host, port = split_address(self._settings.proxy)
            options = (*options, "--proxy", host, str(port))
        return [*run_alone(sandbox_monitor.__name__), *options, "--", *argv]

    def _places(self, launch: Launch) -> tuple[Path, Path, Path]:
        """Return home, workspace and working folder. Raise DeliveryFailed if they do not fit."""
        own_home, own_workspace = self._settings.places(self._data, self._group, self._environ)
        if launch.home and Path(launch.home).resolve() != Path(own_home).resolve():
            raise DeliveryFailed(
                f"this session began with the home {launch.home}, which is not that of its box; "
                f'to resume it, set home = "{launch.home}"'
            )
        home, workspace = Path(own_home).resolve(), Path(own_workspace).resolve()
        cwd = Path(launch.cwd).resolve() if launch.cwd else workspace
        shown = [home, workspace, *resolved(self._settings.read, self._settings.write)]
        if not any(cwd.is_relative_to(path) for path in shown):
            raise DeliveryFailed(
                f"this session began in {launch.cwd}, which its box does not show; "
                f'to resume it, set workspace = "{launch.cwd}"'
            )
        return home, workspace, cwd

    def _check_settings_file(self) -> None:
        own, places = self.settings_file, self._settings.places(self._data, self._group, {})
        if own is None:
            return
        given = resolved(tuple(map(Path, places)), self._settings.write)
        if not self.can_cover:
            given += resolved(self._settings.read)
        for path in given:
            if own.resolve().is_relative_to(path):
                raise DeliveryFailed(f"pynchy's settings file {own} lies in {path}: move it")

    def _make(self, folder: Path) -> None:
        """Create the home or the workspace if it is not there, for the agent alone."""
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
            if self._uid is not None:
                os.chown(folder, self._uid, self._uid)

    def _binds(self, mailbox: Path, home: Path, workspace: Path) -> Iterator[Bind]:
        for path in resolved(self._settings.read):
            yield Bind(path, self.inside(path), writable=False)
        for path in dict.fromkeys([home, workspace, *resolved(self._settings.write)]):
            yield Bind(path, self.inside(path), writable=True)
        for name, writable in MAILBOX.items():
            yield Bind(mailbox / name, self.inside(mailbox / name), writable)

    def _passed(self) -> dict[str, str]:
        names = self._settings.pass_env
        return {name: self._environ[name] for name in names if name in self._environ}


def run_alone(module: str) -> list[str]:
    """Return what runs a module of ours, whatever lies in the working folder or in a home."""
    roots = [str(Path(agent_runner.__file__).resolve().parents[1]), str(PYNCHY)]
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [sys.executable, "-I", "-S", "-c", f"import runpy, sys; sys.path[:0] = {roots}; {run}"]
