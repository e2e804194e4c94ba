"""Who would read what is typed into a terminal, and whether that may be an answer.

`cat` of a hostile file can set a title. So an answer is typed only for the process group that was
in the foreground when it asked, and never for a shell at its prompt or for a program that carries
another terminal, behind which a shell may be.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_MAX_BYTES = 4_096
# tmux ignores these, and so does whatever it starts: they tell nothing of a program in a pane.
IGNORED_IN_TMUX = frozenset({signal.SIGTTIN, signal.SIGTTOU})
# Who ignores one of these keeps jobs, or a prompt: every interactive shell does.
_IGNORED_BY_SHELLS = frozenset({signal.SIGTTOU, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTERM})
_SHELLS = frozenset(
    {"sh", "ash", "bash", "dash", "zsh", "fish", "ksh", "mksh", "oksh", "yash", "tcsh", "csh"}
    | {"busybox", "rc", "es", "elvish", "nu", "xonsh", "pwsh", "osh", "ysh"}
)
_CARRIERS = frozenset(
    {"ssh", "mosh", "mosh-client", "et", "telnet", "rlogin", "rsh", "tmux", "screen", "zellij"}
    | {"abduco", "dtach", "dvtm", "script", "expect", "phux", "docker", "podman", "nerdctl"}
    | {"kubectl", "oc", "lxc", "incus", "machinectl", "nsenter", "su", "sudo", "doas", "runuser"}
    | {"socat", "nc", "ncat", "minicom", "picocom", "tio", "cu"}
    | {"adb", "tsh", "dbclient", "plink", "flyctl", "session-manager-plugin", "crictl", "ctr"}
    | {"nomad", "virsh", "lxc-attach", "heroku", "gcloud", "aws", "teleport", "distrobox"}
)
# In `read` of a terminal, `poll`, `select`, `epoll_wait` and the like.
_WHERE_INPUT_IS_AWAITED = (
    *("wait_woken", "n_tty_read", "poll_schedule", "do_poll", "do_sys_poll", "do_select"),
    *("core_sys_select", "ep_poll", "do_epoll_wait", "io_cqring_wait", "schedule_hrtimeout"),
)
_PTY_MASTER = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})


@dataclass(frozen=True, slots=True)
class Foreground:
    """A process group, with when its leader was started: numbers are used again."""

    group: int
    started: str = ""


def group_in_front(master: int) -> int:
    """Return the process group that reads from the terminal, 0 if none does."""
    try:
        return max(0, os.tcgetpgrp(master))
    except OSError:
        return 0


def group_in_front_of(pid: int) -> int:
    """Return the process group that reads from the terminal of that process, 0 if none does."""
    fields = _stat(str(pid))
    return max(0, int(fields[5])) if fields else 0


def look_at(group: int) -> Foreground:
    """Return what tells the group from a later one of the same number."""
    fields = _stat(str(group))
    return Foreground(group, fields[19] if fields else "")


def why_not_typed(group: int, inherited: frozenset[int] = frozenset()) -> str:
    """Say why nothing may be typed while this group is in front; empty if it may be.

    `inherited` are signals that are ignored by whatever runs in such a terminal.
    """
    if group <= 0:
        return "no program reads from the terminal"
    members = _members(group) if _PROC.is_dir() else []
    if _PROC.is_dir() and not members:
        return "the program is gone"
    for pid in members:
        if why := _why_not(pid, _IGNORED_BY_SHELLS - inherited):
            return why
    return ""


def describe_group(group: int) -> tuple[str, str]:
    """Return the name of the program that leads the group, and its folder, as far as known."""
    name = folder = ""
    with suppress(OSError):
        # Of a script it is the script's own name, where its first line names the interpreter.
        name = _read(_PROC / str(group) / "comm").decode(errors="replace").strip()
    with suppress(OSError):
        folder = str((_PROC / str(group) / "cwd").readlink())
    return name, folder


def waits_for_input(group: int) -> bool:
    """True if a process of the group may be reading: what nobody reads the next shell would.

    What the system does not tell counts as reading.
    """
    if not _PROC.is_dir():
        return True
    places = [place for pid in _members(group) for place in _waiting_places(pid)]
    return any(place in {"", "0"} or place.startswith(_WHERE_INPUT_IS_AWAITED) for place in places)


def _waiting_places(pid: str) -> list[str]:
    """Return where in the kernel each thread of the process waits that does; "0" is not told."""
    found = []
    with suppress(OSError):
        for task in os.listdir(_PROC / pid / "task"):
            with suppress(OSError):
                where = _read(_PROC / pid / "task" / task / "wchan").decode(errors="replace")
                state = _stat(f"{pid}/task/{task}")[:1]
                found += [where] if state == ["S"] else []
    return found


def _why_not(pid: str, ignored_by_shells: frozenset[int]) -> str:
    name = _name(pid)
    if _reads_terminal(pid) and (_ignored(pid) & ignored_by_shells or _is_prompt(pid, name)):
        return f"{name} is a shell, which would run it"
    if name in _CARRIERS or _masters(pid) - _inherited:
        return f"{name} shows another terminal, where a shell may read it"
    return ""


def _reads_terminal(pid: str) -> bool:
    """False for a helper that an agent feeds through a pipe: it never gets what is typed."""
    with suppress(OSError):
        return str((_PROC / pid / "fd" / "0").readlink()).startswith(("/dev/pts/", "/dev/tty"))
    return True


def _is_prompt(pid: str, name: str) -> bool:
    """True for a shell that was given nothing to run: it reads commands."""
    if name not in _SHELLS:
        return False
    with suppress(OSError):
        words = _read(_PROC / pid / "cmdline").rstrip(b"\0").split(b"\0")[1:]
        return all(word.startswith((b"-", b"+")) and b"c" not in word for word in words)
    return True


def _members(group: int) -> list[str]:
    found = []
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            fields = _stat(entry.name)
            if fields and fields[2] == str(group) and fields[0] != "Z":
                found.append(entry.name)
    return found


def _stat(pid: str) -> list[str]:
    """Return the fields that follow the name of the process: its state, parent, group and so on."""
    try:
        told = _read(_PROC / pid / "stat").decode(errors="replace")
    except OSError:
        return []
    fields = told.rpartition(")")[2].split()
    return fields if len(fields) > 19 else []  # noqa: PLR2004 - up to when it was started


def _name(pid: str) -> str:
    """Return what is run, as far as it can be seen: a script's interpreter, not the script."""
    with suppress(OSError):
        return (_PROC / pid / "exe").readlink().name.removesuffix(" (deleted)")
    with suppress(OSError):
        return _read(_PROC / pid / "comm").decode(errors="replace").strip()
    return "the program"


def _ignored(pid: str) -> frozenset[int]:
    with suppress(OSError, ValueError):
        for line in _read(_PROC / pid / "status").splitlines():
            if line.startswith(b"SigIgn:"):
                mask = int(line.split()[1], 16)
                return frozenset(n for n in range(1, 65) if mask >> (n - 1) & 1)
    return frozenset()


def _masters(pid: str) -> frozenset[bytes]:
    """Return the terminals that the process can show, by their numbers."""
    found = set()
    with suppress(OSError):
        for handle in os.listdir(_PROC / pid / "fd"):
            with suppress(OSError):
                if str((_PROC / pid / "fd" / handle).readlink()) in _PTY_MASTER:
                    told = _read(_PROC / pid / "fdinfo" / handle).splitlines()
                    found |= {line for line in told if line.startswith(b"tty-index:")}
    return frozenset(found)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES)


# What a careless terminal has left open in everything that it starts, and so in us.
_inherited = _masters("self")
