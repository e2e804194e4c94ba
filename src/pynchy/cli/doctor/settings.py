"""The settings, and each group: its channels, people, launcher, and how isolated its agent is."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from agent_runner import cores
from pynchy.channels.loading import load_settings
from pynchy.cli.mailbox import group_names
from pynchy.config import (
    ACP,
    DESKTOP,
    LOCAL,
    TOKEN_CHANNELS,
    WEB,
    GroupSettings,
    HttpSettings,
    LauncherSettings,
    Settings,
    is_loopback,
)
from pynchy.data_dir import DataFolder, SettingsSource, find_settings
from pynchy.errors import ConfigError, DeliveryFailed
from pynchy.findings import Finding, fine, problem, warning
from pynchy.launchers.box_folders import (
    check_binds,
    find_program,
    resolved,
    safe_search,
    shared_with_others,
    writable_by_agents,
)
from pynchy.launchers.bubblewrap import PROGRAM, TRIAL, user_namespace
from pynchy.launchers.kinds import isolation_of
from pynchy.launchers.process import agent_program, find_runner
from pynchy.misspelling import similar_group
from pynchy.permissions.origins import misspelt_tools

_SECONDS = 20.0
# A folder to read may be a whole disk.
_MAX_ENTRIES = 50_000
_MAX_PIPES = 3

_INSTALL = {PROGRAM: "apt-get install bubblewrap"}
_CHECK = "settings"
_RESTART = "restart pynchy serve"
_MAY_ALWAYS = {
    DESKTOP: "whoever sits at the desktop may always approve",
    LOCAL: "who holds the token may always approve",
    WEB: "who is signed in may always approve",
}


def check_box(name: str, settings: Settings, data: DataFolder) -> Iterator[Finding]:
    """Look at the box of a group that has one."""
    group = settings.group(name)
    launcher = group.launcher
    if launcher is None:
        return
    check, table = f"group {name}", f"[groups.{name}.launcher]"
    launchers = settings.launchers()
    try:
        check_binds(launchers, data.path, name)
    except DeliveryFailed as exc:
        yield problem(check, f"its box cannot be made: {exc}", f"change the folders in {table}")
    for path, other, place in sorted(shared_with_others(launchers, data.path, name)):
        detail = (
            f"{path} lies in {place}, where the agent of group {other} may write: it can put a "
            "link to any folder of yours in its place, for this box to have"
        )
        yield warning(check, detail, f"keep the two apart: name other folders in {table}")
    if pipes := list(islice(_pipes(resolved(launcher.read)), _MAX_PIPES)):
        detail = f"its box can write a named pipe in a folder of read: {', '.join(map(str, pipes))}"
        yield warning(check, detail, f"keep it elsewhere, or name other folders in {table}")
    name = PROGRAM if launcher.kind == "bubblewrap" else launcher.engine
    writable = writable_by_agents(launchers, data.path)
    try:
        program = find_program(name, os.environ.get("PATH"), writable)
    except DeliveryFailed as exc:
        yield problem(check, str(exc), _INSTALL.get(name, f"install {name}"))
        return
    # They start others in turn.
    search = safe_search(name, os.environ.get("PATH"), writable)
    if launcher.kind == "bubblewrap":
        search = safe_search(TRIAL[-1], search, writable)
        yield _bubblewrap(check, program, group.agent_uid, search)
    else:
        yield from _engine(check, program, launcher, search)


def _pipes(shown: Iterable[Path]) -> Iterator[Path]:
    """Yield the named pipes: that a folder can only be read keeps nobody from writing to them."""
    walks = (os.walk(path) for path in shown)
    entries = (Path(folder, name) for walk in walks for folder, _, names in walk for name in names)
    for entry in chain(shown, islice(entries, _MAX_ENTRIES)):
        with suppress(OSError):
            if stat.S_ISFIFO(entry.lstat().st_mode):
                yield entry


def _bubblewrap(check: str, program: str, uid: int | None, search: str) -> Finding:
    if uid not in {None, os.getuid()} and os.getuid():
        fix = "remove agent_uid, or run the host as root"
        return problem(check, f"only root can start its agent as user {uid}", fix)
    if why := _failure([program, *user_namespace(program), *TRIAL], search):
        fix = "allow user namespaces (kernel.unprivileged_userns_clone, AppArmor), or update bwrap"
        return problem(check, f"bwrap cannot make a box here: {why}", fix)
    return fine(check, "bwrap makes boxes here")


def _engine(check: str, program: str, launcher: LauncherSettings, search: str) -> Iterator[Finding]:
    engine, image = launcher.engine, launcher.image
    if why := _failure([program, "version"], search):
        yield problem(check, f"{engine} cannot be used: {why}", "start its engine")
    elif _failure([program, "image", "inspect", image], search):
        fix = f"{engine} build -t {image} -f container/Dockerfile container"
        yield problem(check, f"{engine} has no image {image}", fix)
    else:
        yield fine(check, f"{engine} runs, and has the image {image}")


def _failure(command: list[str], search: str) -> str | None:
    """Return the last words of a command that fails with that PATH; None if it does not."""
    try:
        done = subprocess.run(  # noqa: S603 - programs that the settings name
            command,
            env={**os.environ, "PATH": search},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as exc:
        return str(exc)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else (lines or [f"exit code {done.returncode}"])[-1]


def check_groups(
    settings: Settings, data: DataFolder, problems: tuple[str, ...] | None
) -> Iterator[Finding]:
    """Look at every group that has a table or a mailbox."""
    misspelt = list(misspelt_tools(settings))
    for name in sorted({*settings.groups, *group_names(data)}):
        group = settings.group(name)
        for _, words in [found for found in misspelt if found[0] == name]:
            fix = f"correct the name, if it is wrong, and {_RESTART}"
            yield warning(f"rules of {name}", words, fix)
        if near := similar_group(name, settings.groups):
            detail = f"it is not in the settings; did you mean {near}?"
            fix = f"correct --group where its agent is started, then: pynchy groups remove {name}"
            yield warning(f"group {name}", detail, fix)
        yield from _check_channels(name, group, problems)
        yield from check_people(name, group)
        yield from _check_launcher(name, group.launcher, os.environ)
        if group.launcher is not None and group.launcher.is_box:
            yield from check_box(name, settings, data)
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
            yield problem(
                f"group {name}", f"no channel is up: {text}", "fix it, or add the channel local"
            )
        else:
            yield warning(f"group {name}", f"a channel is down: {text}", fix)
    if not down:
        known = "" if problems is not None else " (no host, so not known to be up)"
        yield fine(f"group {name}", f"asks in {', '.join(group.channels)}{known}")


def check_exposure(http: HttpSettings) -> Iterator[Finding]:
    """Tell of an address under which others than this machine reach the host."""
    if is_loopback(http.host):
        return
    detail = (
        f'http.host = "{http.host}": others in the network reach this host, and what is sent to it'
        " is not encrypted; whoever listens can read the token and the sign-in, and answer with it"
    )
    fix = (
        'set http.host = "127.0.0.1", with a tunnel or an HTTPS proxy in front of it'
        " (pynchy docs inbox); or keep it for a network in which you trust everybody"
    )
    yield warning("http", detail, fix)


def check_people(name: str, group: GroupSettings) -> Iterator[Finding]:
    """Tell of chats in which nobody may answer."""
    chats = [channel for channel in group.channels if channel not in TOKEN_CHANNELS]
    closed = [channel for channel in chats if not group.allowed_users.get(channel)]
    for channel in closed:
        detail = f"nobody may answer in {channel}: its allowed_users list is empty"
        fix = f'in [groups.{name}]: allowed_users = {{ {channel} = ["USER-ID"] }}'
        if closed == list(group.channels):
            yield problem(f"group {name}", detail, fix)
        else:
            yield warning(f"group {name}", detail, fix)
    yield from _check_approvers(name, group, [chat for chat in chats if chat not in closed])


def _check_approvers(name: str, group: GroupSettings, chats: Sequence[str]) -> Iterator[Finding]:
    for channel in chats:
        if group.approvers and not group.approvers.get(channel):
            detail = f"nobody may approve or allow in {channel}: it has no approvers"
            fix = f'in [groups.{name}]: approvers = {{ {channel} = ["USER-ID"] }}'
            yield warning(f"group {name}", detail, fix)
    for channel in sorted(TOKEN_CHANNELS & group.approvers.keys()):
        detail = f"approvers.{channel} has no effect: {_MAY_ALWAYS[channel]}"
        yield warning(f"group {name}", detail, f"remove approvers.{channel} from [groups.{name}]")


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
    agent = agent_program(launcher.agent or "", launcher)
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
    fix = f"a box for it: {box} in {table} (pynchy docs sandboxes)"
    if launcher.kind == "command":
        known = ", ".join(name for name in cores.names() if name != ACP)
        fix = (
            "begin its command with a sandbox of yours, such as docker or bwrap; or, if it runs "
            f"{known}: {box} and agent in place of command in {table} "
            "(pynchy docs sandboxes)"
        )
    return warning(f"group {name}", f"isolation: {found.words}", fix)


def look_at_settings(
    explicit: Path | None, environ: Mapping[str, str], data: DataFolder
) -> tuple[Settings | None, list[Finding]]:
    """Return the settings, None where they cannot be used, and what to say of them.

    They are read from the file that was named, or else from the one that the host has read.
    """
    origin = data.origin()
    is_named = explicit is not None or bool(environ.get("PYNCHY_CONFIG"))
    try:
        of_host = origin is not None and not is_named
        path = origin.path if of_host and origin else find_settings(explicit, environ)
        if not (of_host or is_named):
            data.check_found(path)
    except ConfigError as exc:
        return None, [_unusable(exc)]
    settings, said = _read(path)
    if origin is not None:
        return settings, [said, *_compare(origin, path, environ)]
    return settings, [said, *([_untold()] if data.is_locked() else [])]


def _read(path: Path | None) -> tuple[Settings | None, Finding]:
    try:
        settings = load_settings(path)
    except ConfigError as exc:
        return None, _unusable(exc)
    if path is None:
        return settings, fine(_CHECK, "no file, so the defaults count (pynchy init writes one)")
    return settings, fine(_CHECK, f"{path.absolute()} is valid")


def _unusable(error: ConfigError) -> Finding:
    fix = "correct the file, or name another with --config; pynchy init writes a new one"
    return problem(_CHECK, str(error), fix)


def _compare(
    origin: SettingsSource, path: Path | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Say whether what was read is what the host goes by."""
    runs = f"the host runs with {origin.path or 'no settings file'}"
    if not origin.is_file(path):
        option = f"--config {shlex.quote(str(path))}"
        fix = f"to see what runs, name no file; to change that, {_RESTART} {option}"
        yield warning(_CHECK, f"{runs}, not with this one: it may treat its groups otherwise", fix)
    elif origin.has_changed():
        now = "it has changed since, and what follows is as it is now"
        yield warning(_CHECK, f"{runs} as it was at its start; {now}", _RESTART)
    elif path is None and (found := find_settings(None, environ)):
        yield warning(_CHECK, f"{runs}, though there is {found.absolute()} now", _RESTART)
    else:
        yield fine(_CHECK, runs)


def _untold() -> Finding:
    detail = "a host runs that does not say which settings it has read: they may be others"
    return warning(_CHECK, detail, _RESTART)
