"""phux, the terminal multiplexer, as far as pynchy calls its program: strict, played by a script.

What the program does is in `program.py`, which runs by itself for each call. Its world is a folder:

    calls.jsonl    every call that was made, in order, with its arguments
    refused        what no phux would take, a line each: empty at the end of a test
    server.json    what the server knows: its terminals and their titles; none: no server runs
    @9.lines       what `phux watch --json @9` tells, from its beginning on
    instead.json   what a command does in place of the usual, by its name
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PROGRAM = Path(__file__).with_name("program.py")
# As phux has them.
UNKNOWN = {"exit": 2, "err": "error: unrecognized subcommand 'answer'\n\nUsage: phux agent"}


def refusal(code: str, message: str = "it says why", exit_code: int = 2) -> Json:
    """What a command does that fails: phux's error object, and its exit code."""
    error = {"schema_version": 1, "error": {"code": code, "message": message}, "remedy": "none"}
    return {"exit": exit_code, "err": json.dumps(error)}


class PhuxStandIn:
    """The program `phux` in a folder of its own, with a server that a test plays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.command = folder / "phux"
        # A fresh interpreter for each call: isolated, and without looking for packages.
        start = f'exec "{sys.executable}" -ISB "{PROGRAM}" "{folder}" "$@"'
        self.command.write_text(f"#!/bin/sh\n{start}\n")
        self.command.chmod(0o755)
        self._terminals: dict[str, str | None] = {}
        self._numbers: dict[str, int] = {}

    def start(self, *terminals: str) -> None:
        """Let a server run, with these terminals."""
        self._terminals = dict.fromkeys(terminals, "")
        self._save()

    def stop(self) -> None:
        """End the server; whoever watches notices."""
        (self.folder / "server.json").unlink()

    def open(self, terminal: str) -> None:
        """Let there be another terminal."""
        self._terminals[terminal] = ""
        self._save()

    def close(self, terminal: str) -> None:
        """Let the terminal's program end."""
        self.tell(terminal, event="pane_closed", exit_status=0)
        del self._terminals[terminal]
        self._save()

    def ask(self, terminal: str, question: str, *suggestions: str, id: str = "") -> None:  # noqa: A002
        """Let a program ask by the title of its terminal."""
        name = f"[{id}]" if id else ""
        offered = f"?s={'|'.join(suggestions)}" if suggestions else ""
        self._terminals[terminal] = f"phux-ask{name}:{question}{offered}"
        self._save()
        self.tell(terminal, event="title_changed", title=self._terminals[terminal])
        self.report(terminal, question, *suggestions, id=id)

    def report(self, terminal: str, question: str, *suggestions: str, id: str = "") -> None:  # noqa: A002
        """Let an ask be told of, which is in no title."""
        asked = {"id": id, "question": question, "suggestions": list(suggestions)}
        self.tell(terminal, event="asked", **asked, elapsed_seconds=None)

    def set_title(self, terminal: str, title: str) -> None:
        """Let a program set the title of its terminal."""
        self._terminals[terminal] = title
        self._save()
        self.tell(terminal, event="title_changed", title=title)

    def hide_title(self, terminal: str) -> None:
        """Be an older phux, which does not say what the title is."""
        self._terminals[terminal] = None
        self._save()

    def tell(self, terminal: str, **event: Any) -> None:
        """Let whoever watches the terminal hear of something."""
        self.tell_raw(terminal, json.dumps({"terminal": terminal, **event}).encode())

    def tell_raw(self, terminal: str, line: bytes) -> None:
        """Let whoever watches the terminal read this line."""
        with (self.folder / f"{terminal}.lines").open("ab") as lines:
            lines.write(line + b"\n")

    def instead(self, command: str, does: Json | None) -> None:
        """Let a command do something else: `exit`, `out`, `err`, or `hangs`."""
        path = self.folder / "instead.json"
        told = json.loads(path.read_text()) if path.exists() else {}
        told[command] = does
        self._write(path, told)

    def calls(self, command: str = "") -> list[list[str]]:
        """Return the arguments of each call of that command, or of those that type or report."""
        path = self.folder / "calls.jsonl"
        made = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        wanted = command.split()
        is_wanted = (lambda one: one[: len(wanted)] == wanted) if wanted else _is_loud
        return [one for one in made if is_wanted(one)]

    def refused(self) -> str:
        """Return what no phux would take of what it was told to do."""
        path = self.folder / "refused"
        return path.read_text() if path.exists() else ""

    def watchers(self, terminal: str) -> int:
        """Return how many watch the terminal just now."""
        return len([f for f in self.folder.glob(f"{terminal}.watch-*") if _lives(f)])

    def _save(self) -> None:
        self._write(self.folder / "server.json", self._terminals)

    @staticmethod
    def _write(path: Path, content: Json) -> None:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(content))
        temporary.rename(path)


def _is_loud(call: list[str]) -> bool:
    return call[0] not in {"ls", "snapshot", "watch"}


def _lives(file: Path) -> bool:
    try:
        os.kill(int(file.suffix.removeprefix(".watch-")), 0)
    except ProcessLookupError:
        return False
    return True
