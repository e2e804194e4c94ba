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
from dataclasses import dataclass, replace
from pathlib import Path

import agent_runner
from pynchy.config import LauncherSettings, split_address
from pynchy.errors import DeliveryFailed
from pynchy.launchers import sandbox_monitor
from pynchy.launchers.base import Launch
from pynchy.launchers.box_folders import (
    PYNCHY,
    BoxFolders,
    check_binds,
    find_program,
    follow,
    outermost,
    safe_search,
    writable_by_agents,
)
from pynchy.launchers.command import runner_environ
from pynchy.launchers.jobs import JobLauncher, Program
from pynchy.model import GroupName
from pynchy.safe_folder import Folder

# The agent's own: its folders in the mailbox, and whether it may write there.
MAILBOX = {"tasks": True, "responses": False, "input": False}


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
        # Those of all groups: what an agent of any of them may write is never run outside.
        self.launchers: Mapping[str, LauncherSettings] = {}

    @abstractmethod
    def inside(self, path: Path, places: BoxFolders) -> str:
        """Return where the agent in a box with these places finds that path of the host's."""

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
        places = check_binds(self._every(), self._data, self._group)
        self._check_settings_file(places)
        cwd = self._check_session(launch, places)
        of_agents = outermost([*places.given, *self._written()])
        for folder in sorted((places.home, places.workspace)):
            self._make(folder, of_agents)
        agent = launch.chosen or settings.agent or ""
        mailbox = launch.ipc_dir.resolve()
        launch = replace(launch, ipc_dir=mailbox)
        env = self.environment()
        env |= {
            "PYNCHY_AGENT": agent,
            **runner_environ(replace(launch, ipc_dir=Path(self.inside(mailbox, places)))),
        }
        initial = mailbox / launch.initial.resolve().relative_to(mailbox)
        command = [self.runner(), "--initial", self.inside(initial, places), "--agent", agent]
        command += ["--session", launch.session_id, *settings.runner_args(agent)]
        binds = list(self._binds(mailbox, places))
        env["HOME"] = self.inside(places.home, places)
        box = Sandbox(launch, binds, env["HOME"], self.inside(cwd, places), command, env)
        folders = tuple(str(bind.source) for bind in binds if bind.writable)
        return replace(self.box(box), folders=folders)

    def tool(self, name: str) -> str:
        """Return where the program is that makes boxes. Raise DeliveryFailed if it is nowhere."""
        return find_program(name, self._environ.get("PATH"), self._written())

    def tool_path(self, name: str) -> str:
        """Return the PATH on which that program finds others."""
        return safe_search(name, self._environ.get("PATH"), self._written())

    def _written(self) -> list[Path]:
        return writable_by_agents(self._every(), self._data)

    def _every(self) -> dict[str, LauncherSettings]:
        return {**self.launchers, self._group: self._settings}

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

    def _check_session(self, launch: Launch, places: BoxFolders) -> Path:
        """Return the working folder. Raise DeliveryFailed if the session began elsewhere."""
        named = self._settings.places(self._data, self._group, self._environ)
        checked = dict(zip(named, (places.home, places.workspace), strict=True))
        home, cwd = (
            checked.get(path) or follow(Path(path)).end for path in (launch.home, launch.cwd)
        )
        if launch.home and home != places.home:
            raise DeliveryFailed(
                f"this session began with the home {launch.home}, which is not that of its box; "
                f'to resume it, set home = "{launch.home}"'
            )
        if not launch.cwd:
            return places.workspace
        if not any(cwd.is_relative_to(path) for path in (*places.writable, *places.read)):
            raise DeliveryFailed(
                f"this session began in {launch.cwd}, which its box does not show; "
                f'to resume it, set workspace = "{launch.cwd}"'
            )
        return cwd

    def _check_settings_file(self, places: BoxFolders) -> None:
        if self.settings_file is None:
            return
        given = places.writable if self.can_cover else (*places.writable, *places.read)
        if place := follow(self.settings_file).through(given):
            raise DeliveryFailed(
                f"pynchy's settings file {self.settings_file} lies in {place}: move it"
            )

    def _make(self, folder: Path, of_agents: list[Path]) -> None:
        """Create the home or the workspace if it is not there, for the agent alone."""
        around = next((path for path in of_agents if path in folder.parents), None)
        if around is not None:
            self._make_below(around, folder)
        elif not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
            if self._uid is not None:
                os.chown(folder, self._uid, self._uid)

    def _make_below(self, around: Path, folder: Path) -> None:
        """Create it where an agent may have put anything: no link there leads us elsewhere."""
        below = Folder(around, *folder.relative_to(around).parts)
        try:
            if below.exists():
                return
            if self._uid is not None:
                # What we made could be another folder by the time that we give it away.
                raise DeliveryFailed(f"{folder} is not there: make it for user {self._uid}")
            below.make()
        except OSError as exc:
            why = f"{folder} cannot be made: {exc.strerror}"
            raise DeliveryFailed(f"{why}; remove what is in its place") from exc

    def _binds(self, mailbox: Path, places: BoxFolders) -> Iterator[Bind]:
        for path in places.read:
            yield Bind(path, self.inside(path, places), writable=False)
        for path in places.given:
            yield Bind(path, self.inside(path, places), writable=True)
        for name, writable in MAILBOX.items():
            yield Bind(mailbox / name, self.inside(mailbox / name, places), writable)

    def _passed(self) -> dict[str, str]:
        names = self._settings.pass_env
        return {name: self._environ[name] for name in names if name in self._environ}


def run_alone(module: str) -> list[str]:
    """Return what runs a module of ours, whatever lies in the working folder or in a home."""
    roots = [str(Path(agent_runner.__file__).resolve().parents[1]), str(PYNCHY)]
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [sys.executable, "-I", "-S", "-c", f"import runpy, sys; sys.path[:0] = {roots}; {run}"]
