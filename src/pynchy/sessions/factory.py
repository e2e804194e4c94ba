"""Make the launcher that a group's settings ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pynchy.config import GroupSettings
from pynchy.errors import ConfigError
from pynchy.model import GroupName
from pynchy.sessions.base import Launcher
from pynchy.sessions.bubblewrap import BubblewrapLauncher
from pynchy.sessions.command import CommandLauncher
from pynchy.sessions.docker import DockerLauncher
from pynchy.sessions.process import ProcessLauncher


def make_launcher(
    data: Path, name: str, group: GroupSettings, environ: Mapping[str, str]
) -> Launcher:
    """Return the group's launcher. Raise ConfigError if it has none."""
    settings = group.launcher
    if settings is None:
        raise ConfigError(f"group {name} has no launcher")
    match settings.kind:
        case "command":
            return CommandLauncher(data, GroupName(name), settings, environ)
        case "process":
            return ProcessLauncher(data, GroupName(name), settings, environ)
        case "bubblewrap":
            return BubblewrapLauncher(data, GroupName(name), settings, environ, group.agent_uid)
        case "docker":
            return DockerLauncher(data, GroupName(name), settings, environ, group.agent_uid)
