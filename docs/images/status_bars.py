"""Make the pictures of docs/status-bars.md, from what a real host says.

The commands, tmux and the page are the real ones. SwiftBar, Waybar and starship are drawn, from
what `pynchy status` printed for them. The foreign agents are told to the host by this script.

.venv/bin/python docs/images/status_bars.py
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))
from inbox import FLAGS
from make import PERMISSIONS, PYNCHY, WIDTH, draw, write, write_request
from tests.tmux import Tmux

import pynchy.host
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.http.context import HttpContext
from pynchy.model import GroupName, Kind
from pynchy.sources.base import AgentState, SeenAgent, SeenAsk, ToolRun

HERE = Path(__file__).parent
DEPLOY: dict[str, object] = {
    "agent": "release agent",
    "task": "release 2.1",
    "questions": [
        {
            "question": "All checks are green. Deploy 2.1 to production?",
            "options": ["Deploy now", "Staging first", "Do not deploy"],
        }
    ],
}
SANS = "-apple-system, 'Segoe UI', 'Noto Sans', 'Apple Color Emoji', 'Noto Color Emoji', sans-serif"


def seen_agents() -> list[SeenAgent]:
    """Return four sessions of OpenCode: at work, perhaps waiting, asking, idle."""
    now = datetime.now(UTC)

    def session(folder: str, state: AgentState, seconds: int, **fields: Any) -> SeenAgent:  # noqa: ANN401 - any field
        named = ("opencode", GroupName("opencode"), "opencode", f"ses_{folder}")
        since = now - timedelta(seconds=seconds)
        return SeenAgent(*named, state, task=folder, since=since, **fields)

    def bash(command: str, seconds: int, *, is_guess: bool = False) -> tuple[ToolRun, ...]:
        return (ToolRun("bash", command, now - timedelta(seconds=seconds), is_guess),)

    ask = SeenAsk(Kind.QUESTION, "Which colour for the button?", now - timedelta(minutes=4))
    fixed = {"title": "Fix the build", "tools": bash("make test", 3), "open_todos": 3}
    moved = {"title": "Move the orders", "tools": bash("./move.sh", 90, is_guess=True)}
    return [
        session("shop", AgentState.WORKING, 95, **fixed),
        session("orders", AgentState.PERMISSION, 90, guessed=True, **moved),
        session("site", AgentState.WAITING, 240, asks=(ask,)),
        session("docs", AgentState.IDLE, 900, title="Proof-read the guide"),
    ]


async def serve(folder: str) -> None:
    """Run a host that sees these agents, and say when it is ready."""
    agents = seen_agents()
    pynchy.host.HttpContext = (  # type: ignore[misc, assignment]
        lambda **parts: HttpContext(**{**parts, "seen_agents": lambda: agents})
    )
    settings = Settings.model_validate({"http": {"port": 0}})
    async with pynchy.host.running_host(settings, DataFolder(Path(folder))):
        print("ready", flush=True)  # noqa: T201 - who started it waits for that
        await asyncio.Event().wait()


@contextmanager
def hosted(data: str) -> Iterator[dict[str, str]]:
    """Run that host for the time being."""
    path = f"{Path(PYNCHY).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PYNCHY_DATA_DIR": data, "COLUMNS": str(WIDTH), "PATH": path}
    env |= {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    words = [sys.executable, __file__, "--host", data]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE) as host:  # noqa: S603 - our own
        assert host.stdout is not None  # noqa: S101 - it is a pipe
        host.stdout.readline()
        try:
            yield env
        finally:
            host.terminate()


def main() -> None:
    """Ask a few things, and draw what each place shows."""
    with tempfile.TemporaryDirectory() as data, hosted(data) as env:
        write_request(Path(data), "web-team", "q1", DEPLOY)
        write_request(Path(data), "web-team", "may1", PERMISSIONS[0])
        while printed("pending", env).count("\n") < 2:  # noqa: PLR2004 - what was just asked
            time.sleep(0.1)
        draw("agents", env, ["agents"])
        draw_menu(printed("status", env, "--menu"))
        draw_waybar(json.loads(printed("status", env, "--waybar")))
        draw_prompt(printed("status", env, "--line").strip())
        draw_tmux(Path(data), env)
        draw_page(printed("inbox", env, "--no-browser").split(": ", 1)[1].strip())


def printed(command: str, env: dict[str, str], *options: str) -> str:
    """Return what the command prints."""
    return subprocess.check_output([PYNCHY, command, *options], env=env, text=True)  # noqa: S603 - our own


def draw_tmux(data: Path, env: dict[str, str]) -> None:
    """Draw a real tmux with the line in its status bar, as another tmux around it sees it."""
    settings = data.parent / "pictured-tmux.conf"
    settings.write_text(
        "set -g status-right '#(pynchy status --line)'\nset -g status-interval 1\n"
        "set -g status-right-length 60\nset -g window-status-current-format ' shop '\n"
        "set -g status-left ''\n"
    )
    inner, outer = data.parent / "inner.sock", Tmux(data.parent / "outer.sock", env)
    shell = (
        "printf '$ git push\\nTo example.org:shop.git\\n   4387bed..fa04121  main\\n$ '; exec cat"
    )
    try:
        outer.start(f'tmux -S {inner} -f {settings} new-session "{shell}"', width=90, height=8)
        while "⏳" not in (screen := outer.do("capture-pane", "-p", "-e")):
            time.sleep(0.2)
    finally:
        subprocess.run(["tmux", "-S", str(inner), "kill-server"], check=False)  # noqa: S603, S607 - our own
        outer.close()
        settings.unlink()
    record("status-tmux", 90, Text.from_ansi(screen.rstrip("\n")), "tmux")


def draw_prompt(line: str) -> None:
    """Draw a prompt of starship with the line in it."""
    prompt = Text("\nshop", "bold cyan").append(" on ", "default").append("main ", "bold magenta")
    prompt.append(f"{line}\n", "default").append("\u276f ", "bold green")
    record("status-starship", 60, prompt, "starship (drawn)")


def record(name: str, width: int, text: Text, title: str) -> None:
    """Write the text as a terminal would show it."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, force_terminal=True)
        console.print(text)
    write(name, console.export_svg(title=title))


