"""`pynchy status --menu` and `--waybar`: what they show, what a click does, and what cannot be."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.seen_agents import SeeingHost, permission, question, seeing_host, seen, tool
from tests.unit.cli.support import Run

from pynchy.cli.agent_views import by_press, read_agents
from pynchy.cli.status import Bar, menu, waybar
from pynchy.model import GroupName
from pynchy.sources.base import AgentState
from pynchy.testing import NOON

DEPLOY = {"question": "Deploy?", "options": ["Yes", {"label": "No", "description": "wait"}]}
PUSH = {"program": "claude", "tool": "Bash", "input": {"command": "git push"}, "cwd": "/srv"}
STATUS = {"agents": 2, "agents_working": 2, "questions_pending": 1}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeeingHost]:
    with seeing_host(tmp_path / "data", monkeypatch) as host:
        yield host


class Item:
    """One line of a menu, read as SwiftBar and xbar read it: up to the first `|`, then values."""

    def __init__(self, line: str) -> None:
        self.text, _, told = line.partition("|")
        self.text = self.text.rstrip()
        pairs = re.findall(r'(\w+)="([^"]*)"', told)
        assert re.fullmatch(r'(?: *\w+="[^"]*")*', told)
        self.values = dict(pairs)
        assert len(self.values) == len(pairs)

    @property
    def command(self) -> list[str]:
        """What a click runs."""
        names = sorted((n for n in self.values if n.startswith("param")), key=lambda n: int(n[5:]))
        return [self.values["bash"], *(self.values[name] for name in names)]


def read(printed: str) -> list[Item]:
    """Return the items below the title."""
    title, rule, *lines = printed.rstrip("\n").split("\n")
    assert rule == "---"
    assert "|" not in title
    return [Item(line) for line in lines if line != "---"]


def test_the_line_counts_each_sort_and_leaves_out_what_is_zero(host: SeeingHost, run: Run) -> None:
    assert run("status", "--line").stdout == "\n"
    host.ask(DEPLOY)
    host.agents = [
        seen("a", open_todos=3),
        seen("b", AgentState.IDLE),
        seen("c", AgentState.PERMISSION, asks=(permission(),)),
    ]

    assert run("status", "--line").stdout == "🤖 2 🔒 1 🔔 1 ⏳ 3\n"


def test_a_person_is_told_of_idle_agents_and_of_what_waits_elsewhere(
    host: SeeingHost, run: Run
) -> None:
    host.agents = [
        seen("a", AgentState.IDLE, open_todos=2),
        seen("b", AgentState.WAITING, asks=(question(),)),
        seen("c", tools=(tool(may_need_permission=True),)),
    ]

    told = run("status").stdout

    assert "agents       1 at work, 1 idle, 1 waiting for you\n" in told
    assert "elsewhere    2 at agents' own screens, 1 of them a guess\n" in told
    assert "permissions  1\n" in told
    assert "todos        2 open\n" in told
    assert "pynchy agents" in told


@pytest.mark.parametrize("way", ["--menu", "--waybar"])
def test_the_name_of_an_agent_in_a_menu_cannot_pass_for_another_group(
    host: SeeingHost, run: Run, way: str
) -> None:
    imitated = "an agent · other · release 2.1 for all of our customers"
    host.agents = [seen(imitated, task="x" * 100), seen("n" * 500)]

    told = run("status", way).stdout.replace("\\n", "\n").splitlines()

    rows = [line for line in told if "an agent · other" in line or "nnn" in line]
    assert len(rows) == 2
    assert all("web-team · an" in row or "web-team · nn" in row for row in rows)


def test_the_menu_has_the_line_and_below_it_every_agent_the_most_pressing_first(
    host: SeeingHost, run: Run
) -> None:
    host.agents = [
        seen("idler", AgentState.IDLE, task="docs"),
        seen("builder", tools=(tool(), tool("x", may_need_permission=True)), title="Mend it"),
        seen("asker", AgentState.WAITING, asks=(question(),)),
        seen("fixer", AgentState.PERMISSION, asks=(permission(),)),
    ]

    printed = run("status", "--menu").stdout
    items = read(printed)

    assert printed.startswith("🤖 3 🔒 2 🔔 1\n---\n")
    assert [item.text for item in items] == [
        "🔒 web-team · fixer",
        '└ "bash: git push" (at its own screen)',
        "🔔 web-team · asker",
        '└ "Which branch?" (at its own screen)',
        "🤖 web-team · builder: Mend it",
        "🔧 bash: make test (1h 5m)",
        "🔧 bash: x (may need permission, running 1h 5m)",
        "💤 web-team · idler · docs",
        "Open the inbox",
        "Look again",
    ]
    orange = [item.text for item in items if item.values.get("color") == "orange"]
    assert orange == [items[0].text, items[1].text, items[6].text]
    assert items[0].values["href"] == f"{host.data.host().url}/agents"


def test_a_click_answers_a_question_by_the_number_of_its_option(host: SeeingHost, run: Run) -> None:
    short_id = host.ask(DEPLOY)

    items = {item.text: item for item in read(run("status", "--menu").stdout)}

    chosen = items["--2. No: wait"]
    assert (chosen.values["terminal"], chosen.values["refresh"]) == ("false", "true")
    assert "--┊ Deploy?" in items
    assert items["--Open…"].values["href"].endswith("/q/web-team/q001")
    subprocess.run(chosen.command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    ending = host.client.question(short_id)["ending"]
    assert ending["answers"][0]["selected"] == ["No"]


def test_a_click_allows_once_what_can_be_read_whole_and_never_always(
    host: SeeingHost, run: Run
) -> None:
    short_id = host.ask(permission=PUSH, agent="claude")

    items = {item.text: item for item in read(run("status", "--menu").stdout)}

    clicks = [text for text, item in items.items() if "bash" in item.values]
    assert clicks == ["--Allow once", "--Deny"]
    assert "--┊ git push" in items
    assert items['└ "git push"'].values["color"] == "orange"
    subprocess.run(items["--Allow once"].command, check=True, capture_output=True)
    assert host.client.question(short_id)["ending"]["answers"][0]["selected"] == ["Allow once"]
    assert host.client.rules() == []


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"permission": {**PUSH, "input": {"command": "echo `:\n```reboot"}}}, "```reboot"),
        ({"permission": {**PUSH, "input": {"command": "cat <<x\n```\nrm x\n```"}}}, "```"),
        ({"approval": {"action": "Run on\n\n```production\nold rows\n```"}}, "production"),
        ({"approval": {"action": "Run\n\n    x; `:\n```reboot\n\nas root"}}, "```reboot"),
    ],
)
def test_the_menu_hid_a_line_of_what_a_click_allows(
    host: SeeingHost, run: Run, asked: dict[str, Any], shown: str
) -> None:
    host.ask(**asked)

    items = read(run("status", "--menu").stdout)

    lines = [text.rstrip(" \u23ce") for text in (item.text for item in items)]
    assert f"--┊ {shown}" in lines


def test_what_has_no_room_in_a_menu_can_be_denied_and_opened_but_not_allowed(
    host: SeeingHost, run: Run
) -> None:
    long = {**PUSH, "input": {"command": "echo " + "x" * 900}}
    host.ask(permission=long)
    host.ask({"question": "Deploy?\n" * 20, "options": ["Yes", "No"]})
    host.ask({"question": "Deploy?", "options": ["Yes", {"label": "No", "preview": "a diff"}]})
    host.ask({"question": "Which?", "options": ["A", "B"], "multiSelect": True})
    host.ask("Which name?")

    items = read(run("status", "--menu").stdout)

    assert [item.text for item in items if "bash" in item.values] == ["--Deny"]
    opened = [item for item in items if "/q/web-team/" in item.values.get("href", "")]
    assert len(opened) == 5


def test_an_answer_that_did_not_arrive_can_be_tried_again() -> None:
    rows = [
        {
            "group": "g",
            "agent": "a",
            "standing": "undelivered",
            "state": "ended",
            "questions": [{"short_id": "k7qm"}],
        }
    ]
    bar = Bar("http://127.0.0.1:1", {"undelivered": 1}, read_agents(rows), {}, NOON)

    items = read(menu(bar, ("/x/pynchy",)))

    assert items[0].text == "📭 g · a"
    assert items[2].command == ["/x/pynchy", "retry", "k7qm"]


EVIL = (
    "x | bash=/bin/sh param1=-c param2='id' terminal=false",
    'y" bash="/bin/sh',
    "z\n--Allow everything | bash=/bin/sh",
    "---\n--- | refresh=true",
    "\\n--a \\x1b[31m :trash: \u202e\u2028w\r\x85v",
    "<b>bold</b> & 'quoted' \"twice\"",
)


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_that_an_agent_says_adds_a_line_a_parameter_or_markup(
    host: SeeingHost, run: Run, evil: str
) -> None:
    host.ask({"question": evil, "options": [evil, "No"]}, agent=evil, title=evil, task=evil)
    plain = {"agents": len(read(run("status", "--menu").stdout))}
    told = {"title": evil, "task": evil, "session_id": "s", "tools": (tool(evil),)}
    host.agents = [seen(evil, AgentState.WAITING, asks=(question(evil),), **told)]

    items = read(run("status", "--menu").stdout)
    shown = json.loads(run("status", "--waybar").stdout)

    assert len(items) == plain["agents"] + 3
    clicks = [item.command for item in items if "bash" in item.values]
    assert {Path(command[0]).name for command in clicks} <= {"pynchy"}
    assert all(command[3] == "answer" for command in clicks)
    assert not any("\\" in item.text or re.search(r":[\w.]+:", item.text) for item in items)
    assert all(item.text.isprintable() for item in items)
    text = ET.fromstring(f"<tip>{shown['tooltip']}</tip>")  # noqa: S314 - our own
    assert list(text) == []
    assert shown["tooltip"].count("\n") == 4


@pytest.mark.parametrize("path", ['/a"b', "/a|b", "/a\\b", "/a\nb", "/a'b", "/a\udcffb"])
def test_a_program_whose_path_cannot_be_written_is_not_run(path: str) -> None:
    asked = {"questions": [{"question": "Deploy?", "options": [{"label": "Yes"}]}]}
    ask = {"kind": "question", "title": "Deploy?", "group": "g", "request_id": "q"}
    rows = [{"group": "g", "state": "waiting", "asks": [{**ask, "short_id": "k7qm"}]}]
    questions = {("g", "q"): asked}
    bar = Bar("http://127.0.0.1:1", STATUS, read_agents(rows), questions, NOON)

    assert [i for i in read(menu(bar, (path,))) if "bash" in i.values] == []
    assert [i for i in read(menu(bar, ("/x y/pynchy",))) if "bash" in i.values] != []


def test_many_agents_make_no_endless_menu() -> None:
    rows = [{"agent": f"a{n}", "group": "g", "state": "working"} for n in range(200)]
    bar = Bar("http://127.0.0.1:1", STATUS, read_agents(rows), {}, NOON)

    assert "… and 170 more" in menu(bar, ())
    assert json.loads(waybar(bar))["tooltip"].endswith("… and 170 more")


def test_one_group_emptied_the_status_bars_of_the_others(host: SeeingHost, run: Run) -> None:
    flood = [seen(f"evil {n}", AgentState.PERMISSION, asks=(permission(),)) for n in range(40)]
    honest = seen("honest", AgentState.WAITING, asks=(question(),), group=GroupName("prod"))
    host.agents = [*flood, honest]

    assert "honest" in run("status", "--menu").stdout
    assert "honest" in json.loads(run("status", "--waybar").stdout)["tooltip"]


def test_what_is_urgent_comes_first_in_a_menu() -> None:
    ask = {"kind": "question", "title": "Deploy?", "group": "g", "request_id": "q"}
    calm = {"group": "a", "agent": "calm", "state": "permission", "asks": [ask]}
    urgent = {"group": "b", "agent": "urgent", "state": "waiting"}
    rows = [calm, {**urgent, "asks": [{**ask, "urgency": "high"}]}]

    assert [agent.name for agent in by_press(read_agents(rows))] == ["urgent", "calm"]


def test_waybar_gets_text_tooltip_and_a_class(host: SeeingHost, run: Run) -> None:
    def shown() -> dict[str, Any]:
        return dict(json.loads(run("status", "--waybar").stdout))

    nothing = shown()
    host.agents = [seen("builder", tools=(tool(),))]
    working = shown()
    host.agents = [seen("fixer", AgentState.PERMISSION, asks=(permission(),))]

    assert nothing == {"text": "", "tooltip": "", "class": "idle", "alt": "idle"}
    assert (working["text"], working["class"]) == ("🤖 1", "working")
    assert working["tooltip"] == ("🤖 working: web-team · builder\n    🔧 bash: make test (1h 5m)")
    assert (shown()["text"], shown()["class"]) == ("🤖 1 🔒 1", "permission")


def test_without_a_host_every_bar_is_whole_and_the_exit_code_0(run: Run) -> None:
    menu_, bar = run("status", "--menu"), run("status", "--waybar")

    assert (menu_.exit_code, bar.exit_code, menu_.stderr, bar.stderr) == (0, 0, "", "")
    assert menu_.stdout == "🤖\n---\nNo host runs. Start it with: pynchy serve\n"
    assert json.loads(bar.stdout) == {"text": "", "tooltip": "", "class": "off", "alt": "off"}


def test_a_host_that_says_something_else_leaves_every_bar_whole(
    host: SeeingHost, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.data_dir.DataFolder._read_token", lambda _: "not the token")
    assert host.data

    menu_, bar = run("status", "--menu"), run("status", "--waybar")

    assert (menu_.exit_code, bar.exit_code) == (0, 0)
    assert menu_.stdout.startswith("⚠\n---\n")
    assert json.loads(bar.stdout)["class"] == "problem"


def test_a_bar_of_an_old_encoding_is_printed_all_the_same(host: SeeingHost) -> None:
    host.agents = [seen("bäcker", tools=(tool(),))]

    for option in ("--menu", "--waybar"):
        command = [sys.executable, "-m", "pynchy", "status", option]
        folder = {"PYNCHY_DATA_DIR": str(host.data.path), "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(
            command, env={**os.environ, **folder}, capture_output=True, check=True
        )
        assert "bäcker" in done.stdout.decode()


def test_only_one_sort_of_bar_is_printed(run: Run) -> None:
    assert run("status", "--menu", "--waybar").exit_code == 2
    assert run("status", "--line", "--menu").exit_code == 2


def test_a_menu_needs_nothing_heavy(host: SeeingHost) -> None:
    host.ask(DEPLOY)
    heavy = "{'textual', 'rich', 'pydantic', 'asyncio'}"
    code = (
        "import sys, atexit; from pynchy.__main__ import main; "
        f"atexit.register(lambda: print(sorted({heavy} & set(sys.modules)))); main()"
    )
    words = ["status", "--menu", "--data-dir", str(host.data.path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, check=True, text=True
    )

    assert done.stdout.endswith("\n[]\n")
