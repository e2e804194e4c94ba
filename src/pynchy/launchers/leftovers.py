"""What a killed supervisor has left of a runner: find it and end it.

A supervisor ends all that its runner has started. One that was killed cannot, so the host looks for
the processes that bear the job's mark in their environment or hold its lock, for all below them,
and for all in a session that one of them has begun. Who has given up all of these is not found.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pynchy.launchers.job_runner import descendants, living_part

_VARIABLE = "PYNCHY_JOB"
_POLL_SECONDS = 0.05
_KILL_SECONDS = 5.0


def mark(job: Path) -> dict[str, str]:
    """Return what every process of the job inherits; it does not tell where the job's file is."""
    return {_VARIABLE: hashlib.sha256(os.fsencode(job)).hexdigest()}


def end_leftovers(job: Path, lock: Path, grace_seconds: float) -> tuple[int, list[int]]:
    """Ask them to end, and kill them after the grace.

    Return how many there were, and those that could not be ended.
    """
    found = find_leftovers(job, lock)
    left = _end(job, lock, signal.SIGTERM, grace_seconds) if found else []
    if left:
        left = _end(job, lock, signal.SIGKILL, _KILL_SECONDS)
    return len(found), left


def find_leftovers(job: Path, lock: Path) -> list[int]:
    """Return the living processes of that job; none where there is no /proc."""
    if sys.platform != "linux":
        return []
    [(name, value)] = mark(job).items()
    said, file = f"{name}={value}".encode(), _identity(str(lock))
    parts = {pid: part for pid in _others() if (part := living_part(pid))}
    pids = {p for p, part in parts.items() if _bears(part, said) or (file and _holds(part, file))}
    pids |= {pid for pid in _others() if _session_of(pid) in pids}
    below = {pid for found in pids for pid in descendants(found)}
    return sorted(pid for pid in pids | below if living_part(pid))


def _end(job: Path, lock: Path, number: signal.Signals, seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    asked: set[int] = set()
    while left := find_leftovers(job, lock):
        for pid in left:
            # To be asked once is enough, and what is killed may have started something meanwhile.
            if pid not in asked or number is signal.SIGKILL:
                _signal(pid, number)
        asked.update(left)
        if time.monotonic() >= deadline:
            break
        time.sleep(_POLL_SECONDS)
    return left


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def _others() -> Iterator[int]:
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != own)


def _bears(part: str, said: bytes) -> bool:
    try:
        return said in Path("/proc", part, "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _holds(part: str, file: tuple[int, int]) -> bool:
    folder = f"/proc/{part}/fd"
    try:
        return any(_identity(f"{folder}/{name}") == file for name in os.listdir(folder))
    except OSError:
        return False


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)  # noqa: PTH116 - many of them
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