def draw_menu(menu: str) -> None:
    """Draw the menu as SwiftBar would show it, with the first sub-menu open."""
    title, _, body = menu.rstrip("\n").partition("\n---\n")
    rows, opened = _rows(body.split("\n"))
    parent = next(at for at, (_, _, subs) in enumerate(rows) if subs is opened)
    parts = [
        '<rect width="900" height="30" fill="#ececec"/>',
        _words(24, 20, title),
        _box(12, 34, 440, len(rows)),
    ]
    for at, (text, colour, subs) in enumerate(rows):
        y = 56 + 22 * at
        if text == "---":
            parts.append(f'<line x1="24" x2="440" y1="{y - 5}" y2="{y - 5}" stroke="#ddd"/>')
            continue
        parts.append(_words(26, y, text, colour, small=text[0] in "🔧└"))
        parts += [_words(432, y, "\u203a", "#777")] if subs else []
    top = 40 + 22 * parent
    parts.append(_box(448, top, 440, len(opened)))
    for at, (text, colour) in enumerate(opened):
        parts.append(_words(462, top + 22 + 22 * at, text, colour, small=text.startswith("┊")))
    height = max(60 + 22 * len(rows), top + 30 + 22 * len(opened))
    _svg("status-menu", 900, height, parts)


Row = tuple[str, str, list[tuple[str, str]]]


def _rows(lines: list[str]) -> tuple[list[Row], list[tuple[str, str]]]:
    """Return the rows of a menu with their sub-menus, and the first of these."""
    rows: list[Row] = []
    for line in lines:
        text, _, told = line.partition(" | ")
        colour = "#c2570c" if 'color="orange"' in told else "#222"
        if text.startswith("--") and text != "---":
            rows[-1][2].append((text[2:], colour))
        else:
            rows.append((text, colour, []))
    return rows, next(subs for _, _, subs in rows if subs)


def draw_waybar(shown: dict[str, str]) -> None:
    """Draw the module as Waybar would show it, with its tooltip open."""
    lines = [re.sub(r"^ {4}", "\u2003\u2003", line) for line in shown["tooltip"].split("\n")]
    height = 22 * len(lines) + 16
    parts = [
        '<rect width="640" height="30" fill="#23262e"/>',
        _words(16, 20, "1  2  3", "#9aa3b2"),
        '<rect x="330" y="0" width="210" height="30" fill="#7a4a12"/>',
        _words(344, 20, shown["text"], "#fff"),
        _words(566, 20, "14:05", "#dfe3ea"),
        f'<rect x="90" y="38" width="540" height="{height}" rx="6" fill="#2e323c"/>',
    ]
    # The tooltip is markup already, and is made so again.
    parts += [_words(104, 60 + 22 * at, unescape(line), "#e6e9ef") for at, line in enumerate(lines)]
    _svg("status-waybar", 640, height + 48, parts)


def _words(x: int, y: int, text: str, colour: str = "#222", *, small: bool = False) -> str:
    size = 12 if small else 13.5
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}">{escape(text)}</text>'


def _box(x: int, y: int, width: int, lines: int) -> str:
    size = f'width="{width}" height="{22 * lines + 12}"'
    return f'<rect x="{x}" y="{y}" {size} rx="8" fill="#fbfbfb" stroke="#bbb"/>'


def _svg(name: str, width: int, height: int, parts: list[str]) -> None:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
    back = f'<rect width="{width}" height="{height}" fill="#d9dee6"/>'
    body = "\n".join([f'{head} font-family="{SANS}">', back, *parts, "</svg>", ""])
    (HERE / f"{name}.svg").write_text(body)


def draw_page(link: str) -> None:
    """Write the picture of the Agents page, light and dark."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{link}&next=/agents")
        page.get_by_label("Your name").fill("ana")
        page.get_by_role("button", name="Sign in").click()
        page.locator("[data-link=live]").wait_for()
        for name, scheme in (("agents-page", "light"), ("agents-page-dark", "dark")):
            seen = browser.new_context(
                viewport={"width": 900, "height": 1000},
                color_scheme=scheme,  # type: ignore[arg-type]
                storage_state=context.storage_state(),
                device_scale_factor=1.5,
            ).new_page()
            seen.goto(link.partition("/sign-in")[0] + "/agents")
            seen.locator("[data-link=live]").wait_for()
            seen.screenshot(path=HERE / f"{name}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    if "--host" in sys.argv:
        asyncio.run(serve(sys.argv[-1]))
    else:
        main()
