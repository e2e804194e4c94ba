"""What is wrong with a setting, in words, before anyone knows where it stands in the file.

A finding never repeats a value: the value may be a secret, and its line is shown anyway.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

# The path of a key from the top of the file.
Loc = tuple[str | int, ...]
_MAX_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One thing that is wrong, the setting it is wrong with, and what to do about it."""

    loc: Loc
    message: str
    notes: tuple[str, ...] = ()
    at_key: bool = False
    # It says nothing that counts: what is beside it means the same without it.
    is_extra: bool = False
    # The channel that it is about, where that is not configured.
    channel: str = ""


def did_you_mean(name: str, options: Iterable[str], form: str = '"%s"') -> tuple[str, ...]:
    """Return a note that names the nearest option, or nothing where none is near."""
    near = get_close_matches(name[:_MAX_NAME_LENGTH], list(options), n=1)
    return tuple(f"did you mean {form % option}?" for option in near)


def allowed(options: Iterable[str]) -> str:
    """Return a note that lists what could have been written."""
    return f"allowed: {', '.join(sorted(options)) or 'nothing'}"


def dotted(loc: Loc) -> str:
    """Return the setting's name as a person would write it, without list positions."""
    return ".".join(printable(part) for part in loc if isinstance(part, str))


def printable(name: str) -> str:
    """Return the name fit for a terminal: no control characters, and not endless."""
    short = name if len(name) <= _MAX_NAME_LENGTH else name[:_MAX_NAME_LENGTH] + "…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in short)
