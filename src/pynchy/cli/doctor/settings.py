"""The settings: which file counts, whether it is valid, and whether the running host has read it.

What is said of groups is true of a file. It is true of the host only if that has read this very
file as it is now; where it has not, that is said first.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from pynchy.cli.doctor.finding import Finding, fine, problem, warning
from pynchy.config import Settings, load_settings
from pynchy.data_dir import DataFolder
from pynchy.errors import ConfigError
from pynchy.origin import SettingsSource
from pynchy.paths import find_settings

_CHECK = "settings"
_RESTART = "restart pynchy serve"


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
    return problem(_CHECK, str(error), "correct the file; pynchy init writes a new one")


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
