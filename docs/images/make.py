"""Make the pictures of the README: run the real commands on a real host and draw what they print.

.venv/bin/python docs/images/make.py
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pynchy.cli.screen.inbox import InboxApp
from pynchy.data_dir import DataFolder

PYNCHY = str(Path(sys.executable).with_name("pynchy"))
HERE = Path(__file__).parent
WIDTH = 118


def main() -> None:
    """Ask a few things, and draw `pynchy pending`, `pynchy show` and `pynchy inbox`."""
    with tempfile.TemporaryDirectory() as data, hosted(data):
        for number, request in enumerate(PERMISSIONS):
            write_request(Path(data), "web-team", f"may{number}", request)
        asyncio.run(draw_inbox(DataFolder(Path(data)), "permission-terminal", "may0"))
    with tempfile.TemporaryDirectory() as data, hosted(data) as env:
        askers = [ask(env, *words) for words in QUESTIONS]
        draw("pending", env, ["pending"])
        short_id = json.loads(run(env, ["pending", "--json"]))[0]["short_id"]
        draw("show", env, ["show", short_id])
        write_request(Path(data), "web-team", "picture", PICTURED)
        asyncio.run(draw_inbox(DataFolder(Path(data)), "inbox-terminal", "picture"))
        for asker in askers:
            asker.kill()
            asker.wait()


QUESTIONS = [
    (
        "Deploy 2.1 to production?",
        "-o", "Yes", "-o", "Staging first", "-o", "No",
        "--group", "web-team", "--title", "Release 2.1", "--urgency", "high",
    ),
    ("Which browsers must it support?", "-o", "Firefox", "-o", "Chrome", "-o", "Safari",
     "--multi", "--group", "web-team"),
    ("What should the migration be called?", "--group", "backend"),
]  # fmt: skip


PERMISSIONS: list[dict[str, object]] = [
    {
        "agent": "claude",
        "task": "release 2.1",
        "session_id": "s1",
        "wait_seconds": 600,
        "questions": [],
        "permission": {
            "program": "claude",
            "tool": "Bash",
            "input": {"command": "npm run test", "description": "Run the tests"},
            "cwd": "/srv/shop",
            "editable": True,
        },
    },
    {
        "agent": "claude",
        "task": "split the billing module",
        "session_id": "s2",
        "wait_seconds": 600,
        "questions": [],
        "permission": {
            "program": "claude",
            "tool": "Edit",
            "input": {
                "file_path": "/srv/shop/billing.py",
                "old_string": (
                    "class Invoice:\n    def pay(self):\n        charge(self.total)\n"
                    "        self.paid = True"
                ),
                "new_string": (
                    "class Invoice:\n    def pay(self, gateway: Gateway) -> Receipt:\n"
                    "        receipt = gateway.charge(self.total)\n        self.paid = True\n"
                    "        return receipt"
                ),
            },
            "cwd": "/srv/shop",
            "editable": True,
        },
    },
    {
        "agent": "deploy agent",
        "task": "release 2.1",
        "wait_seconds": 600,
        "questions": [],
        "approval": {
            "action": "Deploy 2.1 to production?",
            "details": "All checks are green.",
            "preview": "14 changes, 2 migrations",
            "risk": "high",
        },
    },
]


PICTURED: dict[str, object] = {
    "agent": "claude",
    "task": "release 2.1",
    "title": "A test fails only on Fridays",
    "urgency": "high",
    "wait_seconds": 600,
    "questions": [
        {
            "question": "`test_weekend` expects **two** days. Which of them is right?",
            "default": ["Leave both alone"],
            "options": [
                {"label": "The code", "description": "Change the test and go on"},
                {
                    "label": "The test",
                    "description": "Change the code as below",
                    "preview": (
                        "--- a/calendar.py\n+++ b/calendar.py\n@@ -12,3 +12,3 @@\n"
                        " def weekend(day):\n"
                        "-    return day.weekday() > 5\n+    return day.weekday() >= 5"
                    ),
                },
                {"label": "Leave both alone", "description": "I look at it on Monday"},
            ],
        }
    ],
}


@contextmanager
def hosted(data: str) -> Iterator[dict[str, str]]:
    """Run a host for the time being."""
    env = {**os.environ, "PYNCHY_DATA_DIR": data, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    serve = [PYNCHY, "serve", "--port", "0", "--log-level", "error"]
    with subprocess.Popen(serve, env=env, stdout=subprocess.PIPE) as host:  # noqa: S603 - our own
        assert host.stdout is not None  # noqa: S101 - it is a pipe
        host.stdout.readline()
        try:
            yield env
        finally:
            host.terminate()


def ask(env: dict[str, str], *words: str) -> subprocess.Popen[str]:
    """Ask in the background; return when the host has the question."""
    asker = subprocess.Popen(  # noqa: S603 - our own
        [PYNCHY, "ask", *words], env=env, stderr=subprocess.PIPE, text=True
    )
    assert asker.stderr is not None  # noqa: S101 - it is a pipe
    asker.stderr.readline()
    return asker


def run(env: dict[str, str], words: list[str]) -> str:
    """Run the command at a terminal, and return what it printed."""
    parent, child = pty.openpty()
    with subprocess.Popen([PYNCHY, *words], env=env, stdout=child, stderr=child) as process:  # noqa: S603 - our own
        os.close(child)
        printed = b"".join(_read_all(parent))
        process.wait()
    return printed.decode()


def _read_all(fd: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(fd, 65_536)
        except OSError:  # the terminal is closed
            return
        if not chunk:
            return
        yield chunk


def draw(name: str, env: dict[str, str], words: list[str]) -> None:
    """Write the picture of a command."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f"$ pynchy {' '.join(words)}", "bold green"))
        console.print(Text.from_ansi(run(env, words).replace("\r\n", "\n")))
    write(name, console.export_svg(title="pynchy"))


def write_request(data: Path, group: str, request_id: str, request: dict[str, object]) -> None:
    """Write the request as an agent would."""
    tasks = data / "ipc" / group / "tasks"
    tasks.mkdir(parents=True, exist_ok=True, mode=0o700)
    body = {"v": 1, "type": "ask_user:ask", "request_id": request_id, **request}
    whole = tasks / f".{request_id}.tmp"
    whole.write_text(json.dumps(body))
    whole.rename(tasks / f"{request_id}.json")


async def draw_inbox(data: DataFolder, name: str, request_id: str) -> None:
    """Write the picture of the inbox at that question, with its second option marked."""
    app = InboxApp(data, "ana")
    async with app.run_test(size=(WIDTH, 32)) as pilot:
        while (entry := app.inbox.current) is None or entry.view.request_id != request_id:
            await pilot.press("n")
            await pilot.pause(0.1)
        while app.inbox.ignores_keys:
            await pilot.pause(0.1)
        await pilot.press("2")
        await pilot.pause(0.5)
        write(name, app.export_screenshot(title="pynchy inbox"))


def write(name: str, svg: str) -> None:
    """Write a picture that fetches no font from anywhere."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (HERE / f"{name}.svg").write_text(svg)


if __name__ == "__main__":
    main()
