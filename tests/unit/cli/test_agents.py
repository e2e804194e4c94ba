"""`pynchy agents`: every agent in one list, ours and foreign, once or as it changes."""

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, Group
from tests.seen_agents import (
    LONG_SECONDS,
    SOURCE,
    SeeingHost,
    permission,
    question,
    seeing_host,
    seen,
    tool,
)
from tests.unit.cli.support import Run
from tests.unit.cli.test_events import following
from tests.unit.cli.test_terminal import at_terminal

from pynchy.cli.agent_views import HostTool
from pynchy.cli.agents import agents_screen
from pynchy.model import GroupName, Urgency
from pynchy.sources.base import AgentState

# How long ago something was that has just been done.
_AGE = re.compile(r"\b[0-9]{1,2}s\b")
DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeeingHost]:
    with seeing_host(tmp_path / "data", monkeypatch) as host:
        yield host


def drawn(views: list[dict[str, Any]], width: int = 100) -> list[str]:
    """Return what a terminal of that width shows, line by line."""
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(Group(*agents_screen(views, datetime.now(UTC))))
    assert isinstance(console.file, StringIO)
    return [_AGE.sub("Ns", line).rstrip() for line in console.file.getvalue().splitlines()]


def test_agents_are_listed_by_source_and_group_with_what_each_does(host: SeeingHost) -> None:
    short_id = host.ask(DEPLOY, agent="release", title="Release 2.1")
    long_ago = datetime.now(UTC) - timedelta(seconds=LONG_SECONDS)
    host.agents = [
        seen("idler", AgentState.IDLE, open_todos=1),
        seen("fixer", AgentState.PERMISSION, asks=(permission(),)),
        seen("asker", AgentState.WAITING, asks=(question(),), group=GroupName("other")),
        seen("builder", tools=(tool(), tool("cat x", None)), title="Mend it", since=long_ago),
    ]

    lines = drawn(host.client.agents())

    assert lines == [
        "pynchy · web-team",
        "  🔔 release  waiting on you  Ns",
        f"     └ pynchy answer {short_id}  “Release 2.1”",
        "",
        f"{SOURCE} · other",
        "  🔔 asker  waiting on you",
        "     └ at its own screen  “Which branch?”",
        "",
        f"{SOURCE} · web-team",
        "  🔒 fixer  needs a permission",
        "     └ at its own screen  “bash: git push”",
        "  🤖 builder  working  1h 5m  Mend it",
        "     🔧 1h 5m  bash: make test",
        "     🔧 bash: cat x",
        "  💤 idler  idle  ⏳ 1 todo",
    ]


def test_what_is_asked_at_its_own_screen_is_told_in_full_where_there_is_room(
    host: SeeingHost,
) -> None:
    asked = {"text": "May I, with a merge?", "options": ("Yes", "No")}
    more = {"agent": "Executor", "urgency": Urgency.HIGH}
    host.agents = [
        seen("asker", AgentState.WAITING, asks=(question("Merge?", **asked, **more),)),
        seen("other", AgentState.WAITING, asks=(question("Go?", urgency=Urgency.LOW),)),
    ]
    views = host.client.agents()

    assert drawn(views)[1:] == [
        "  🔔 asker  waiting on you",
        "     └ at its own screen  “Merge?”  urgent  Executor: May I, with a merge? (Yes / No)",
        "  🔔 other  waiting on you",
        "     └ at its own screen  “Go?”",
    ]
    assert drawn(views, width=50)[2] == "     └ at its own screen  “Merge?”  urgent  Execu…"


def test_agents_of_one_program_are_told_apart_by_where_they_work(host: SeeingHost) -> None:
    named = {"source": "opencode", "group": GroupName("opencode")}
    host.agents = [
        seen("OpenCode", session_id="s1", task="shop", title="Mend it", **named),
        seen("OpenCode", AgentState.WAITING, task="blog", asks=(question(),), **named),
    ]

    assert drawn(host.client.agents()) == [
        "opencode",
        "  🔔 OpenCode  blog  waiting on you",
        "     └ at its own screen  “Which branch?”",
        "  🤖 OpenCode  shop  working  Mend it",
    ]


def test_a_guess_is_called_one_for_each_tool(host: SeeingHost) -> None:
    flagged = (tool(may_need_permission=True), tool("x", None, may_need_permission=True), tool())
    host.agents = [seen("old", AgentState.PERMISSION, guessed=True, tools=flagged)]

    assert drawn(host.client.agents())[1:] == [
        "  🔒 old  may need permission (a guess)",
        "     🔧 may need permission, running 1h 5m (a guess)  bash: make test",
        "     🔧 may need permission (a guess)  bash: x",
        "     🔧 1h 5m  bash: make test",
    ]


def test_of_a_program_that_is_only_connected_it_says_that_nothing_is_known() -> None:
    row = {"group": "g", "agent": "claude", "task": "shop", "state": "idle", "guessed": True}

    assert drawn([row])[1:] == ["  ⚪ claude  shop  connected; what it does is not known"]


