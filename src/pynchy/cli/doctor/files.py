"""The files: the data folder, the token, what a killed host left behind."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from pynchy.cli.doctor.finding import Finding, fine, problem, warning
from pynchy.data_dir import DataFolder

_OTHERS = 0o077


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
        detail = "the last host ended without a goodbye (host.json is left); nothing is lost"
        yield warning("last host", detail, "pynchy serve takes up what was open")
