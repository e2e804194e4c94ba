"""`pynchy doctor`: one line and one fix for each thing that is looked at, this machine first.

Here is whether pynchy can work at all: Python, the data folder, the running host, disk, inotify,
the clock. What else is looked at has modules of its own.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from pynchy.channels.base import ChannelContext
from pynchy.channels.loading import examine_channels
from pynchy.cli.doctor.connections import check_connections
from pynchy.cli.doctor.programs import check_sources
from pynchy.cli.doctor.settings import (
    check_exposure,
    check_groups,
    look_at_settings,
)
from pynchy.cli.events import newest_event
from pynchy.cli.options import data_dir_option, json_option, shared_path
from pynchy.cli.output import show_findings, show_json
from pynchy.cli.text import duration, read_moment
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_FAILED, HostError, NoHost, PynchyError
from pynchy.findings import Finding, Status, fine, problem, warning
from pynchy.launchers.box_folders import writable_by_agents

OLDEST_PYTHON = (3, 11)
_FULL_BYTES = 64 * 1024**2
_TIGHT_BYTES = 1024**3
_FEW_FILES = 1_000
_MIB = 1024**2
_GIB = 1024**3
_TIGHT_SHARE = 0.9
_BACKWARDS = timedelta(seconds=60)
_FIRST_YEAR = 2026
_OTHERS = 0o077
_TIMEOUT_SECONDS = 5.0
_POLL_SECONDS = 0.05


@click.command("doctor", short_help="Find what is wrong, and say how to fix it.")
# Not the shared option: that one gives up where the file is missing, and here it is a finding.
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The settings file.  [env: PYNCHY_CONFIG]",
)
@click.option(
    "--gate",
    "try_gate",
    is_flag=True,
    help="Also run a connected Claude Code, to see that its calls wait (about 15 s).",
)
@json_option
@data_dir_option
@click.pass_context
def doctor_command(
    ctx: click.Context, data: DataFolder, config: Path | None, *, try_gate: bool, as_json: bool
) -> None:
    r"""Find what is wrong, and say how to fix it. Changes nothing.

    While a host runs, doctor looks at the settings file that the host has read, whatever folder you
    are in. If --config or PYNCHY_CONFIG names another file, a warning says so.

    Where `pynchy connect` has connected an agent program, its MCP server is started as the program
    would start it, and asked for its tools. With [sources.codex] the background server of a
    terminal's Codex is asked for its version, with [sources.phux] phux for its terminals.

    With --gate a connected Claude Code is run in a terminal of its own, with an empty home and a
    model of ours on this machine: it asks a question, and must wait for the answer.

    Exit code: 0 no problems (there may be warnings), 1 at least one problem.

    \b
    Examples:
      pynchy doctor
      pynchy doctor --gate
      pynchy doctor --json | jq '.[] | select(.status == "problem")'
    """
    config = config or shared_path(ctx, "config")
    findings = list(examine(data, config, datetime.now(UTC), try_gate=try_gate))
    if as_json:
        show_json([asdict(finding) for finding in findings])
    else:
        show_findings(findings)
    if any(finding.status is Status.PROBLEM for finding in findings):
        sys.exit(EXIT_FAILED)


def examine(
    data: DataFolder, config: Path | None, now: datetime, *, try_gate: bool = False
) -> Iterator[Finding]:
    """Yield everything that there is to say, in the order of reading.

    A host that starts or stops meanwhile would be there for one check and not for the next: then
    it is all looked at once more.
    """
    is_up = wait_for_host(data)
    found = list(_examine(data, config, now, try_gate=try_gate))
    if wait_for_host(data) != is_up:
        found = list(_examine(data, config, now, try_gate=try_gate))
    yield from found


def _examine(
    data: DataFolder, config: Path | None, now: datetime, *, try_gate: bool
) -> Iterator[Finding]:
    yield from check_python()
    settings, told = look_at_settings(config, os.environ, data)
    yield from told
    yield from check_data_folder(data)
    yield from check_token(data)
    health = look_at_host(data)
    yield from health.findings
    yield from check_stale_host(data)
    yield from check_disk(data)
    yield from check_inotify()
    yield from check_clock(data, now)
    boxes = writable_by_agents(settings.launchers(), data.path) if settings else []
    yield from check_connections(data, os.environ, Path.cwd(), boxes=boxes, try_gate=try_gate)
    if settings is not None:
        yield from check_exposure(settings.http)
        yield from check_groups(settings, data, health.problems)
        yield from check_sources(settings, os.environ)
        running = health.problems is not None
        yield from examine_channels(ChannelContext(settings, os.environ, data.path, running))


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Finding]:
    """Say whether this Python is new enough."""
    told = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        yield problem("python", f"{told} is too old", "install Python 3.11 or newer")
    else:
        yield fine("python", f"{told} at {sys.executable}")


def check_disk(data: DataFolder) -> Iterator[Finding]:
    """Say whether the data folder's disk has room."""
    place = next(path for path in (data.path, *data.path.parents) if path.exists())
    info = os.statvfs(place)
    free = info.f_bavail * info.f_frsize
    told = f"{free / _GIB:.1f} GiB" if free >= _GIB else f"{free // _MIB} MiB"
    fix = f"free some space where {place} is, or move the data folder with --data-dir"
    if free < _FULL_BYTES:
        yield problem("disk", f"{told} free: questions may not be recorded", fix)
    elif info.f_files and info.f_favail < _FEW_FILES:
        yield problem("disk", f"room for only {info.f_favail} more files (inodes)", fix)
    elif free < _TIGHT_BYTES:
        yield warning("disk", f"only {told} free", fix)
    else:
        yield fine("disk", f"{told} free")


