"""Agents that pynchy did not start are listed and counted beside ours, each thing once."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
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
from tests.unit.cli.support import start_pynchy, until

from pynchy.http.agents import foreign_agents
from pynchy.model import Ending, GroupName, Kind, OutcomeKind, RequestId, SessionId, State
from pynchy.sources.base import AgentState
from pynchy.testing import NOON, make_pending

DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}
APPROVAL = {"action": "Deploy 2.1?"}
NEW_FIELDS = {"source", "state", "guessed", "since", "title", "tools", "todos", "asks"}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeeingHost]:
    with seeing_host(tmp_path / "data", monkeypatch) as host:
        yield host


def forward(host: SeeingHost, name: str, agent: str, **fields: Any) -> tuple[GroupName, RequestId]:
    """Let people be asked in place of the agent; return the question's key."""
    made = {"group": GroupName("web-team"), "source": SOURCE, "session_id": f"ses_{agent}"}
    pending = make_pending(name, **(made | fields))
    host.context.ledger.index.put(pending)
    return pending.key


def test_an_agent_of_ours_says_what_it_does_since_when_and_what_it_waits_for(
    host: SeeingHost,
) -> None:
    short_id = host.ask(DEPLOY, agent="release", title="Release 2.1", session_id="s1")
    host.ask(approval=APPROVAL, agent="careful", session_id="s2")

    careful, release = sorted(host.client.agents(), key=lambda row: row["agent"])

    assert {row["source"] for row in (careful, release)} == {"pynchy"}
    assert (release["state"], release["standing"]) == ("waiting", "waiting")
    assert (release["title"], release["guessed"]) == ("Release 2.1", False)
    assert release["since"] == release["questions"][0]["asked_at"]
    assert (release["tools"], release["todos"]) == ([], 0)
    assert release["asks"][0]["short_id"] == short_id
    assert careful["state"] == "permission"
    assert careful["title"] == "Deploy 2.1?"


def test_a_foreign_agent_is_listed_after_ours_with_every_tool_that_runs(host: SeeingHost) -> None:
    host.ask(DEPLOY, agent="release")
    tools = (tool(may_need_permission=True), tool("sleep 1", None))
    host.agents = [
        seen("lazy", AgentState.IDLE, open_todos=3),
        seen("busy", tools=tools, title="Mend the build", task="ci", since=NOON),
    ]

    ours, busy, lazy = host.client.agents()

    assert (ours["source"], ours["agent"]) == ("pynchy", "release")
    assert set(busy) == set(ours) >= NEW_FIELDS
    assert [busy[name] for name in ("source", "agent", "state", "standing", "lives")] == [
        *(SOURCE, "busy", "working", "working", True)
    ]
    assert (busy["title"], busy["task"], busy["session_id"]) == ("Mend the build", "ci", "ses_busy")
    assert busy["since"] == "2026-01-15T12:00:00.000Z"
    first, second = busy["tools"]
    assert (first["tool"], first["argument"], first["may_need_permission"]) == (
        *("bash", "make test", True),
    )
    assert LONG_SECONDS <= first["elapsed_seconds"] < 2 * LONG_SECONDS
    assert second["elapsed_seconds"] is None
    assert (lazy["state"], lazy["standing"], lazy["todos"]) == ("idle", "idle", 3)
    assert lazy["questions"] == lazy["tools"] == []


@pytest.mark.parametrize("has_key", [True, False])
def test_what_people_are_asked_in_its_place_is_one_row_and_counted_once(
    host: SeeingHost, *, has_key: bool
) -> None:
    key = forward(host, "may", "builder", kind=Kind.PERMISSION, title="bash: git push")
    ask = permission(key=key if has_key else None)
    host.agents = [seen("builder", AgentState.PERMISSION, asks=(ask,))]

    [row] = host.client.agents()
    status = host.status()

    assert (row["state"], row["standing"], row["title"]) == (
        *("permission", "waiting", "bash: git push"),
    )
    assert [item["short_id"] for item in row["questions"]] == ["smay"]
    assert [(a["short_id"], a["request_id"]) for a in row["asks"]] == [("smay", "may")]
    assert (status["permissions_pending"], status["questions_pending"]) == (1, 0)
    assert (status["agents"], status["agents_waiting"], status["waiting"]) == (1, 1, 1)


