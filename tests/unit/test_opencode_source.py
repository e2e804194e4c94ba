"""Foreign agents: what an OpenCode server shows, whichever kind it is and whatever it does."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.standins.opencode import OpenCodeStandIn
from tests.unit.opencode_support import ask_by_notify, following
from tests.waiting import until

from pynchy.config import OpenCodeSourceSettings
from pynchy.events import EventKind
from pynchy.model import Urgency
from pynchy.sources.base import AgentState
from pynchy.sources.budget import (
    EVENT_COST,
    EventBudget,
    configured_rate,
    found_rate,
)
from pynchy.sources.opencode import source as source_module
from pynchy.sources.opencode.reading import RunningTool, SeenSession, read_id
from pynchy.sources.opencode.server import (
    EventListener,
    OpenCodeFailed,
    OpenCodeServer,
    ServerEvent,
    _parse,
    new_http,
)
from pynchy.sources.opencode.state import ServerFolder, ServerState, SessionDetail, WatchOptions
from pynchy.sources.opencode.watch import ServerWatch

PASSWORD = "s3cret"  # noqa: S105 - of a server that is played here


@pytest.fixture
async def older() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn(is_older=True) as server:
        yield server


@pytest.fixture
async def server() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn() as server:
        yield server


@pytest.mark.parametrize("tool", ["bash", "edit"])
async def test_an_older_servers_tool_that_runs_for_long_may_need_permission(
    older: OpenCodeStandIn, tool: str
) -> None:
    session = older.session("Mend it")
    older.busy.add(session)
    older.run_tool(session, tool, 5.5, command="make test", filePath="/srv/shop/a.py")

    async with following(older) as look:
        agent = await look.agent(AgentState.PERMISSION)

    assert agent.guessed
    [run] = agent.tools
    assert (run.tool, run.may_need_permission) == (tool, True)
    assert run.argument == "make test"


async def test_a_tool_that_runs_for_less_is_not_flagged_until_it_does(
    older: OpenCodeStandIn,
) -> None:
    session = older.session()
    older.busy.add(session)
    older.run_tool(session, "bash", 0.0, command="sleep 8")

    async with following(older, permission_threshold="3s") as look:
        agent = await look.agent(AgentState.WORKING)
        assert not agent.guessed
        assert not agent.tools[0].may_need_permission
        older.run_tool(session, "bash", 3.5, command="sleep 9")
        agent = await look.agent(AgentState.PERMISSION)

    assert [run.may_need_permission for run in agent.tools] == [False, True]


@pytest.mark.parametrize("tool", ["task", "question", "notify_ask_user", "pynchy_ask_user"])
async def test_what_waits_by_nature_is_never_flagged(older: OpenCodeStandIn, tool: str) -> None:
    session = older.session()
    older.busy.add(session)
    older.run_tool(session, tool, 60.0, question="Go?")

    async with following(older) as look:
        agent = await look.agent(AgentState.WORKING)

    assert not agent.tools[0].may_need_permission


async def test_a_tool_that_does_not_say_since_when_it_runs_is_never_flagged(
    older: OpenCodeStandIn,
) -> None:
    session = older.session()
    older.busy.add(session)
    older.run_tool(session, "bash", None, command="make")

    async with following(older) as look:
        agent = await look.agent(AgentState.WORKING)

    assert not agent.tools[0].may_need_permission


async def test_the_flag_goes_when_the_tool_completes_or_the_session_comes_to_rest(
    older: OpenCodeStandIn,
) -> None:
    first, second = older.session("One"), older.session("Two")
    older.busy |= {first, second}
    call = older.run_tool(first, "bash", 9.0, command="a")
    older.run_tool(second, "bash", 9.0, command="b")

    async with following(older) as look:
        await look.see(lambda all_: sum(a.state is AgentState.PERMISSION for a in all_) == 2)
        older.complete(first, call)
        await look.see(lambda all_: [a for a in all_ if a.state is AgentState.WORKING])
        older.busy.discard(second)
        agents = await look.see(lambda all_: not any(a.guessed for a in all_))

    assert {a.title: a.state for a in agents} == {
        "One": AgentState.WORKING,
        "Two": AgentState.IDLE,
    }


async def test_an_older_servers_events_flag_at_once_and_a_reply_takes_the_flag_away(
    older: OpenCodeStandIn,
) -> None:
    session = older.session()
    older.busy.add(session)
    call = older.run_tool(session, "bash", 0.0, command="rm x")

    async with following(older, permission_threshold="1h") as look:
        await look.agent(AgentState.WORKING)
        for kind in ("permission.requested", "permission.updated", "permission.asked"):
            await older.publish(kind, id="per_1", sessionID=session, callID=call)
            await look.agent(AgentState.PERMISSION)
            await older.publish("permission.replied", sessionID=session, permissionID="per_1")
            await look.agent(AgentState.WORKING)


@pytest.mark.parametrize(
    ("seconds", "is_flagged"), [(4.999, False), (5.0, False), (5.001, True), (-1.0, False)]
)
def test_a_tool_is_flagged_after_more_than_five_seconds_strictly(
    seconds: float, *, is_flagged: bool
) -> None:
    threshold = OpenCodeSourceSettings(group="team").permission_threshold.total_seconds()
    state = ServerState(is_exact=False, places={"/srv": ServerFolder(busy=frozenset({"ses_1"}))})
    state.sessions["ses_1"] = SeenSession("ses_1", "Mend it", "/srv", "", 0.0)
    state.details["ses_1"] = SessionDetail([RunningTool("call_1", "bash", "make", 1_000.0)])

    [(_, run)] = state.tools(1_000.0 + seconds, threshold)

    assert run.may_need_permission is is_flagged


async def test_a_reply_takes_the_guess_by_time_away_until_another_tool_runs_for_long(
    older: OpenCodeStandIn,
) -> None:
    first, second = older.session("One"), older.session("Two")
    older.busy |= {first, second}
    older.run_tool(first, "bash", 60.0, command="make all")
    older.run_tool(second, "bash", 60.0, command="make docs")

    async with following(older) as look:
        await look.see(lambda all_: sum(a.state is AgentState.PERMISSION for a in all_) == 2)
        await until(lambda: older.has_listener, "the events to be followed")
        await older.publish("permission.replied", sessionID=first, permissionID="per_1")
        agents = await look.see(lambda all_: [a for a in all_ if a.state is AgentState.WORKING])
        assert {a.session_id: a.state for a in agents} == {
            first: AgentState.WORKING,
            second: AgentState.PERMISSION,
        }
        before = len(older.requests)
        await until(lambda: len(older.requests) > before + 20, "several polls")
        [still] = [a for a in look.agents if a.session_id == first]
        assert not still.tools[0].may_need_permission
        older.run_tool(first, "edit", 60.0, filePath="/srv/shop/a.py")
        agents = await look.see(
            lambda all_: all(a.state is AgentState.PERMISSION for a in all_) and len(all_) == 2
        )

    [again] = [a for a in agents if a.session_id == first]
    assert [run.may_need_permission for run in again.tools] == [False, True]


async def test_a_permission_is_told_exactly_and_no_long_command_is_taken_for_one(
    server: OpenCodeStandIn,
) -> None:
    busy, asking = server.session("Build"), server.session("Clean")
    server.busy.add(busy)
    server.run_tool(busy, "bash", 600.0, command="make")
    server.ask_permission(asking, "rm -rf build")

    async with following(server) as look:
        agent = await look.agent(AgentState.PERMISSION)
        assert (agent.session_id, agent.guessed) == (asking, False)
        assert agent.title == "Bash: rm -rf build"
        working = await look.agent(AgentState.WORKING)
        assert not working.tools[0].may_need_permission
        server.permissions.clear()
        await server.publish("permission.replied", sessionID=asking, requestID="x")
        await look.see(lambda all_: all(a.state is not AgentState.PERMISSION for a in all_))
        await until(lambda: len(look.events) > 1, "it to be told")

    kinds = [(event.kind, event.source) for event in look.events]
    assert kinds == [(EventKind.ASKED, "opencode"), (EventKind.CLEARED, "opencode")]


async def test_what_a_stopped_session_has_left_behind_is_not_asked(
    server: OpenCodeStandIn,
) -> None:
    session = server.session()
    server.ask_permission(session, "rm x")

    async with following(server) as look:
        await look.agent(AgentState.PERMISSION)
        server.busy.clear()
        await look.agent(AgentState.IDLE)


async def test_a_subagent_counts_for_its_parent(server: OpenCodeStandIn) -> None:
    parent = server.session("Parent")
    child = server.session("Child", parent=parent)
    server.busy |= {parent, child}
    server.run_tool(parent, "task", 9.0, description="look around")
    server.ask(child, "Which colour?", "Red", "Green")

    async with following(server) as look:
        agent = await look.agent(AgentState.WAITING)
        listed = [a.session_id for a in look.agents]

    assert agent.session_id == parent
    assert listed == [parent]


async def test_events_that_get_lost_are_made_up_for_by_looking(server: OpenCodeStandIn) -> None:
    session = server.session()

    async with following(server) as look:
        await look.agent(AgentState.IDLE)
        server.ask(session, "Which?", "A", "B")
        await look.agent(AgentState.WAITING)


async def test_an_event_stream_that_was_cut_is_resumed_and_made_up_for(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Quick(EventListener):
        def __init__(self, server: Any, pause_seconds: float, hear: Any) -> None:
            super().__init__(server, pause_seconds / 100_000, hear)

    monkeypatch.setattr("pynchy.sources.opencode.watch.EventListener", Quick)
    session = server.session("Mend it")

    def streams() -> int:
        return sum(path == "/global/event" for _, path, _ in server.requests)

    async with following(server, poll="1h") as look:  # nothing but the stream says when to look
        await look.agent(AgentState.IDLE)
        await until(lambda: server.has_listener, "the stream")
        before = streams()
        server.cut()
        server.ask_permission(session, "rm x")  # of which no stream tells
        await look.agent(AgentState.PERMISSION)
        assert streams() > before

        await until(lambda: server.has_listener, "the stream again")
        server.permissions.clear()
        server.busy.clear()
        await server.publish("permission.replied", sessionID=session, requestID="x")
        await look.agent(AgentState.IDLE)


class DownServer:
    """A server that fails, for as many times as a test says, and then lists nothing."""

    url = "http://127.0.0.1:1"

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def get(self, path: str, **_: str) -> object:
        self._fail()
        return {} if path in {"/path", "/session/status"} else []

    async def tells_exactly(self) -> bool:
        return True

    async def list_of(self, *_: str) -> object:
        return []

    async def events(self) -> AsyncIterator[ServerEvent]:
        self._fail()
        yield ServerEvent("", "server.connected", {})

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OpenCodeFailed("it answers 500")


@pytest.mark.parametrize("what", ["looks", "streams"])
async def test_a_server_that_fails_is_asked_less_and_less_often_until_it_answers(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 9:
            raise asyncio.CancelledError

    server: Any = DownServer(8)
    watch = ServerWatch(server, WatchOptions(poll=2.0, ask_timeout=3_600.0), lambda _: None)
    monkeypatch.setattr("asyncio.sleep", sleep)

    with pytest.raises(asyncio.CancelledError):
        await (watch._look_for_ever() if what == "looks" else watch.events.run())  # noqa: SLF001

    assert pauses[:8] == [4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0, 64.0]
    assert pauses[8] <= 4.0


async def test_a_lost_event_of_a_busy_server_was_never_made_up_for(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.sources.opencode.watch._SOON_SECONDS", 0.02)
    busy, asking = server.session("Busy"), server.session("Asking")

    def looks() -> int:
        return sum(path == f"/session/{busy}/message" for _, path, _ in server.requests)

    async with following(server, poll="300ms") as look:
        await look.see(lambda all_: len(all_) == 2)
        await until(lambda: server.has_listener, "the events to be followed")
        server.ask_permission(asking, "make test")
        for _ in range(100):  # something happens after each look: no poll passes quietly
            before = looks()
            await server.publish("message.part.updated", sessionID=busy, part={"type": "tool"})
            await until(lambda count=before: looks() > count, "the busy session to be read")
            if any(agent.state is AgentState.PERMISSION for agent in look.agents):
                break
        else:
            pytest.fail("the permission was not seen while the server was busy")


async def test_several_servers_are_seen_and_one_that_fails_costs_its_own_rows_alone(
    server: OpenCodeStandIn, older: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session("New"), "rm x")
    slow = older.session("Old")
    older.busy.add(slow)
    older.run_tool(slow, "bash", 9.0, command="rm y")

    async with following(server, older) as look:
        await look.see(lambda all_: {a.title for a in all_} == {"Bash: rm x", "Old"})
        assert sum(r.may_need_permission for a in look.agents for r in a.tools) == 1
        older.fail_with = 500
        agents = await look.see(lambda all_: len(all_) == 1)
        assert agents[0].title == "Bash: rm x"
        assert "500" in (look.source.problem or "")
        older.fail_with = None
        await look.see(lambda all_: len(all_) == 2)
        await until(lambda: look.source.problem is None, "the end of the problem")


@pytest.mark.parametrize(
    "rubbish",
    [b"", b"{", b"[" * 100_000, b"null", b'{"id": 1}', b"[1, null, {}]", b'[{"id": {}}]', b"\xff"],
)
@pytest.mark.parametrize("path", ["/session", "/session/status", "/permission", "/path"])
async def test_rubbish_of_a_server_stops_nothing(
    server: OpenCodeStandIn, older: OpenCodeStandIn, path: str, rubbish: bytes
) -> None:
    session = older.session("Healthy")
    older.busy.add(session)
    server.session("Ill")
    server.rubbish[path] = rubbish

    async with following(server, older) as look:
        await look.see(lambda all_: "Healthy" in {a.title for a in all_})
        await server.send(b"{rubbish")
        await server.send(b'{"type": 7}')
        await server.send(b'{"type": "permission.asked", "properties": []}')
        server.rubbish.clear()
        await look.see(lambda all_: {a.title for a in all_} == {"Healthy", "Ill"})


async def test_a_notify_ask_is_seen_although_the_model_spoke_once_more(
    server: OpenCodeStandIn,
) -> None:
    session = server.session("Merge it")
    ask_by_notify(server, session, "Merge?", agent="Executor", urgency="high")
    server.say(session, "assistant", "I have asked, and wait.")

    async with following(server) as look:
        agent = await look.agent(AgentState.WAITING)
        await until(lambda: look.events, "it to be told")

    assert (agent.title, agent.guessed) == ("Merge?", False)
    [event] = look.events
    assert event.asked[0].suggestions == ("Yes", "No")


@pytest.mark.parametrize(
    "output", ['{"sent": true, "message": "sent"}', '{"response": "timeout", "choice": null}']
)
async def test_a_notify_ask_that_our_own_server_took_is_not_seen_a_second_time(
    server: OpenCodeStandIn, output: str
) -> None:
    ours, other = server.session("Ours"), server.session("Other")
    ask_by_notify(server, ours, "Merge?")
    server.messages[ours][-1]["parts"][0]["state"]["output"] = output
    ask_by_notify(server, other, "Other?")

    async with following(server) as look:
        agent = await look.agent(AgentState.WAITING)
        await until(lambda: look.events, "it to be told")

    assert agent.title == "Other?"
    assert [event.asked[0].question for event in look.events] == ["Other? Really?"]


async def test_of_a_notify_ask_nothing_but_the_title_was_told(server: OpenCodeStandIn) -> None:
    session = server.session("Merge it")
    ask_by_notify(server, session, "Merge?", agent="Executor", urgency="high")

    async with following(server) as look:
        agent = await look.agent(AgentState.WAITING)
        await until(lambda: look.events, "it to be told")

    [ask] = agent.asks
    assert (ask.title, ask.text, ask.options) == ("Merge?", "Merge? Really?", ("Yes", "No"))
    assert (ask.agent, ask.urgency) == ("Executor", Urgency.HIGH)
    [event] = look.events
    assert (event.title, event.asked[0].question) == ("Merge?", "Merge? Really?")
    assert (event.agent, event.urgency) == ("Executor", Urgency.HIGH)


async def test_of_a_question_nothing_but_its_header_was_told(server: OpenCodeStandIn) -> None:
    server.ask(server.session(), "Which colour?", "Red", "Green")

    async with following(server) as look:
        agent = await look.agent(AgentState.WAITING)
        await until(lambda: look.events, "it to be told")

    [ask] = agent.asks
    assert (ask.title, ask.text, ask.options) == ("H", "Which colour?", ("Red", "Green"))
    assert (ask.agent, ask.urgency) == ("", Urgency.NORMAL)
    assert look.events[0].asked[0].question == "Which colour?"


@pytest.mark.parametrize("how", ["busy", "prompt", "tool"])
async def test_a_notify_ask_is_cleared_when_the_session_goes_on(
    server: OpenCodeStandIn, how: str
) -> None:
    session = server.session("Merge it")
    ask_by_notify(server, session, "Merge?")

    async with following(server) as look:
        await look.agent(AgentState.WAITING)
        if how == "busy":
            server.busy.add(session)
        elif how == "prompt":
            server.say(session, "user", "Yes")
        else:
            server.run_tool(session, "bash", 0.0, "completed", command="git merge")
        await look.see(lambda all_: all(a.state is not AgentState.WAITING for a in all_))
        await until(lambda: look.events[-1].kind is EventKind.CLEARED, "it to be told")


async def test_several_sessions_and_several_asks_in_a_row_are_each_seen(
    server: OpenCodeStandIn,
) -> None:
    first, second = server.session("One"), server.session("Two")
    server.session("Three")
    server.messages[server.session("Empty")] = []
    ask_by_notify(server, first, "First?")
    ask_by_notify(server, first, "Second?")
    ask_by_notify(server, second, "Third?")

    async with following(server) as look:
        agents = await look.see(lambda all_: sum(len(a.asks) for a in all_) == 3)

    asks = {a.session_id: [ask.title for ask in a.asks] for a in agents if a.asks}
    assert asks == {first: ["First?", "Second?"], second: ["Third?"]}
    assert sum(a.state is AgentState.IDLE for a in agents) == 2


async def test_a_notify_ask_is_hidden_when_nobody_has_cared_for_so_long(
    server: OpenCodeStandIn,
) -> None:
    session = server.session("Merge it")
    ask_by_notify(server, session, "Merge?")

    async with following(server, ask_timeout="2s") as look:
        await look.agent(AgentState.WAITING)
        await look.agent(AgentState.IDLE)


async def test_todos_that_are_open_are_counted(server: OpenCodeStandIn) -> None:
    session = server.session()
    states = ("pending", "in_progress", "completed", "cancelled")
    server.todos[session] = [{"content": state, "status": state} for state in states]

    async with following(server) as look:
        agents = await look.see(lambda all_: all_)

    assert agents[0].open_todos == 2


async def test_a_password_goes_to_the_servers_of_the_settings_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with OpenCodeStandIn(password=PASSWORD) as ours, OpenCodeStandIn() as foreign:
        ours.session("Ours")
        foreign.ask_permission(foreign.session("Foreign"), "rm x")
        monkeypatch.setattr(source_module, "find_servers", lambda: [foreign.url, ours.url])
        environ = {"OPENCODE_SERVER_PASSWORD": PASSWORD}
        async with following(ours, discover=True, environ=environ) as look:
            await look.see(lambda all_: {a.title for a in all_} == {"Ours", "Bash: rm x"})

        assert ours.headers[0]["Authorization"].startswith("Basic ")
        assert not any("Authorization" in headers for headers in foreign.headers)
        assert {method for method, _, _ in foreign.requests} == {"GET"}


async def test_a_server_that_appears_is_found_and_one_that_goes_is_forgotten(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(source_module, "find_servers", lambda: found)
    monkeypatch.setattr(source_module, "_DISCOVER_SECONDS", 0.05)
    server.ask(server.session(), "Which?", "A", "B")

    async with following(discover=True) as look:
        assert look.agents == []
        found.append(server.url)
        await look.agent(AgentState.WAITING)
        found.clear()
        await look.see(lambda all_: not all_)
        assert look.source.problem is None
        assert [event.kind for event in look.events] == [EventKind.ASKED, EventKind.CLEARED]


async def test_a_server_that_hangs_keeps_no_other_waiting(
    server: OpenCodeStandIn, older: OpenCodeStandIn
) -> None:
    older.is_silent = True
    server.ask(server.session(), "Which?", "A", "B")

    async with following(older, server) as look:
        await look.agent(AgentState.WAITING)


async def test_a_flood_of_events_costs_no_other_server_its_turn(
    server: OpenCodeStandIn, older: OpenCodeStandIn
) -> None:
    noisy = older.session("Noisy")
    server.session("Quiet")

    async with following(older, server) as look:
        await look.see(lambda all_: len(all_) == 2)
        line = b'{"type":"message.part.updated","properties":{"sessionID":"%s","x":"%s"}}'
        flood = asyncio.create_task(_flood(older, line % (noisy.encode(), b"y" * 2_000)))
        try:
            server.ask(next(iter(server.sessions)), "Which?", "A", "B")
            await look.agent(AgentState.WAITING)
        finally:
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
        asked = sum(path.endswith("/message") for _, path, _ in older.requests)
        assert asked < 100


async def test_a_found_server_that_floods_made_the_host_degraded(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "find_servers", lambda: [server.url])
    monkeypatch.setattr("pynchy.sources.budget._FLOOD_SECONDS", 0.0)
    monkeypatch.setattr("pynchy.sources.budget._BURST_SECONDS", 0.1)
    session = server.session()

    async with following(discover=True) as look:
        await look.see(lambda all_: len(all_) == 1)
        flood = asyncio.create_task(_flood(server, b'{"type":"x.y","properties":{}}'))
        try:
            await until(lambda: look.source.warnings, "the flood to be told of")
        finally:
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
        assert "floods its event stream" in look.source.warnings[0]
        assert look.source.problem is None
        await until(lambda: not server.has_listener, "the stream to be left")

        server.ask(session, "Which?", "A", "B")
        await look.agent(AgentState.WAITING)
        assert not server.has_listener


def test_what_a_server_told_too_much_was_forgotten_after_a_second() -> None:
    now = [0.0]
    budget = EventBudget(now=lambda: now[0])
    owed = budget.spend(EVENT_COST * 2_000)

    now[0] += 1.5

    assert budget.spend(0) == pytest.approx(owed - 1.5)


@pytest.mark.parametrize("configured", [0, 1, 2, 3, 20])
def test_many_servers_together_were_listened_to_more_than_one(configured: int) -> None:
    def handled(rate: float) -> int:
        """Return how many events of a server are handled in a minute."""
        now, count = [0.0], 0
        budget = EventBudget(lambda: rate, now=lambda: now[0])
        while now[0] < 60:
            now[0] += budget.spend(EVENT_COST)
            count += 1
        return count

    of_settings = configured * handled(configured_rate(configured))
    of_found = 20 * handled(found_rate(configured, 20))

    assert of_settings + of_found <= 3 * handled(configured_rate(1))


async def test_servers_that_an_agent_started_made_a_configured_one_a_flooder(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[EventBudget] = []

    class Noted(EventBudget):
        def __init__(self, rate: Callable[[], float]) -> None:
            super().__init__(rate, now=lambda: 0.0)
            budgets.append(self)

    started = [f"http://127.0.0.1:{port}" for port in range(1, 20)]
    monkeypatch.setattr(source_module, "EventBudget", Noted)
    monkeypatch.setattr(source_module, "find_servers", lambda: started)

    async with following(server, discover=True):
        await until(lambda: len(budgets) == 20, "all servers to be followed")
        configured, found = budgets[0], budgets[1]
        second = EVENT_COST * 200  # as much as one server may tell in a second

        # Less than the two seconds that are free: its stream may have begun already.
        assert configured.spend(1.5 * second) == 0
        assert found.spend(1.5 * second) > 0


def test_a_debt_that_was_allowed_grew_when_more_servers_came() -> None:
    rate = [4_000.0]
    budget = EventBudget(lambda: rate[0], now=lambda: 0.0)
    assert budget.spend(7_000) == 0

    rate[0] /= 10

    assert budget.spend(1) == 0


def test_a_server_that_pays_what_it_owes_does_not_flood() -> None:
    now = [0.0]
    budget = EventBudget(now=lambda: now[0])
    for _ in range(100):
        now[0] += budget.spend(EVENT_COST * 600) + 10

    assert not budget.is_flooded
    for _ in range(100):
        now[0] += budget.spend(EVENT_COST * 600)
    assert budget.is_flooded


def _is_called_a_flood(per_second: int, on_seconds: int, off_seconds: int) -> bool:
    """Tell so many events a second, on and off for ten minutes."""
    now = [0.0]
    budget = EventBudget(now=lambda: now[0])
    for begin in range(0, 600, on_seconds + off_seconds):
        for number in range(on_seconds * per_second):
            told_at = begin + number / per_second
            now[0] = max(now[0], told_at)
            now[0] += budget.spend(EVENT_COST)
            if budget.is_flooded:
                return True
    return False


@pytest.mark.parametrize(
    ("per_second", "on_seconds", "off_seconds"),
    [(300, 10, 10), (1_500, 1, 9), (380, 1, 1), (190, 10, 0)],
)
def test_bursts_within_the_limit_were_called_a_flood(
    per_second: int, on_seconds: int, off_seconds: int
) -> None:
    assert not _is_called_a_flood(per_second, on_seconds, off_seconds)


@pytest.mark.parametrize(
    ("per_second", "on_seconds", "off_seconds"), [(250, 10, 0), (600, 10, 10), (4_000, 60, 1)]
)
def test_more_than_the_limit_on_average_is_a_flood(
    per_second: int, on_seconds: int, off_seconds: int
) -> None:
    assert _is_called_a_flood(per_second, on_seconds, off_seconds)


async def _flood(server: OpenCodeStandIn, line: bytes) -> None:
    while True:
        await server.send(line)
        await asyncio.sleep(0)  # where nobody listens, sending does not wait


async def test_a_server_that_sends_us_elsewhere_is_not_followed_there(
    server: OpenCodeStandIn,
) -> None:
    async with OpenCodeStandIn() as victim:
        server.redirect_to = victim.url
        async with following(server) as look:
            await until(lambda: look.source.problem, "the problem to be told")
        assert victim.requests == []


async def test_what_was_left_behind_is_not_asked_when_its_session_works_again(
    server: OpenCodeStandIn,
) -> None:
    session = server.session()
    server.ask_permission(session, "rm x")

    async with following(server) as look:
        await look.agent(AgentState.PERMISSION)
        server.busy.clear()
        await look.agent(AgentState.IDLE)
        server.busy.add(session)
        await look.agent(AgentState.WORKING)


async def test_a_folder_is_found_when_one_of_its_sessions_begins_to_work(
    server: OpenCodeStandIn,
) -> None:
    session = server.session("Elsewhere", directory="/srv/other")

    async with following(server) as look:
        await look.agent(AgentState.IDLE)
        server.busy.add(session)
        server.run_tool(session, "bash", 1.0, command="rm x")
        server.ask_permission(session, "rm x")
        agent = await look.agent(AgentState.PERMISSION)

    assert agent.session_id == session


async def test_asks_with_one_id_of_two_sessions_are_two(server: OpenCodeStandIn) -> None:
    for title in ("One", "Two"):
        ask_by_notify(server, server.session(title), f"{title}?")
    for messages in server.messages.values():
        messages[-1]["parts"][0]["callID"] = "call_0"

    async with following(server) as look:
        agents = await look.see(lambda all_: sum(len(a.asks) for a in all_) == 2)
        await until(lambda: len(look.events) == 2, "both to be told")

    assert {a.title for a in agents} == {"One?", "Two?"}


async def test_a_subagents_notify_counts_for_its_parent_when_that_is_at_rest(
    server: OpenCodeStandIn,
) -> None:
    parent = server.session("Parent")
    ask_by_notify(server, server.session("Child", parent=parent), "Merge?")
    server.busy.add(parent)

    async with following(server) as look:
        await look.agent(AgentState.WORKING)
        server.busy.clear()
        agent = await look.agent(AgentState.WAITING)

    assert (agent.session_id, agent.title) == (parent, "Merge?")


async def test_a_server_of_the_settings_is_not_found_a_second_time(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "find_servers", lambda: [server.url])
    server.session("Once")

    async with following(discover=True, urls=(f"http://localhost:{server.port}",)) as look:
        agents = await look.see(lambda all_: all_)

    assert len(agents) == 1


async def test_numbers_without_measure_cost_nothing_but_themselves(server: OpenCodeStandIn) -> None:
    session = server.session("Huge")
    server.sessions[session]["time"]["updated"] = 10**400
    server.ask(server.session("Other"), "Which?", "A", "B")

    async with following(server) as look:
        await look.agent(AgentState.WAITING)


async def test_a_flood_of_asks_is_cut_and_leaves_others_their_turn(
    server: OpenCodeStandIn, older: OpenCodeStandIn
) -> None:
    noisy = server.session("Noisy")
    quiet = older.session("Quiet")

    async with following(server, older) as look:
        await look.see(lambda all_: len(all_) == 2)
        lines = [
            json.dumps(
                {
                    "type": "permission.asked",
                    "properties": {"id": f"per_{n}", "sessionID": noisy, "permission": "bash"},
                }
            ).encode()
            for n in range(3_000)
        ]
        for line in lines:
            await server.send(line)
        older.busy.add(quiet)
        await look.agent(AgentState.WORKING)
        assert sum(len(agent.asks) for agent in look.agents) <= 100
        told = [event for event in look.events if event.kind is EventKind.ASKED]
        assert len(told) <= 60


async def test_an_event_without_an_end_takes_no_memory(server: OpenCodeStandIn) -> None:
    server.session("Noisy")

    async with following(server) as look:
        await look.see(lambda all_: all_)
        tracemalloc.start()
        try:
            for _ in range(200):
                await server.send_raw(b"x" * 50_000)
            server.ask(next(iter(server.sessions)), "Which?", "A", "B")
            await look.agent(AgentState.WAITING)
            current, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert current < 5_000_000


async def test_a_watch_that_had_ended_told_once_more(
    server: OpenCodeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.sources.opencode.watch._TELL_SECONDS", 0.5)
    session, told = server.session(), list[ServerWatch]()
    async with new_http() as http:
        options = WatchOptions(poll=0.1, ask_timeout=3_600.0)
        watch = ServerWatch(OpenCodeServer(server.url, http), options, told.append)
        task = asyncio.create_task(watch.run())
        try:
            await until(lambda: watch.has_read and server.has_listener, "it to be followed")
            server.is_silent = True  # so that no look tells of it
            asked = server.permissions[server.ask_permission(session, "make test")]
            await server.publish("permission.asked", **asked)
            await until(watch.asks, "the event to be heard")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        before, now = len(told), asyncio.get_running_loop().time
        due = now() + 0.6
        await until(lambda: now() > due, "what was still to be told")

    assert len(told) == before


async def test_what_a_new_session_asks_is_shown_before_the_list_is_read_again(
    server: OpenCodeStandIn,
) -> None:
    server.session("Old")

    async with following(server, poll="1h") as look:
        await look.agent(AgentState.IDLE)
        await until(lambda: server.has_listener, "the stream")
        session = server.session("New")
        await server.publish("session.created", info=server.sessions[session])
        asked_id = server.ask_permission(session, "rm x")
        server.fail_with = 500  # nothing can be read: what shows comes from the stream
        await server.publish("permission.asked", **server.permissions[asked_id])
        agent = await look.agent(AgentState.PERMISSION)

    assert agent.session_id == session


@pytest.mark.parametrize(
    "odd",
    ["", ".", "..", ".\t.", "a/b", "..\\x", "a?b", "a#b", "%2e%2e", "a b", "a\n", "é", "x" * 999],
)
def test_an_answer_went_to_another_address_than_that_of_its_request(odd: str) -> None:
    assert read_id({"id": odd}, "id") == ""


@pytest.mark.parametrize(
    "usual", ["per_1aZ", "call_x|fc_y", "toolu_01:2", "chatcmpl-tool-5.1", "..."]
)
def test_ids_that_programs_use_are_taken(usual: str) -> None:
    assert read_id({"id": usual}, "id") == usual


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_a_number_too_large_was_shown_as_infinity(number: str) -> None:
    assert _parse(b'{"a": [%s, 0.5]}' % number.encode()) == {"a": [number, 0.5]}
