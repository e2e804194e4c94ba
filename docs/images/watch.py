"""Record a program that asks by its title under `pynchy watch`, and draw its last screen.

A real host, a real terminal, a real answer from elsewhere. The recording (asciinema's format, to be
played with `asciinema play`) has what the terminal got, and when.

.venv/bin/python docs/images/watch.py
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent))
from make import HERE, PYNCHY, hosted, write

WIDTH, HEIGHT = 90, 12
ASKS = r"""
printf '\033[1mrelease 2.1\033[0m: all checks are green\n'
printf '\033]2;phux-ask[release]:Deploy 2.1 to production??s=Deploy now|Staging first\007'
printf 'Deploy now, or staging first? '
read -r answer
printf '\033]2;deploying\007'
printf '\033[32m✔\033[0m %s\n' "$answer"
"""
ANSWER = "Staging first"


def main() -> None:
    """Run the program, answer it from elsewhere when it has waited a little, and write both."""
    with tempfile.TemporaryDirectory() as data, hosted(data) as env:
        script = Path(data) / "release.sh"
        script.write_text(ASKS)
        events = record([PYNCHY, "watch", "--", "sh", str(script)], env)
    head = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": "pynchy watch -- ./release.sh"}
    lines = [json.dumps(head), *(json.dumps(event, ensure_ascii=False) for event in events)]
    (HERE / "watch.cast").write_text("\n".join(lines) + "\n")
    draw("".join(text for _, kind, text in events if kind == "o"))


def record(command: list[str], env: dict[str, str]) -> list[tuple[float, str, str]]:
    """Return what the terminal got, and when; a mark says when somebody answered elsewhere."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, env)  # noqa: S606 - what is recorded
    began, asked, events = time.monotonic(), False, []
    while True:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                data = os.read(terminal, 65_536)
            except OSError:
                return events
            if not data:
                return events
            events.append((round(time.monotonic() - began, 3), "o", data.decode()))
        elif not asked:
            listed = [PYNCHY, "pending", "--json"]
            told = subprocess.run(listed, env=env, capture_output=True, check=True)  # noqa: S603 - our own
            [question] = json.loads(told.stdout)
            events.append((round(time.monotonic() - began, 3), "m", f"answered: {ANSWER}"))
            answer = [PYNCHY, "answer", question["short_id"], ANSWER]
            subprocess.run(answer, env=env, capture_output=True, check=True)  # noqa: S603 - our own
            asked = True


def draw(output: str) -> None:
    """Write the picture of what was left on the screen."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text("$ pynchy watch -- ./release.sh", "bold green"))
        shown = output.replace("\r\n", "\n")
        for title in ("\x1b]2;deploying\x07",):
            shown = shown.replace(title, "")
        begin, _, rest = shown.partition("\x1b]2;phux-ask")
        console.print(Text.from_ansi(begin + rest.partition("\x07")[2]))
    write("watch", console.export_svg(title="pynchy watch"))


if __name__ == "__main__":
    main()