def check_inotify(proc: Path = Path("/proc")) -> Iterator[Finding]:
    """Say whether file notifications can still be had."""
    limits = proc / "sys/fs/inotify"
    try:
        instances = int((limits / "max_user_instances").read_text())
        watches = int((limits / "max_user_watches").read_text())
    except (OSError, ValueError):
        yield fine("inotify", f"not checked: {platform.system()} has no such limits")
        return
    used_instances, used_watches = _count_inotify(proc)
    for name, used, most in (
        ("instances", used_instances, instances),
        ("watches", used_watches, watches),
    ):
        told = f"about {used} of {most} {name} used by this user"
        fix = f"sudo sysctl fs.inotify.max_user_{name}={most * 4}"
        if used >= most * _TIGHT_SHARE:
            yield warning("inotify", f"{told}: pynchy looks once a second instead", fix)
        else:
            yield fine("inotify", told)


def check_clock(data: DataFolder, now: datetime) -> Iterator[Finding]:
    """Say whether the clock can be right."""
    fix = "set the machine's clock (timedatectl set-ntp true)"
    newest = newest_event(data.audit)
    ahead = read_moment(newest["at"]) - now if newest and "at" in newest else timedelta()
    if now.year < _FIRST_YEAR:
        yield problem("clock", f"it says {now:%Y-%m-%d}, which is past: deadlines are wrong", fix)
    elif ahead > _BACKWARDS:
        behind = duration(ahead.total_seconds())
        yield warning("clock", f"{behind} behind the newest event in the log", fix)
    else:
        yield fine("clock", now.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z"))


def _count_inotify(proc: Path) -> tuple[int, int]:
    """Return the instances and watches of this user's processes, as far as they can be read."""
    instances = watches = 0
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            if process.stat().st_uid != os.getuid():
                continue
            for handle in (process / "fd").iterdir():
                with suppress(OSError):
                    if handle.readlink().name == "anon_inode:inotify":
                        instances += 1
                        info = (process / "fdinfo" / handle.name).read_text()
                        watches += info.count("inotify wd:")
    return instances, watches


def check_data_folder(data: DataFolder) -> Iterator[Finding]:
    """Say whether the data folder is there, ours, private and writable."""
    path = data.path
    try:
        info = path.stat()
    except FileNotFoundError:
        yield warning("data folder", f"{path} does not exist yet", "pynchy serve makes it")
        return
    except OSError as exc:
        yield problem("data folder", f"{path}: {exc.strerror}", "choose another with --data-dir")
        return
    if not stat.S_ISDIR(info.st_mode):
        yield problem("data folder", f"{path} is no folder", "choose another with --data-dir")
    elif info.st_uid != os.getuid():
        owner = f"belongs to user {info.st_uid}, not to you ({os.getuid()})"
        yield problem("data folder", f"{path} {owner}", f"sudo chown -R {os.getuid()} {path}")
    elif info.st_mode & _OTHERS:
        mode = f"{stat.S_IMODE(info.st_mode):04o}"
        yield problem("data folder", f"{path} is open to others (mode {mode})", f"chmod 700 {path}")
    elif os.statvfs(path).f_flag & os.ST_RDONLY:
        fix = "mount the disk for writing; its own log (dmesg) may say why it is not"
        yield problem("data folder", f"{path} is on a read-only disk", fix)
    elif not os.access(path, os.W_OK | os.X_OK):
        yield problem("data folder", f"{path} cannot be written", f"chmod 700 {path}")
    else:
        yield fine("data folder", str(path))


def check_token(data: DataFolder) -> Iterator[Finding]:
    """Say whether the token is for its owner alone."""
    path = data.path / "token"
    try:
        info = path.lstat()
    except OSError:
        if data.is_locked():
            fix = "restart pynchy serve, which makes it"
            yield problem("token", f"{path} is missing although a host runs", fix)
        else:
            yield fine("token", "made when the host first starts")
        return
    if not stat.S_ISREG(info.st_mode):
        yield problem("token", f"{path} is no regular file", f"rm {path}, then pynchy serve")
    elif info.st_mode & _OTHERS:
        mode = f"{stat.S_IMODE(info.st_mode):04o}"
        yield problem(
            "token",
            f"{path} can be read by others (mode {mode}): they may answer",
            f"chmod 600 {path}; to make a new one: rm {path}, then restart pynchy serve",
        )
    else:
        yield fine("token", f"{path} is yours alone")


def check_stale_host(data: DataFolder) -> Iterator[Finding]:
    """Tell of a host that ended without saying so."""
    try:
        is_left = (data.path / "host.json").exists() and not data.is_locked()
    except OSError:
        return  # the check of the data folder says what is wrong with it
    if is_left:
        detail = "the last host did not shut down cleanly (host.json is left); nothing is lost"
        yield warning("last host", detail, "pynchy serve takes up what was open")


@dataclass(frozen=True, slots=True)
class Health:
    """What the host says of itself; `problems` is None where there is no telling."""

    findings: tuple[Finding, ...]
    problems: tuple[str, ...] | None = None


def wait_for_host(data: DataFolder) -> bool:
    """Return whether a host runs, once it no longer starts or stops; that takes a moment."""
    until = time.monotonic() + _TIMEOUT_SECONDS
    while data.is_locked():
        with suppress(NoHost):
            data.host()
            return True
        if time.monotonic() > until:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def look_at_host(data: DataFolder) -> Health:
    """Ask the host how it is."""
    try:
        address = data.host()
        client = HostClient(address, _TIMEOUT_SECONDS)
        health = client.health()
        undelivered = [v for v in client.pending() if v.get("state") == "undelivered"]
    except NoHost:
        if data.is_locked():
            fix = "run pynchy doctor again in a moment; if it stays so, see the host's log"
            return Health((warning("host", "it is starting or stopping just now", fix),))
        gone = problem("host", "not running, so no question reaches anybody", "pynchy serve")
        return Health((gone,))
    except (HostError, PynchyError) as exc:
        return Health((problem("host", str(exc), "see its log, and restart pynchy serve"),))
    problems = tuple(map(str, health.get("problems", ())))
    running = fine("host", f"running at {address.url}, {health.get('open', 0)} open")
    told = (*_complaints(problems), *_warnings(health), *_undelivered(undelivered))
    return Health((running, *told), problems)


def _complaints(problems: tuple[str, ...]) -> Iterator[Finding]:
    for text in problems:
        yield problem("host", text, "fix that, or restart pynchy serve and read its log")


def _warnings(health: Json) -> Iterator[Finding]:
    for text in map(str, health.get("warnings", ())):
        yield warning("host", text, "end that program if you do not need it")


def _undelivered(views: list[Json]) -> Iterator[Finding]:
    kept = [view for view in views if view.get("unreachable")]
    if failed := len(views) - len(kept):
        yield problem("host", _told(failed), "pynchy pending shows why; then pynchy retry ID")
    if kept:
        detail = f"{_told(len(kept))}: whoever asked had gone, and no launcher resumes its agent"
        fix = "pynchy pending lists them; read one with pynchy show ID, then pynchy dismiss ID"
        yield warning("host", detail, fix)


def _told(count: int) -> str:
    return "1 answer did not arrive" if count == 1 else f"{count} answers did not arrive"
