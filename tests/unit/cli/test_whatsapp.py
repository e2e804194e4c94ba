"""`pynchy whatsapp` where its library is not installed."""

from pathlib import Path

import pytest
from tests.unit.cli.support import Run

from pynchy.cli import whatsapp


@pytest.mark.parametrize("command", ["pair", "groups", "logout"])
def test_without_the_extra_the_command_says_what_to_install(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "pynchy.toml").write_text("[channels.whatsapp]\n")
    monkeypatch.setattr(whatsapp, "find_spec", lambda _: None)

    refused = run("whatsapp", command)

    assert refused.exit_code == 1
    assert "not installed (neonize): pip install 'pynchy[whatsapp]'" in refused.stderr
