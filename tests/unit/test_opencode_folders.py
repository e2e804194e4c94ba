"""Foreign agents: an OpenCode server works in many folders, and some of them fail."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.standins.opencode import OpenCodeStandIn
from tests.unit.opencode_support import Look, following
from tests.waiting import until

from pynchy.sources.base import AgentState
from pynchy.sources.opencode.server import OpenCodeServer, new_http
from pynchy.sources.opencode.state import OpenAsk, WatchOptions
from pynchy.sources.opencode.watch import ServerWatch

NEW = "/srv/new"


@pytest.fixture
async def server() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn() as server:
        yield server


async def tell_of(server: OpenCodeStandIn, *folders: str) -> None:
    """Let something happen in each folder, one after the other, and have each looked at."""
    await until(lambda: server.has_listener, "the events to be followed")
    for folder in folders:
        await server.publish("session.status", directory=folder, sessionID="ses_x")
        await until(lambda name=folder: name in server.folders, f"{folder} to be looked at")


async def ask_in(server: OpenCodeStandIn, folder: str) -> str:
    """Let a session ask in the folder, with an event; return the session."""
    session = server.session(f"In {folder}", directory=folder)
    asked = server.questions[server.ask(session, "Which?", "A", "B")]
    await server.publish("question.asked", directory=folder, **asked)
    return session


async def waiting(look: Look, count: int) -> set[str]:
    """Wait until so many sessions wait, and return them."""
    agents = await look.see(
        lambda all_: sum(agent.state is AgentState.WAITING for agent in all_) == count
    )
    return {agent.session_id for agent in agents if agent.state is AgentState.WAITING}


@pytest.mark.parametrize("others", [19, 20, 40])
async def test_a_question_in_the_21st_folder_was_never_seen(
    server: OpenCodeStandIn, others: int
) -> None:
    async with following(server) as look:
        await tell_of(server, *(f"/srv/{number}" for number in range(others)))
        session = await ask_in(server, NEW)

        assert await waiting(look, 1) == {session}


async def test_a_folder_where_somebody_waits_makes_no_room_for_another(
    server: OpenCodeStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    folders = [f"/srv/{number}" for number in range(20)]

    async with following(server) as look:
        await tell_of(server, *folders)
        asking = {await ask_in(server, folder) for folder in folders}
        assert await waiting(look, 20) == asking
        for _ in range(3):
            await ask_in(server, NEW)
        await until(lambda: "opencode.folder_refused" in caplog.text, "it to be logged")

        assert await waiting(look, 20) == asking
        assert NEW not in server.folders
    assert caplog.text.count("opencode.folder_refused") == 1


async def test_what_was_left_behind_in_a_folder_kept_its_place(server: OpenCodeStandIn) -> None:
    folders = [f"/srv/{number}" for number in range(20)]

    async with following(server) as look:
        await tell_of(server, *folders)
        for folder in folders:
            await ask_in(server, folder)
        await waiting(look, 20)
        server.busy.clear()  # stopped: their questions stay in the server's lists
        await waiting(look, 0)

        assert await waiting_in_new(server, look)


async def waiting_in_new(server: OpenCodeStandIn, look: Look) -> bool:
    session = await ask_in(server, NEW)
    return await waiting(look, 1) == {session}


async def test_what_was_expected_in_a_folder_was_forgotten_when_the_first_look_failed(
    server: OpenCodeStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    session = server.session("New", directory=NEW)
    server.ask_permission(session, "rm x")
    server.broken_paths.add("/session/status")
    seen: list[list[OpenAsk]] = []

    def look(watch: ServerWatch) -> None:
        if watch.is_sure:
            seen.append(watch.asks())

    async with new_http() as http:
        options = WatchOptions(poll=0.1, ask_timeout=3_600.0)
        watch = ServerWatch(OpenCodeServer(server.url, http), options, look)
        watch.expected = frozenset({session})
        task = asyncio.create_task(watch.run())
        try:
            await until(lambda: "opencode.lost" in caplog.text, "the first look to fail")
            server.broken_paths.clear()
            await until(lambda: seen, "a look that succeeds")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    assert [ask.session_id for ask in seen[0]] == [session]


async def test_a_folder_that_cannot_be_opened_hid_what_was_asked_in_the_others(
    server: OpenCodeStandIn,
) -> None:
    broken = {f"/srv/{number}" for number in range(10)}
    server.broken_folders = broken

    async with following(server) as look:
        await tell_of(server, *broken)
        session = server.session("New", directory=NEW)
        server.busy.add(session)
        server.run_tool(session, "bash", 1.0, command="rm x")
        server.ask(session, "Which?", "A", "B")

        assert await waiting(look, 1) == {session}
        assert look.source.problem is None


async def test_a_session_whose_messages_failed_once_was_taken_for_idle(
    server: OpenCodeStandIn,
) -> None:
    session = server.session("New", directory=NEW)
    server.busy.add(session)
    server.run_tool(session, "bash", 1.0, command="rm x")
    server.ask_permission(session, "rm x")
    server.broken_paths.add(f"/session/{session}/message")

    async with following(server) as look:
        await until(
            lambda: [path for _, path, _ in server.requests if path.endswith("/message")], "a look"
        )
        server.broken_paths.clear()

        await look.agent(AgentState.PERMISSION)