def test_what_was_answered_here_is_not_waited_for_until_its_source_knows(host: SeeingHost) -> None:
    ended = Ending(OutcomeKind.ANSWERED, NOON)
    key = forward(host, "may", "builder", state=State.DELIVERING, ending=ended)
    host.agents = [seen("builder", AgentState.WAITING, asks=(question(key=key),))]

    [row] = host.client.agents()

    assert (row["state"], row["standing"], row["asks"]) == ("working", "resuming", [])
    assert host.status()["questions_pending"] == 0


def test_figures_count_foreign_agents_and_what_they_wait_for(host: SeeingHost) -> None:
    host.ask(DEPLOY)
    host.ask(approval=APPROVAL)
    host.agents = [
        seen("a", AgentState.PERMISSION, asks=(permission(), permission("edit: a.py"))),
        seen("b", AgentState.WAITING, asks=(question(),), open_todos=2),
        seen("c", AgentState.IDLE, open_todos=1),
        seen("d"),
        seen("e", AgentState.ENDED),
    ]

    assert host.status() | {"problems": []} == {
        "status": "ok",
        "problems": [],
        "agents": 4,
        "agents_waiting": 2,
        "agents_working": 1,
        "agents_idle": 1,
        "agents_unknown": 0,
        "waiting": 2,
        "urgent": 0,
        "undelivered": 0,
        "permissions_pending": 3,
        "permissions_guessed": 0,
        "questions_pending": 2,
        "todos": 3,
    }


def test_a_tool_that_runs_long_is_a_permission_perhaps_and_its_agent_works_for_sure(
    host: SeeingHost,
) -> None:
    flagged = (tool(may_need_permission=True), tool("edit", may_need_permission=True), tool())
    host.agents = [seen("old", AgentState.PERMISSION, guessed=True, tools=flagged)]

    [row] = host.client.agents()
    status = host.status()

    assert (row["state"], row["guessed"], row["standing"]) == ("permission", True, "working")
    assert (status["permissions_pending"], status["permissions_guessed"]) == (2, 2)
    assert status["agents_waiting"] == 0
    assert status["agents_working"] == 1


def test_what_is_told_of_a_call_is_not_counted_again_as_a_guess() -> None:
    flagged = (tool(may_need_permission=True), tool("edit", may_need_permission=True))
    told = seen(state=AgentState.PERMISSION, tools=flagged, asks=(permission(),))

    [agent] = foreign_agents([told], [])

    assert (agent.permissions, agent.guessed_permissions) == (1, 1)


def test_two_asks_with_one_question_leave_one_at_the_agents_own_screen() -> None:
    asks = (question("First?"), question("Second?"), permission())
    told = seen(state=AgentState.PERMISSION, asks=asks)
    of_it = make_pending("q1", source=SOURCE, session_id=SessionId("ses_builder"))
    of_another = replace(of_it, request_id=RequestId("q2"), session_id=SessionId("ses_x"))
    of_ours = replace(of_it, request_id=RequestId("q3"), source="")

    [agent] = foreign_agents([told], [of_it, of_another, of_ours])

    assert [q.request_id for q in agent.questions] == ["q1"]
    assert [ask.title for ask in agent.alone] == ["Second?", "bash: git push"]
    assert agent.state is AgentState.PERMISSION


def test_no_question_is_of_two_agents() -> None:
    key = (GroupName("g1"), RequestId("q1"))
    parent, child = seen("parent", asks=(question(key=key),)), seen("child")
    of_child = make_pending("q1", source=SOURCE, session_id=SessionId("ses_child"))

    found = foreign_agents([parent, child], [of_child])

    assert [len(agent.questions) for agent in found] == [1, 0]


def test_what_an_agent_says_of_itself_is_one_short_line_without_hidden_characters(
    host: SeeingHost,
) -> None:
    hostile = "a\nb\x1b[31m\u202e" + "x" * 100_000
    ask = question(hostile, text=hostile, agent=hostile, options=(hostile,))
    told = {"title": hostile, "task": hostile, "tools": (tool(hostile),), "asks": (ask,)}
    host.agents = [seen(hostile, AgentState.WAITING, session_id=hostile, **told)]

    [row] = host.client.agents()

    shown = [row["agent"], row["task"], row["title"], row["session_id"], row["asks"][0]["title"]]
    shown.append(row["tools"][0]["argument"])
    shown += [row["asks"][0][name] for name in ("text", "agent")] + row["asks"][0]["options"]
    assert {len(text) for text in shown} == {300}
    assert all(text.startswith("a b⟨U+001B⟩[31m⟨U+202E⟩xxx") for text in shown)


