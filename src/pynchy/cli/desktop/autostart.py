"""What starts `pynchy desktop` with the person's session: a systemd unit and an autostart entry.

Whichever comes second finds that one is running, and leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

UNIT = "pynchy-desktop.service"
ENTRY = "pynchy-desktop.desktop"
_TARGET = "graphical-session.target"


def install(command: Sequence[str], environ: Mapping[str, str]) -> list[Path]:
    """Write what starts the command with the session, and return where it is."""
    unit, wanted, entry = _paths(environ)
    for path in (unit, wanted, entry):
        path.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(_unit(command))
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(unit)
    entry.write_text(_entry(command))
    return [unit, entry]


def remove(environ: Mapping[str, str]) -> list[Path]:
    """Remove what `install` wrote, and return what was there."""
    there = [path for path in _paths(environ) if path.is_symlink() or path.exists()]
    for path in there:
        path.unlink()
    return there


def _paths(environ: Mapping[str, str]) -> tuple[Path, Path, Path]:
    config = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    units = config / "systemd" / "user"
    return units / UNIT, units / f"{_TARGET}.wants" / UNIT, config / "autostart" / ENTRY


def _unit(command: Sequence[str]) -> str:
    words = " ".join(_quoted(word).replace("%", "%%").replace("$", "$$") for word in command)
    return (
        "[Unit]\nDescription=Popups for what agents ask through pynchy\n"
        f"PartOf={_TARGET}\nAfter={_TARGET}\n\n"
        f"[Service]\nExecStart={words}\nRestart=on-failure\nRestartSec=10\n\n"
        f"[Install]\nWantedBy={_TARGET}\n"
    )


def _entry(command: Sequence[str]) -> str:
    words = " ".join(_quoted(word).replace("%", "%%") for word in command)
    return (
        "[Desktop Entry]\nType=Application\nName=pynchy\n"
        "Comment=Popups for what agents ask\n"
        f"Exec={words}\nNoDisplay=true\n"
    )


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
