"""The program `phux` of the stand-in. It knows its own options, and nothing of pynchy."""

import json
import os
import select
import sys
import time
from pathlib import Path

# By command: options without a value, options with one, and how many words there must be.
COMMANDS: dict[str, tuple[set[str], set[str], tuple[int, int]]] = {
    "ls": ({"--json"}, {"--socket"}, (0, 0)),
    "snapshot": ({"--json"}, {"--socket"}, (0, 1)),
    "watch": ({"--json"}, {"--socket"}, (0, 1)),
    "agent answer": (
        {"--json", "--allow-unlisted"},
        {"--id", "--choice", "--text", "--socket"},
        (1, 1),
    ),
    "paste": ({"--untrusted"}, {"--socket"}, (1, 2)),
    "send-keys": (set(), {"--socket"}, (2, 99)),
    "ask": ({"--json"}, {"--id", "--suggest", "--elapsed-seconds", "--socket"}, (2, 2)),
}
POLL_SECONDS = 0.02


class Phux:
    """One call."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.folder = folder
        self.arguments = arguments
        words = 2 if arguments[:1] == ["agent"] else 1
        self.command = " ".join(arguments[:words])
        self.given: list[tuple[str, str]] = []
        self.words: list[str] = []
        # Whoever reads what it says: without them it ends, whatever it does.
        self.reader = select.poll()
        self.reader.register(sys.stdout, select.POLLERR)
        if self.command not in COMMANDS:
            self.refuse(f"unrecognized subcommand {self.command!r}")
        self._parse(arguments[words:])

    def _parse(self, rest: list[str]) -> None:
        """Read options and words as phux does, and stop at what it does not know."""
        flags, valued, (least, most) = COMMANDS[self.command]
        while rest:
            one = rest.pop(0)
            name, is_joined, value = one.partition("=")
            if one == "--":
                self.words += rest
                break
            if one in flags:
                self.given.append((one, ""))
            elif name in valued and is_joined:
                self.given.append((name, value))
            elif name in valued and rest and not rest[0].startswith("-"):
                self.given.append((name, rest.pop(0)))
            elif one.startswith("-"):
                self.refuse(f"unexpected argument {one!r}")
            elif self.command == "send-keys":
                self.words += [one, *rest]
                break
            else:
                self.words.append(one)
        if not least <= len(self.words) <= most:
            self.refuse(f"{len(self.words)} words")

    def refuse(self, why: str) -> None:
        with (self.folder / "refused").open("a") as file:
            file.write(f"{self.arguments}: {why}\n")
        sys.exit(f"error: {why}")

    def option(self, name: str) -> str | None:
        return next((value for known, value in self.given if known == name), None)

    def terminals(self) -> dict[str, str | None]:
        try:
            found: dict[str, str | None] = json.loads((self.folder / "server.json").read_text())
        except FileNotFoundError:
            self.fail("no_server", "no server running", 1)
        return found

    def fail(self, code: str, message: str, exit_code: int) -> None:
        error = {"code": code, "message": message}
        told = {"schema_version": 1, "error": error, "remedy": "none", "exit_code": exit_code}
        sys.stderr.write(json.dumps(told))
        sys.exit(exit_code)

    def run(self) -> None:
        with (self.folder / "calls.jsonl").open("a") as file:
            file.write(json.dumps(self.arguments) + "\n")
        instead = self.folder / "instead.json"
        told = json.loads(instead.read_text()).get(self.command) if instead.exists() else None
        if told is not None:
            sys.stdout.write(told.get("out", ""))
            sys.stderr.write(told.get("err", ""))
            sys.stdout.flush()
            while told.get("hangs") and not self.reader.poll():
                pass
            sys.exit(told.get("exit", 0))
        getattr(self, f"do_{self.command.replace(' ', '_').replace('-', '_')}")()

    def do_ls(self) -> None:
        listed = list(self.terminals())
        sys.stdout.write(json.dumps({"schema_version": 3, "sessions": [], "terminals": listed}))

    def do_snapshot(self) -> None:
        screen = {"schema_version": 3, "pane": 1, "lines": [], "title": self._target()}
        sys.stdout.write(json.dumps(screen))

    def do_watch(self) -> None:
        """Print what is told from now on, until the terminal, the server or the reader is gone."""
        self._target()
        terminal = self.words[0]
        lines = self.folder / f"{terminal}.lines"
        lines.touch()
        at = lines.stat().st_size
        (self.folder / f"{terminal}.watch-{os.getpid()}").touch()
        while not self.reader.poll(0):
            with lines.open("rb") as file:
                file.seek(at)
                told = file.read()
            whole = told[: told.rfind(b"\n") + 1]
            at += len(whole)
            os.write(1, whole)
            if not (self.folder / "server.json").exists() or terminal not in self.terminals():
                sys.exit(0)
            time.sleep(POLL_SECONDS)

    def do_agent_answer(self) -> None:
        """Type the answer if the title asks under that id, as phux 0.9 does."""
        title = self._target() or ""
        if (self.option("--choice") is None) == (self.option("--text") is None):
            self.refuse("one of --choice and --text")
        if not title.startswith("phux-ask"):
            self.fail("no_active_ask", "the pane is not asking anything", 2)
        name = title[len("phux-ask[") : title.index("]")] if title.startswith("phux-ask[") else ""
        if not name:
            self.fail("ask_unidentified", "the ask carries no id", 2)
        if name != self.option("--id"):
            self.fail("ask_stale", "the pane has moved on", 2)
        offered = title.partition("?s=")[2].split("|") if "?s=" in title else []
        text = self.option("--text") or offered[int(self.option("--choice") or 0) - 1]
        if offered and text not in offered and self.option("--allow-unlisted") is None:
            self.fail("answer_not_suggested", "not one of the answers", 2)
        sys.stdout.write(json.dumps({"schema_version": 1, "delivery": "ok"}))

    def do_paste(self) -> None:
        self._target()

    def do_send_keys(self) -> None:
        self._target()

    def do_ask(self) -> None:
        self._target()
        sys.stdout.write("reported\n")

    def _target(self) -> str | None:
        """Return the title of the terminal that is meant."""
        terminals = self.terminals()
        if not self.words or self.words[0] not in terminals:
            self.fail("no_such_target", "no such target", 1)
        return terminals[self.words[0]]


if __name__ == "__main__":
    Phux(Path(sys.argv[1]), sys.argv[2:]).run()
