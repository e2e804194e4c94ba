"""Agents that a person started and connected: one row each, and no more said than is known."""

import json
from collections.abc import Iterator

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, Runs, agent_of
from tests.acceptance.test_hooks import GROUP, Terminal
from tests.acceptance.test_where_people_look import printed
from tests.waiting import until

UNKNOWN = "connected; what it does is not known"
SESSION = "s1"


@pytest.fixture
def terminal(host: Host) -> Iterator[Terminal]:
    terminal = Terminal(host)
    yield terminal
    terminal.close()


async def agents(host: Host, count: int = 1) -> list[Json]:
    """Return the rows, once there are so many."""

    def look() -> list[Json] | None:
        rows = host.http("GET", "/api/agents").body
        return rows if len(rows) == count else None

    return await until(look, f"{count} agents")


async def test_a_connected_program_that_does_nothing_was_listed_as_working(host: Host) -> None:
    async with agent_of(host, GROUP, client_program="claude"):
        [row] = await agents(host)
        status = host.http("GET", "/api/status").body
        line = await printed(host, "status", "--line")
        menu = await printed(host, "status", "--menu")
        tooltip = json.loads(await printed(host, "status", "--waybar"))["tooltip"]
        told = await printed(host, "status")
        page = host.page("/agents")

    assert (row["agent"], row["state"], row["guessed"]) == ("claude", "idle", True)
    assert (row["standing"], row["since"], row["lives"]) == ("idle", None, True)
    assert (status["agents"], status["agents_idle"], status["agents_unknown"]) == (1, 1, 1)
    assert status["agents_working"] == 0
    assert line == "\n"
    assert f"⚪ {GROUP} · claude" in menu
    assert all(UNKNOWN in shown for shown in (menu, tooltip))
    assert "agents       1 connected (what they do is not known)\n" in told
    assert "what it does is not known" in page
    assert "how long a tool runs" not in page
    assert "All else is as the agents and their programs told it" in page


async def test_a_program_with_a_name_is_called_by_it_before_it_has_asked(host: Host) -> None:
    async with agent_of(host, GROUP, client_program="claude", PYNCHY_AGENT="release"):
        [row] = await agents(host)

    assert row["agent"] == "release"


async def test_a_runner_that_pynchy_started_works(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.process("work"))
    session_id = host.run()
    await until(runs.started, "the runner")

    async with agent_of(host, GROUP, PYNCHY_SESSION_ID=session_id):
        [row] = await agents(host)
        status = host.http("GET", "/api/status").body

    assert (row["state"], row["guessed"], row["standing"]) == ("working", False, "working")
    assert (status["agents_working"], status["agents_idle"]) == (1, 0)


async def test_a_connected_claude_code_that_asks_a_permission_was_two_agents(
    host: Host, terminal: Terminal
) -> None:
    async with agent_of(host, GROUP, client_program="claude", PYNCHY_SESSION_ID=SESSION) as agent:
        await agents(host)
        terminal.ask(session=SESSION)
        [asked] = await host.listed(1, GROUP)

        [row] = host.http("GET", "/api/agents").body
        status = host.http("GET", "/api/status").body
        menu = await printed(host, "status", "--menu")
        call = agent.asking("Which one?")
        await host.listed(2, GROUP)
        [both] = host.http("GET", "/api/agents").body
        call.cancel()

    assert (row["source"], row["agent"], row["session_id"]) == ("pynchy", "claude", SESSION)
    assert (row["state"], row["guessed"], row["lives"]) == ("permission", False, True)
    assert [ask["short_id"] for ask in row["asks"]] == [asked["short_id"]]
    assert (status["agents"], status["agents_waiting"], status["agents_idle"]) == (1, 1, 0)
    assert menu.count("claude · ") == 1
    assert both["state"] == "permission"
    assert sorted(ask["kind"] for ask in both["asks"]) == ["permission", "question"]
    assert {ask["title"] for ask in both["asks"]} >= {"Which one?"}


async def test_two_sessions_of_one_group_stay_two_agents(host: Host, terminal: Terminal) -> None:
    async with agent_of(host, GROUP, client_program="claude", PYNCHY_SESSION_ID="other"):
        terminal.ask(session=SESSION)
        await host.listed(1, GROUP)

        rows = await agents(host, 2)

    assert {(row["session_id"], row["source"], row["state"]) for row in rows} == {
        ("other", "pynchy", "idle"),
        (SESSION, "claude-terminal", "permission"),
    }
