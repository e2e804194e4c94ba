"""One thing that a check found, in the words of `pynchy doctor`; channels find things too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How bad it is. Only a problem makes `doctor` fail."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and how to fix it."""

    check: str
    status: Status
    detail: str
    fix: str = ""


def fine(check: str, detail: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(check, Status.OK, detail)


def warning(check: str, detail: str, fix: str) -> Finding:
    """Return a finding that somebody should know of."""
    return Finding(check, Status.WARNING, detail, fix)


def problem(check: str, detail: str, fix: str) -> Finding:
    """Return a finding that keeps pynchy from its work."""
    return Finding(check, Status.PROBLEM, detail, fix)
