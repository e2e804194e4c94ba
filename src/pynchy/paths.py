"""Where the settings and the data are.

Nothing heavy is imported here: commands that must start fast ask this module alone.
"""

from collections.abc import Mapping
from pathlib import Path

from pynchy.errors import ConfigError

SETTINGS_NAME = "pynchy.toml"


def find_settings(explicit: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the settings file to read, or None where there is none.

    Raise ConfigError if the file that was asked for by name is missing.
    """
    if explicit is not None:
        return _existing(explicit, "--config")
    if named := environ.get("PYNCHY_CONFIG"):
        return _existing(Path(named), "PYNCHY_CONFIG")
    usual = [Path(SETTINGS_NAME), _base(environ, "XDG_CONFIG_HOME", ".config") / SETTINGS_NAME]
    return next((path for path in usual if path.exists()), None)


def data_dir(explicit: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the data folder, which need not exist yet."""
    if explicit is not None:
        return explicit
    if named := environ.get("PYNCHY_DATA_DIR"):
        return Path(named)
    return _base(environ, "XDG_DATA_HOME", ".local/share")


def _existing(path: Path, asked_by: str) -> Path:
    if not path.exists():
        raise ConfigError(
            f"{path}: there is no such settings file\n"
            f"  {asked_by} names it; write one with: pynchy init"
        )
    return path


def _base(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    named = Path(environ.get(variable, ""))
    # The XDG rules say that a relative path is to be ignored.
    return (named if named.is_absolute() else _home(environ) / usual) / "pynchy"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()
