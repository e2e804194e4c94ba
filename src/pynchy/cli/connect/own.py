"""Which pynchy it is that runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pynchy.errors import ConfigError


def find_own_program() -> str:
    """Return where the pynchy that runs is, as it was called: a link may outlive what it means."""
    called = Path(sys.argv[0])
    if called.name == "pynchy" and called.exists():
        return str(called.absolute())
    beside = Path(sys.executable).with_name("pynchy")
    found = str(beside) if beside.exists() else shutil.which("pynchy")
    if not found:
        raise ConfigError("there is no program `pynchy` to start: install it first")
    return str(Path(found).absolute())
