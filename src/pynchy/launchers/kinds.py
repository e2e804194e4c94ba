"""The kinds of launchers: make the one that a group's settings ask for, say how it isolates.

Nothing is claimed that is not so: who runs as the host's own user without a box can answer itself.
"""

from __future__ import annotations

import grp
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pynchy.config import GroupSettings, LauncherSettings
from pynchy.errors import ConfigError
from pynchy.launchers.base import Launcher
from pynchy.launchers.bubblewrap import BubblewrapLauncher
from pynchy.launchers.command import CommandLauncher
from pynchy.launchers.docker import DockerLauncher
from pynchy.launchers.process import ProcessLauncher
from pynchy.launchers.sandbox import SandboxLauncher
from pynchy.model import GroupName

# Programs that put what they start behind a wall of its own.
_SANDBOXES = {"apptainer", "bwrap", "docker", "firejail", "kubectl", "nerdctl", "nsjail", "podman"}
UNKNOWN = "not known: pynchy has not started it"
LAUNCHER_GONE = "not known: pynchy started it by a launcher that its group no longer has"
_MIB = 1024**2
_NETWORKS = {
    "none": "no network",
    "bridge": "the network of its engine",
    "host": "the whole network of this machine, its own ports too",
}


@dataclass(frozen=True, slots=True)
class LauncherContext:
    """Whose launcher it is, in which data folder, and what the host's settings were read from.

    `launchers` are those of all groups.
    """

    data: Path
    group: GroupName
    settings_file: Path | None = None
    launchers: Mapping[str, LauncherSettings] = field(default_factory=dict)


def make_launcher(
    context: LauncherContext, group: GroupSettings, environ: Mapping[str, str]
) -> Launcher:
    """Return the group's launcher. Raise ConfigError if it has none."""
    settings = group.launcher
    if settings is None:
        raise ConfigError(f"group {context.group} has no launcher")
    match settings.kind:
        case "command":
            return CommandLauncher(context.data, context.group, settings, environ)
        case "process":
            return ProcessLauncher(context.data, context.group, settings, environ)
        case "bubblewrap":
            boxed: type[SandboxLauncher] = BubblewrapLauncher
        case "docker":
            boxed = DockerLauncher
    launcher = boxed(context.data, context.group, settings, environ, group.agent_uid)
    launcher.settings_file = context.settings_file
    launcher.launchers = context.launchers
    return launcher


@dataclass(frozen=True, slots=True)
class Isolation:
    """How it is, and whether the agent is kept from answering itself as far as pynchy can tell."""

    words: str
    is_walled: bool


def isolation_of(group: GroupSettings) -> Isolation:
    """Return how isolated the group's agent is; without a launcher, somebody else starts it."""
    launcher = group.launcher
    if launcher is not None and launcher.is_box:
        return Isolation(_box(launcher, group.agent_uid), is_walled=True)
    if group.agent_uid not in {None, os.getuid(), 0}:
        words = f"it runs as user {group.agent_uid}; mount responses and input read-only"
        return Isolation(words, is_walled=True)
    if launcher is None:
        words = "pynchy does not start this agent; one that runs as your user could answer itself"
        return Isolation(words, is_walled=False)
    program = Path(launcher.command[0]).name if launcher.command else ""
    if program in _SANDBOXES:
        return Isolation(f"started in a sandbox ({program}) by a command of yours", is_walled=True)
    return Isolation("none: it runs as you, and could answer itself", is_walled=False)


def _box(launcher: LauncherSettings, uid: int | None) -> str:
    if launcher.kind == "docker":
        where = f"in a container ({launcher.engine}, {launcher.image}): sees"
    else:
        where = "in a box (bubblewrap): sees this machine's programs,"
    network = _NETWORKS.get(launcher.network, f"no network but {launcher.proxy}")
    parts = [f"{where} its mailbox, its home and its workspace{_besides(launcher)}"]
    parts.append(network)
    if launcher.options:
        # They come last on the engine's command line, and can take any wall down. Their values
        # may be secret.
        words = [word.partition("=")[0] for word in launcher.options if word.startswith("-")]
        parts.append(f"with options of yours: {' '.join(words)}")
    parts.append(
        f"at most {launcher.memory // _MIB} MiB and {launcher.pids} processes and threads, and "
        f"{launcher.disk // _MIB} MiB more on the disk than before"
    )
    if launcher.kind == "docker" or launcher.has_unix_sockets:
        parts.append("reaches sockets that lie in folders that it sees")
    if launcher.user_namespaces:
        parts.append("may make user namespaces, and use up those of other boxes")
    if launcher.kind == "bubblewrap" and uid is None and (names := _groups()):
        parts.append(f"keeps your groups for files that it sees ({', '.join(names)})")
    if not (os.getuid() if uid is None else uid):
        parts.append("it is root without root's powers: set agent_uid to make it somebody else")
    return "; ".join(parts)


def _groups() -> list[str]:
    """Return the groups that a box cannot leave: only root may, for whoever it starts."""
    if os.getuid() == 0:
        return []
    return [_group_name(number) for number in sorted({*os.getgroups()} - {os.getgid()})]


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _besides(launcher: LauncherSettings) -> str:
    read, write = ", ".join(map(str, launcher.read)), ", ".join(map(str, launcher.write))
    return (f", reads {read}" if read else "") + (f", writes {write}" if write else "")
