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
    folders = [Path(), _own_folder(environ, "XDG_CONFIG_HOME", ".config")]
    paths = (folder / SETTINGS_NAME for folder in folders if folder is not None)
    return next((path for path in paths if _is_there(path)), None)


def own_settings(environ: Mapping[str, str]) -> Path:
    """Return the settings file of this user, which need not exist. Raise ConfigError."""
    folder = _own_folder(environ, "XDG_CONFIG_HOME", ".config")
    if folder is None:
        raise ConfigError("this user has no home folder: say which file with --config")
    return folder / SETTINGS_NAME


def data_dir(explicit: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the data folder, which need not exist yet. Raise ConfigError without a home."""
    if explicit is not None:
        return explicit
    if named := environ.get("PYNCHY_DATA_DIR"):
        return Path(named)
    folder = _own_folder(environ, "XDG_DATA_HOME", ".local/share")
    if folder is None:
        raise ConfigError("this user has no home folder: say where with --data-dir")
    return folder


def _existing(path: Path, asked_by: str) -> Path:
    if not _is_there(path):
        raise ConfigError(
            f"{path}: there is no such settings file\n"
            f"  {asked_by} names it; write one with: pynchy init"
        )
    return path


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # What cannot be looked at is better refused when read than passed over.


def _own_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    named = Path(environ.get(variable, ""))
    # The XDG rules say that a relative path is to be ignored.
    if named.is_absolute():
        return named / "pynchy"
    home = _home(environ)
    return home / usual / "pynchy" if home else None


def _home(environ: Mapping[str, str]) -> Path | None:
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path.home()
    except RuntimeError:
        return None
