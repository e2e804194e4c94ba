"""The machine: Python, disk space, inotify, the clock."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from pynchy.cli.doctor.finding import Finding, fine, problem, warning
from pynchy.cli.eventlog import newest_event
from pynchy.cli.text import duration, read_moment
from pynchy.data_dir import DataFolder

OLDEST_PYTHON = (3, 11)
_FULL_BYTES = 64 * 1024**2
_TIGHT_BYTES = 1024**3
_FEW_FILES = 1_000
_MIB = 1024**2
_GIB = 1024**3
_TIGHT_SHARE = 0.9
_BACKWARDS = timedelta(seconds=60)
_FIRST_YEAR = 2026


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
