"""Foreign agents in the places where people look: the commands and the bars, of a running host."""

import json
import re
from collections.abc import AsyncIterator

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, MailboxAgent, Runs
from tests.acceptance.test_opencode_source import GROUP, replied, settings
from tests.acceptance.test_parking import SESSION, park
from tests.standins.opencode import OpenCodeStandIn
from tests.waiting import until


@pytest.fixture
async def server() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn() as server:
        yield server


async def printed(host: Host, *words: str) -> str:
    code, out, err = await host.cli(*words)
    assert (code, err) == (0, "")
    return out


async def test_a_permission_is_seen_everywhere_once_and_allowed_from_the_menu(
    start_host: StartHost, server: OpenCodeStandIn
) -> None:
    host = await start_host(settings(server))
    server.session("Proof-read")
    server.ask_permission(server.session("Clean"), "git push")
    [asked] = await host.listed(1, GROUP)
    await until(lambda: len(host.http("GET", "/api/agents").body) == 2, "both sessions")

    line = await printed(host, "status", "--line")
    menu = await printed(host, "status", "--menu")
    rows = [row.split("\t") for row in (await printed(host, "agents")).splitlines()]
    shown = json.loads(await printed(host, "status", "--waybar"))

    assert line == "🤖 1 🔒 1\n"
    assert (shown["text"], shown["class"]) == ("🤖 1 🔒 1", "permission")
    assert [(row[0], row[4], row[8]) for row in rows] == [
        ("opencode", "permission", asked["short_id"]),
        ("opencode", "idle", ""),
    ]
    assert len(re.findall("^🔒", menu, re.MULTILINE)) == 1
    assert "--┊ git push" in menu
    [click] = re.findall(r"^--Allow once \| (.*)$", menu, re.MULTILINE)
    words = re.findall(r'param\d+="([^"]*)"', click)
    await printed(host, *words[2:])
    assert words[0] == "--data-dir"
    path, body = await replied(server)
    assert (path.startswith("/permission/"), body) == (True, {"reply": "once"})
    await host.closed(asked["request_id"])
    assert "🔒" not in await printed(host, "status", "--line")


async def test_an_answer_that_was_not_delivered_is_in_the_line(start_host: StartHost) -> None:
    host = await start_host("[groups.team]\n")
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask("Deploy?")
    await host.listed()
    assert "📭" not in await printed(host, "status", "--line")

    agent.die()
    host.answer(request_id, "Yes")
    await host.state(request_id, "undelivered")

    assert re.search(r"(^| )📭 1( |$)", (await printed(host, "status", "--line")).strip())


async def test_a_parked_agent_is_a_row_of_its_own(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    request_id, _ = await park(host)
    short_id = host.question(request_id)["short_id"]

    [row] = (await printed(host, "agents")).splitlines()
    [view] = json.loads(await printed(host, "agents", "--json"))
    menu = await printed(host, "status", "--menu")

    fields = row.split("\t")
    assert (fields[0], fields[3], fields[4]) == ("pynchy", SESSION, "parked")
    assert (fields[7], fields[8]) == ("Deploy?", short_id)
    assert (view["state"], view["standing"], view["lives"]) == ("parked", "parked", False)
    assert "🔔" in menu


async def test_an_older_server_is_guessed_at_and_the_guess_is_called_one(
    start_host: StartHost,
) -> None:
    async with OpenCodeStandIn(is_older=True) as older:
        session = older.session("Build")
        older.busy.add(session)
        older.run_tool(session, "bash", 3930.0, command="make all")
        host = await start_host(settings(older))
        await until(lambda: host.http("GET", "/api/agents").body, "the session")

        line = await printed(host, "status", "--line")
        told = await printed(host, "status")
        menu = await printed(host, "status", "--menu")
        [row] = (await printed(host, "agents")).splitlines()

    assert line == "🤖 1 🔒 1\n"
    assert "1 at agents' own screens, 1 of them a guess" in told
    assert "🔧 bash: make all (may need permission, running 1h 5m)" in menu
    assert "bash=" not in menu
    assert row.split("\t")[4:6] == ["permission", "guess"]
