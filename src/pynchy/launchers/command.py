"""The first launcher: a configured command for each group, never through a shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pynchy.config import LauncherSettings
from pynchy.launchers.base import Launch
from pynchy.launchers.jobs import JobLauncher, Program
from pynchy.model import GroupName

# Stands for what cannot be said.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


class CommandLauncher(JobLauncher):
    """Runs the group's command for each launch. It may put something into the background."""

    may_leave = True

    def __init__(
        self, data: Path, group: GroupName, settings: LauncherSettings, environ: Mapping[str, str]
    ) -> None:
        super().__init__(data, group, settings)
        self._settings = settings
        self._environ = environ

    def program(self, launch: Launch) -> Program:
        """See JobLauncher."""
        fill = {
            "initial": str(launch.initial),
            "session_id": launch.session_id,
            "request_id": launch.request_id or "",
            "group": launch.group,
            "ipc_dir": str(launch.ipc_dir),
        }
        cwd = self._settings.cwd
        env = {**self._environ, **self._settings.env, **runner_environ(launch)}
        return Program(self._settings.argv(fill), str(cwd) if cwd else None, env)


def runner_environ(launch: Launch) -> dict[str, str]:
    """Return what every runner finds in its environment."""
    known = {"PYNCHY_AGENT": launch.agent, "PYNCHY_TASK": launch.task}
    return {
        "PYNCHY_IPC_DIR": str(launch.ipc_dir),
        "PYNCHY_SESSION_ID": launch.session_id,
        # An agent's own words, and a variable cannot hold everything that JSON can.
        **{name: value.replace("\0", _REPLACED) for name, value in known.items() if value},
    }
