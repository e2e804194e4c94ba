"""Each group: its channels, who may answer, its launcher, and how isolated its agent is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_runner import cores
from pynchy.cli.doctor.boxes import check_box
from pynchy.cli.doctor.finding import Finding, fine, problem, warning
from pynchy.cli.mailbox import group_names
from pynchy.config import LOCAL, GroupSettings, LauncherSettings, Settings
from pynchy.data_dir import DataFolder
from pynchy.launchers.isolation import isolation_of
from pynchy.launchers.process import find_runner

# Where holding the data folder's token is the permission, there is nobody to list.
_TOKEN_CHANNELS = frozenset({LOCAL, "web"})


def check_groups(
    settings: Settings, data: DataFolder, problems: tuple[str, ...] | None
) -> Iterator[Finding]:
    """Look at every group that has a table or a mailbox."""
    for name in sorted({*settings.groups, *group_names(data)}):
        group = settings.group(name)
        yield from _check_channels(name, group, problems)
        yield from _check_people(name, group)
        yield from _check_launcher(name, group.launcher, os.environ)
        if group.launcher is not None and group.launcher.is_box:
            yield from check_box(name, group, data)
        yield _isolation(name, group)


def _check_channels(
    name: str, group: GroupSettings, problems: tuple[str, ...] | None
) -> Iterator[Finding]:
    down = {
        channel: text
        for channel in group.channels
        for text in problems or ()
        if text.startswith(f"{channel}: ")
    }
    for text in down.values():
        fix = "the other channels are used meanwhile"
        if len(down) == len(group.channels):
            yield problem(f"group {name}", f"no channel is up: {text}", "mend it, or add local")
        else:
            yield warning(f"group {name}", f"a channel is down: {text}", fix)
    if not down:
        known = "" if problems is not None else " (no host, so not known to be up)"
        yield fine(f"group {name}", f"asks in {', '.join(group.channels)}{known}")


def _check_people(name: str, group: GroupSettings) -> Iterator[Finding]:
    chats = [channel for channel in group.channels if channel not in _TOKEN_CHANNELS]
    closed = [channel for channel in chats if not group.allowed_users.get(channel)]
    for channel in closed:
        detail = f"nobody may answer in {channel}: its allowed_users list is empty"
        fix = f'in [groups.{name}]: allowed_users = {{ {channel} = ["USER-ID"] }}'
        if closed == list(group.channels):
            yield problem(f"group {name}", detail, fix)
        else:
            yield warning(f"group {name}", detail, fix)


def _check_launcher(
    name: str, launcher: LauncherSettings | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    check = f"group {name}"
    if launcher is None:
        yield fine(check, "no launcher: an answer after its agent has ended is kept, not delivered")
        return
    if launcher.cwd is not None and not Path(launcher.cwd).is_dir():
        fix = f"make the folder, or change cwd in [groups.{name}.launcher]"
        yield problem(check, f"the launcher's folder {launcher.cwd} is not there", fix)
    if launcher.kind == "docker":
        yield fine(check, f"started and resumed as {launcher.agent} in a container")
        return
    if launcher.kind != "command":
        yield from _check_agent(name, launcher, environ)
        return
    program = launcher.command[0]
    found = _which(program, launcher, environ)
    if found is None:
        fix = f"install it, or change command in [groups.{name}.launcher]"
        yield problem(check, f"the launcher {program} is not an executable on the PATH", fix)
    else:
        yield fine(check, f"started and resumed by {found}")


def _check_agent(
    name: str, launcher: LauncherSettings, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Say whether the agent program and what runs it are there, and how it would be resumed."""
    check, table = f"group {name}", f"[groups.{name}.launcher]"
    agent = launcher.agent or ""
    runner, program = find_runner(launcher, environ), _which(agent, launcher, environ)
    if runner is None:
        fix = f"install pynchy again, which brings agent_runner, or set runner in {table}"
        yield problem(check, f"the runner {launcher.runner} is not an executable on the PATH", fix)
    if program is None:
        fix = f"install it, or add its folder to PATH in {table}: env = {{ PATH = … }}"
        yield problem(check, f"its agent program {agent} is not on the PATH", fix)
    if runner and program:
        yield fine(check, f"started and resumed as {agent} ({program}) by {runner}")


def _which(program: str, launcher: LauncherSettings, environ: Mapping[str, str]) -> str | None:
    if "/" in program:
        program = str(Path(launcher.cwd or "") / program)
    return shutil.which(program, path=launcher.env.get("PATH", environ.get("PATH")))


def _isolation(name: str, group: GroupSettings) -> Finding:
    found, launcher = isolation_of(group), group.launcher
    # What a person starts in a terminal of their own is theirs to judge.
    if found.is_walled or launcher is None:
        return fine(f"group {name}", f"isolation: {found.words}")
    box, table = 'kind = "bubblewrap"', f"[groups.{name}.launcher]"
    fix = f"a box for it: {box} in {table} (docs/sandboxes.md)"
    if launcher.kind == "command":
        fix = (
            "begin its command with a sandbox of yours, such as docker or bwrap; or, if it runs "
            f"{', '.join(cores.names())}: {box} and agent in place of command in {table} "
            "(docs/sandboxes.md)"
        )
    return warning(f"group {name}", f"isolation: {found.words}", fix)
