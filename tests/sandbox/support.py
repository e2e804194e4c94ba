"""A visitor in a box: a real runner of a real host, which looks around and reports."""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.acceptance.support import Host, Json

GROUP = "team"

# What each visitor knows: `report` is what the test reads, `attempt` says how something went.
PRELUDE = """
import errno, json, os, pathlib, socket, sys, time
ipc = pathlib.Path(os.environ["PYNCHY_IPC_DIR"])
report = {}

def attempt(what):
    try:
        return what() or "done"
    except OSError as exc:
        return errno.errorcode.get(exc.errno, str(exc))

def write(path):
    return attempt(lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)))

def reach(port):
    return attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close())
"""
REPORT = """
pathlib.Path("report.part").write_text(json.dumps(report))
os.rename("report.part", "report.json")
"""


class Boxes:
    """A host whose group has its agent in a box, and a workspace that the test sees too."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.home = folder / "home"
        self.host = Host(folder / "data")
        self.work.mkdir()

    def settings(self, code: str, interpreter: str = sys.executable, **settings: Any) -> str:
        """Return a launcher table for a visitor that does what the code says."""
        program = Path(settings.get("runner", self.work / "visitor"))
        program.write_text(f"#!/usr/bin/env {interpreter}\n{PRELUDE}\n{code}\n{REPORT}")
        program.chmod(0o755)
        told = {"kind": "bubblewrap", "agent": "claude", "runner": str(program)}
        told |= {"workspace": str(self.work), "home": str(self.home), **settings}
        lines = [f"{name} = {_toml(value)}" for name, value in told.items()]
        return "\n".join([f"[groups.{GROUP}.launcher]", *lines, ""])

    async def open(self, code: str, more: str = "", **settings: Any) -> None:
        """Start the host."""
        self.host.configure(self.settings(code, **settings) + more)
        await self.host.start()

    async def visit(self) -> Json:
        """Have the visitor started, and return its report when it has ended."""
        await self.host.session_is(self.host.run(GROUP), "ended")
        return self.report()

    def report(self) -> Json:
        """Return what the visitor reported; fail with its output if it has not."""
        report = self.work / "report.json"
        assert report.exists(), self.log()
        found: Json = json.loads(report.read_text())
        return found

    def pids(self) -> list[int]:
        """Return what runs in boxes of this test, known by its working folder."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (path / "cwd").readlink() == self.work:
                    found.append(int(path.name))
        return found

    def log(self) -> str:
        """Return what runners have printed."""
        paths = self.host.data.glob("runners/*/*.log")
        return "\n".join(path.read_text() for path in paths)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)
