"""How pynchy is called, in the hints that it prints and in the settings that it writes."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.uvx import lay_out_as_uvx

from pynchy.errors import ConfigError
from pynchy.own_program import find_own_program, own_command

REPOSITORY = Path(__file__).parents[2]


def test_hints_of_a_pynchy_that_uvx_runs_name_uvx_and_not_what_only_uvx_has_on_its_path(
    tmp_path: Path,
) -> None:
    python = lay_out_as_uvx(tmp_path)

    def say(*arguments: str) -> str:
        done = subprocess.run(
            [python, "-m", "pynchy", *arguments],
            cwd=tmp_path,
            env={"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    call = f"uvx --from {REPOSITORY} pynchy"
    assert f"  {call} serve " in say("init")
    assert f"start one with: {call} serve" in say("pending")


def test_a_pynchy_on_the_path_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(sys.executable).with_name("pynchy")
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    monkeypatch.setenv("PATH", str(own.parent))
    named = own_command()
    monkeypatch.setenv("PATH", "/nowhere")
    away = own_command()
    monkeypatch.setenv("PATH", str(own.parent))
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    through_uv_run = own_command()

    assert named == ("pynchy",)
    assert away == through_uv_run == (str(own),)


def test_a_pynchy_that_uvx_made_for_one_call_is_not_written_into_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "uv" / "archive-v0" / "Oc4r" / "bin" / "pynchy"
    made.parent.mkdir(parents=True)
    made.touch()
    monkeypatch.setattr(sys, "argv", [str(made)])

    with pytest.raises(ConfigError, match="uv tool install"):
        find_own_program()