@pytest.mark.parametrize(
    ("seconds", "is_guess", "told"),
    [
        (6.4, False, "6s"),
        (90.9, True, "may need permission, running 1m 30s"),
        (None, True, "may need permission"),
        (None, False, ""),
    ],
)
def test_how_long_a_tool_runs_is_told_in_minutes(
    seconds: float | None, *, is_guess: bool, told: str
) -> None:
    assert HostTool("bash", "x", seconds, is_guess).how_long == told


def test_without_a_terminal_each_agent_is_one_line_of_fields(host: SeeingHost, run: Run) -> None:
    short_id = host.ask(DEPLOY, agent="release", session_id="s1")
    host.agents = [
        seen(
            "builder",
            tools=(tool(), tool("a\tb\nc", None)),
            title="Mend it",
            open_todos=2,
            task="ci",
        )
    ]

    printed = _AGE.sub("Ns", run("agents").stdout)
    ours, foreign = [line.split("\t") for line in printed.splitlines()]

    assert ours == [
        *(
            "pynchy",
            "web-team",
            "release",
            "s1",
            "waiting",
            "",
            "Ns",
            "Deploy?",
            short_id,
            "",
            "0",
            "",
        )
    ]
    tools = "bash: make test (1h 5m); bash: a b c"
    assert foreign == [
        *(SOURCE, "web-team", "builder", "ses_builder", "working", "", "", "Mend it", "", tools),
        *("2", "ci"),
    ]


def test_programs_get_the_rows_as_the_host_tells_them(host: SeeingHost, run: Run) -> None:
    host.agents = [seen("idler", AgentState.IDLE)]

    [row] = json.loads(run("agents", "--json").stdout)

    assert row == host.client.agents()[0]
    assert (row["source"], row["state"]) == (SOURCE, "idle")


def test_nobody_here_is_told_what_to_do_next(host: SeeingHost, run: Run) -> None:
    del host

    result = run("agents")

    assert result.exit_code == 0
    for hint in ("pynchy run", "pynchy connect", "[sources.opencode]"):
        assert hint in result.stdout


def test_without_a_host_it_says_how_to_start_one(run: Run) -> None:
    for options in ([], ["--json"], ["--watch"]):
        result = run("agents", *options)
        assert result.exit_code == 5
        assert "pynchy serve" in result.stderr


def test_an_agent_cannot_draw_on_the_screen_nor_add_lines(host: SeeingHost, run: Run) -> None:
    evil = "x\x1b]0;title\x07\n  🤖 fake  working\u202e\r"
    ask = question(evil)
    told = {"title": evil, "tools": (tool(evil),), "asks": (ask,), "session_id": evil}
    host.agents = [seen(evil, AgentState.WAITING, **told)]

    plain, lines = run("agents").stdout, drawn(host.client.agents())

    assert plain.count("\n") == 1
    assert len(lines) == 4
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(plain + "".join(lines))


def test_many_tools_and_long_arguments_stay_bounded(host: SeeingHost) -> None:
    host.agents = [seen(tools=tuple(tool("x" * 5_000) for _ in range(100)))]

    lines = drawn(host.client.agents(), width=60)

    assert len(lines) == 23
    assert lines[-1] == "     … and 80 more tools"
    assert max(map(len, lines)) <= 60


def test_a_host_of_an_earlier_version_is_understood() -> None:
    old = {"group": "g", "agent": "", "standing": "undelivered", "lives": False, "session_id": ""}
    failed = {"short_id": "k7qm", "brief": "Deploy?", "error": "exit 3"}
    working = {"group": "g", "agent": "a", "standing": "working"}

    assert drawn([old | {"questions": [failed]}, working]) == [
        "pynchy · g",
        "  🤖 a  working",
        "  📭 an agent  an answer was not delivered",
        "     └ pynchy retry k7qm",
    ]


def test_watching_shows_a_question_a_foreign_change_and_ends_with_ctrl_c(host: SeeingHost) -> None:
    with at_terminal(host, "agents", "--watch") as (terminal, process):
        terminal.wait_for("No agent is here")
        host.ask(DEPLOY, agent="release")
        terminal.wait_for("release")
        host.agents = [seen("builder", tools=(tool(),))]
        terminal.wait_for("make test")
        host.agents = []
        process.send_signal(signal.SIGINT)
        # The cursor is shown again.
        terminal.wait_for("\x1b[?25h")

    assert process.returncode == 0


def test_watching_for_a_program_prints_changes_and_not_how_long_a_tool_runs(
    host: SeeingHost,
) -> None:
    builder = seen("builder", tools=(tool(),))
    with following(host, "agents", "--watch", "--json") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        host.agents = [builder]
        second = json.loads(process.stdout.readline())
        looks = host.looks
        while host.looks < looks + 2:
            host.client.health()
        host.agents = [replace(builder, state=AgentState.IDLE, tools=())]
        third = json.loads(process.stdout.readline())

    assert first == []
    assert (second[0]["state"], third[0]["state"]) == ("working", "idle")