def test_a_clock_that_was_set_back_and_a_count_below_zero_do_no_harm(host: SeeingHost) -> None:
    late = datetime.now(UTC) + timedelta(hours=1)
    host.agents = [seen(tools=(replace(tool(), started=late),), open_todos=-5)]

    [row] = host.client.agents()

    assert row["tools"][0]["elapsed_seconds"] == 0
    assert (row["todos"], host.status()["todos"]) == (0, 0)


def test_an_agent_whose_call_waits_for_a_person_does_not_count_as_working(host: SeeingHost) -> None:
    with start_pynchy(host, "ask", "Which name?", stderr=-1) as asker:
        until(lambda: host.status()["agents_waiting"] == 1)
        assert host.status()["agents_working"] == 0
        asker.kill()


def test_an_agent_that_asks_through_us_and_is_seen_besides_is_one_agent(
    host: SeeingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYNCHY_SESSION_ID", "ses_builder")
    with start_pynchy(host, "ask", "--group", "web-team", "Which name?", stderr=-1) as asker:
        until(lambda: host.status()["agents_waiting"] == 1)
        host.agents = [seen("builder", tools=(tool(),), open_todos=2)]

        [row] = host.client.agents()
        status = host.status()
        asker.kill()

    assert (row["source"], row["state"], row["title"]) == ("pynchy", "waiting", "Which name?")
    assert (len(row["tools"]), row["todos"]) == (1, 2)
    assert (status["agents"], status["agents_waiting"], status["todos"]) == (1, 1, 2)


def test_an_agent_that_named_anothers_session_took_its_row(host: SeeingHost) -> None:
    honest = seen("honest", AgentState.PERMISSION, asks=(permission(),), session_id="ses_1")
    host.agents = [seen("liar", session_id="ses_1"), honest]

    rows = {row["agent"]: row for row in host.client.agents()}

    assert rows.keys() == {"honest", "liar"}
    assert (rows["honest"]["state"], rows["liar"]["asks"]) == ("permission", [])


def test_an_agent_that_is_connected_and_seen_does_what_its_source_says(
    host: SeeingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYNCHY_SESSION_ID", "ses_builder")
    server = ("mcp", "--group", "web-team")
    with start_pynchy(host, *server, stdin=-1, stdout=-1, stderr=-1) as connected:
        until(lambda: host.status()["agents_unknown"] == 1)
        told = {}
        for state in (AgentState.WORKING, AgentState.IDLE, AgentState.ENDED):
            host.agents = [seen("builder", state)]
            [row] = host.client.agents()
            told[state.value] = row["state"], row["guessed"], host.status()["agents_unknown"]
        host.agents = [seen("builder", AgentState.PERMISSION, asks=(permission(),))]
        [asking], figures = host.client.agents(), host.status()
        host.agents = [seen("builder", group=GroupName("another"))]
        rows = host.client.agents()
        connected.kill()

    assert told == {
        "working": ("working", False, 0),
        "idle": ("idle", False, 0),
        "ended": ("idle", True, 1),
    }
    assert (asking["state"], asking["standing"]) == ("permission", "waiting")
    assert (figures["agents"], figures["agents_waiting"]) == (1, 1)
    assert {row["group"] for row in rows} == {"web-team", "another"}


def test_a_permission_of_an_agent_that_also_asks_here_is_more_pressing(
    host: SeeingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYNCHY_SESSION_ID", "ses_builder")
    with start_pynchy(host, "ask", "--group", "web-team", "Which name?", stderr=-1) as asker:
        until(lambda: host.status()["agents_waiting"] == 1)
        host.agents = [seen("builder", AgentState.PERMISSION, asks=(permission(),))]

        [row] = host.client.agents()
        asker.kill()

    assert (row["state"], row["title"]) == ("permission", "bash: git push")
    assert [ask["title"] for ask in row["asks"]] == ["Which name?", "bash: git push"]
