"""Make the launcher that a group's settings ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pynchy.config import GroupSettings
from pynchy.errors import ConfigError
from pynchy.launchers.base import Launcher
from pynchy.launchers.bubblewrap import BubblewrapLauncher
from pynchy.launchers.command import CommandLauncher
from pynchy.launchers.docker import DockerLauncher
from pynchy.launchers.process import ProcessLauncher
from pynchy.launchers.sandbox import SandboxLauncher
from pynchy.model import GroupName


@dataclass(frozen=True, slots=True)
class LauncherContext:
    """Whose launcher it is, in which data folder, and what the host's settings were read from."""

    data: Path
    group: GroupName
    settings_file: Path | None = None


def make_launcher(
    place: LauncherContext, group: GroupSettings, environ: Mapping[str, str]
) -> Launcher:
    """Return the group's launcher. Raise ConfigError if it has none."""
    settings = group.launcher
    if settings is None:
        raise ConfigError(f"group {place.group} has no launcher")
    match settings.kind:
        case "command":
            return CommandLauncher(place.data, place.group, settings, environ)
        case "process":
            return ProcessLauncher(place.data, place.group, settings, environ)
        case "bubblewrap":
            boxed: type[SandboxLauncher] = BubblewrapLauncher
        case "docker":
            boxed = DockerLauncher
    launcher = boxed(place.data, place.group, settings, environ, group.agent_uid)
    launcher.settings_file = place.settings_file
    return launcher
