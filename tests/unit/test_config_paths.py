"""Where the settings and the data are looked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from pynchy.data_dir import data_dir, find_settings
from pynchy.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def _written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_without_any_file_there_is_none(home: Path) -> None:
    assert find_settings(None, {"HOME": str(home)}) is None


def test_the_nearest_file_wins(home: Path) -> None:
    environ = {"HOME": str(home)}

    usual = _written(home / ".config/pynchy/pynchy.toml")
    assert find_settings(None, environ) == usual

    environ["XDG_CONFIG_HOME"] = str(home / "xdg")
    xdg = _written(home / "xdg/pynchy/pynchy.toml")
    assert find_settings(None, environ) == xdg

    here = _written(Path("pynchy.toml"))
    assert find_settings(None, environ) == here

    environ["PYNCHY_CONFIG"] = str(_written(home / "env.toml"))
    assert find_settings(None, environ) == home / "env.toml"

    explicit = _written(home / "explicit.toml")
    assert find_settings(explicit, environ) == explicit


def test_a_named_file_that_is_missing_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"^none.toml: there is no such settings file\n.*--config"
    ):
        find_settings(Path("none.toml"), {})
    with pytest.raises(ConfigError, match=r"^none.toml: .*\n  PYNCHY_CONFIG names it"):
        find_settings(None, {"PYNCHY_CONFIG": "none.toml"})


def test_an_empty_variable_counts_as_unset(home: Path) -> None:
    environ = {"HOME": str(home), "PYNCHY_CONFIG": "", "PYNCHY_DATA_DIR": "", "XDG_DATA_HOME": ""}

    assert find_settings(None, environ) is None
    assert data_dir(None, environ) == home / ".local/share/pynchy"


def test_a_relative_xdg_folder_is_ignored(home: Path) -> None:
    environ = {"HOME": str(home), "XDG_DATA_HOME": "data"}

    assert data_dir(None, environ) == home / ".local/share/pynchy"


def test_the_data_is_where_it_was_asked_to_be() -> None:
    environ = {"XDG_DATA_HOME": "/xdg"}
    assert data_dir(None, environ) == Path("/xdg/pynchy")

    environ["PYNCHY_DATA_DIR"] = "/env"
    assert data_dir(None, environ) == Path("/env")

    assert data_dir(Path("/explicit"), environ) == Path("/explicit")


def test_a_user_without_a_home_is_asked_for_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)

    assert find_settings(None, {}) is None
    with pytest.raises(ConfigError, match="say where with --data-dir"):
        data_dir(None, {})


def test_a_file_that_cannot_be_looked_at_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "exists", refuse)

    assert find_settings(None, {}) == Path("pynchy.toml")


def test_finding_paths_does_not_load_pydantic() -> None:
    program = "import sys, pynchy.data_dir; sys.exit('pydantic' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
