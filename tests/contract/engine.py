"""The stand-in for a container engine, as a test has it: a daemon, and a `docker` on the PATH."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.contract.engine_standin import Json

STANDIN = Path(__file__).with_name("engine_standin.py")


class Engine:
    """The daemon, and what it was asked to run."""

    def __init__(self, folder: Path, command: str = "docker") -> None:
        # Not in the test's own folder, whose path is too long for a socket.
        self._short = Path(tempfile.mkdtemp())
        self._programs = folder / "engine"
        self._record = folder / "engine.jsonl"
        self._programs.mkdir()
        socket = self._short / "s"
        program = self._programs / command
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {STANDIN} cli {socket} "$@"\n')
        program.chmod(0o700)
        self._daemon = subprocess.Popen([sys.executable, STANDIN, "serve", socket, self._record])
        deadline = time.monotonic() + 30
        while not socket.exists():
            assert time.monotonic() < deadline, "the engine does not start"

    def environ(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self._programs}:{os.environ['PATH']}"}

    def runs(self) -> list[Json]:
        """Return what was run, the oldest first."""
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        return [json.loads(line) for line in lines]

    def stop(self) -> None:
        self._daemon.kill()
        self._daemon.wait()
        shutil.rmtree(self._short)
