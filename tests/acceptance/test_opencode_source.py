"""What OpenCode's sessions ask is asked elsewhere as well, and answered there.

The server is played here: what it really does is in tests/agents/test_opencode_source.py.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json
from tests.standins.opencode import OpenCodeStandIn
from tests.waiting import until

GROUP = "team"


@pytest.fixture
async def server() -> AsyncIterator[OpenCodeStandIn]:
    async with OpenCodeStandIn() as server:
        yield server


@pytest.fixture
async def host(start_host: StartHost, server: OpenCodeStandIn) -> Host:
    return await start_host(settings(server))


def settings(*servers: OpenCodeStandIn, more: str = "") -> str:
    urls = json.dumps([server.url for server in servers])
    lines = [f"[groups.{GROUP}]", "[sources.opencode]", f'group = "{GROUP}"', f"urls = {urls}"]
    return "\n".join([*lines, "discover = false", 'poll = "200ms"', more])


async def replied(server: OpenCodeStandIn) -> tuple[str, Json]:
    await until(lambda: server.replies, "an answer")
    return server.replies[-1]


async def test_what_is_allowed_elsewhere_is_allowed_once_and_no_more(
    host: Host, server: OpenCodeStandIn
) -> None:
    session = server.session("Clean")
    asked_id = server.ask_permission(session, "git status")
    [asked] = await host.listed(1, GROUP)

    assert (asked["kind"], asked["agent"], asked["session_id"]) == (
        "permission",
        "opencode",
        session,
    )
    assert "```sh\ngit status\n```" in asked["questions"][0]["question"]
    host.answer(asked["short_id"], "always")

    assert await replied(server) == (f"/permission/{asked_id}/reply", {"reply": "once"})
    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")
    server.ask_permission(session, "git status")
    await until(lambda: len(server.replies) == 2, "the rule to answer")
    assert host.pending() == []


async def test_the_reason_of_a_no_is_told_word_for_word(
    host: Host, server: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session(), "git push")
    [asked] = await host.listed(1, GROUP)

    host.answer(asked["short_id"], "deny: not on a “Friday”")

    _, body = await replied(server)
    assert body == {"reply": "reject", "message": "not on a “Friday”"}


async def test_questions_are_answered_with_labels_and_own_words(
    host: Host, server: OpenCodeStandIn
) -> None:
    session = server.session()
    first = server.ask(session, "Which colour?", "Red ", "Green")
    [asked] = await host.listed(1, GROUP)
    host.answer(asked["short_id"], "Red")
    assert await replied(server) == (f"/question/{first}/reply", {"answers": [["Red "]]})

    second = server.ask(session, "And why?", "So", "Or so")
    [asked] = await host.listed(1, GROUP)
    host.answer(asked["short_id"], "because of the wall")
    await until(lambda: len(server.replies) == 2, "the second answer")
    assert server.replies[-1] == (
        f"/question/{second}/reply",
        {"answers": [["because of the wall"]]},
    )

    third = server.ask(session, "Really?", "Yes", "No")
    [asked] = await host.listed(1, GROUP)
    host.decline(asked["short_id"])
    await until(lambda: len(server.replies) == 3, "the third answer")
    assert server.replies[-1] == (f"/question/{third}/reject", {})


async def test_what_is_answered_there_first_is_cleared_here(
    host: Host, server: OpenCodeStandIn
) -> None:
    session = server.session()
    asked_id = server.ask(session, "Which?", "A", "B")
    [asked] = await host.listed(1, GROUP)

    server.questions.clear()
    await server.publish("question.replied", sessionID=session, requestID=asked_id)

    closed = await host.closed(asked["request_id"])
    assert (closed["ending"]["outcome"], closed["ending"]["reason"]) == (
        "cleared",
        "answered in OpenCode",
    )


async def test_who_is_too_late_is_told_so(host: Host, server: OpenCodeStandIn) -> None:
    session = server.session()
    server.ask(session, "Which?", "A", "B")
    [asked] = await host.listed(1, GROUP)

    server.take_none = True
    host.answer(asked["short_id"], "A")

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["outcome"] == "answered"
    assert closed["delivered"] == "dismissed"
    assert "no longer waits" in closed["delivery_error"]
    assert server.replies == []


async def test_an_aborted_session_asks_no_more(host: Host, server: OpenCodeStandIn) -> None:
    server.ask_permission(server.session(), "rm x")
    [asked] = await host.listed(1, GROUP)

    server.busy.clear()

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["reason"] == "OpenCode does not ask it any more"


async def test_a_server_that_starts_again_has_forgotten_its_questions(
    host: Host, server: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session(), "rm x")
    [asked] = await host.listed(1, GROUP)

    await server.stop()
    server.permissions.clear()
    server.busy.clear()
    await server.start()

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["outcome"] == "cleared"


@pytest.mark.parametrize("when", ["open", "answered there", "answered here", "gone"])
async def test_a_host_that_is_killed_asks_again_only_what_is_still_asked(
    host: Host, server: OpenCodeStandIn, when: str
) -> None:
    session = server.session()
    asked_id = server.ask_permission(session, "rm x")
    [asked] = await host.listed(1, GROUP)
    if when == "answered here":
        # It hears the answer, and takes none: what comes before it is silent, it would take.
        server.is_silent = True
        await asyncio.to_thread(host.answer, asked["short_id"], "approve")
        reply = f"/permission/{asked_id}/reply"
        await until(lambda: reply in server.unanswered, "the answer to be sent")
    host.kill()
    if when in {"answered there", "gone"}:
        server.permissions.clear()
    if when == "gone":
        server.busy.clear()
    server.is_silent = False
    await host.start()

    if when == "open":
        [again] = await host.listed(1, GROUP)
        assert again["request_id"] == asked["request_id"]
        host.answer(again["short_id"], "approve")
    closed = await host.closed(asked["request_id"])
    if when in {"open", "answered here"}:
        assert (closed["ending"]["outcome"], closed["delivered"]) == ("answered", "live")
        assert server.replies == [(f"/permission/{asked_id}/reply", {"reply": "once"})]
    else:
        assert (closed["ending"]["outcome"], server.replies) == ("cleared", [])
    assert [one["request_id"] for one in host.history()] == [asked["request_id"]]
    assert host.pending() == []


async def test_a_host_that_is_killed_when_its_answer_has_just_been_taken_answers_once(
    host: Host, server: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session(), "rm x")
    [asked] = await host.listed(1, GROUP)
    server.hang_after_taking = True
    host.answer(asked["short_id"], "approve")
    await replied(server)

    host.kill()
    server.hang_after_taking = False
    await host.start()

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["outcome"] == "answered"
    assert len(server.replies) == 1
    assert host.pending() == []


async def test_an_answer_reaches_a_server_that_was_away_for_a_moment(
    host: Host, server: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session(), "rm x")
    [asked] = await host.listed(1, GROUP)

    server.fail_with = 503
    host.answer(asked["short_id"], "approve")
    await until(lambda: server.failed_posts, "an attempt")
    assert server.replies == []
    server.fail_with = None

    assert (await replied(server))[1] == {"reply": "once"}
    closed = await host.closed(asked["request_id"])
    assert closed["delivered"] == "live"


async def test_of_a_notify_ask_that_is_only_shown_the_question_was_nowhere(
    start_host: StartHost, server: OpenCodeStandIn
) -> None:
    given = {"title": "Merge?", "question": "May I, with a merge?", "options": ["Yes", "No"]}
    more = {"agent": "Executor", "urgency": "high"}
    server.run_tool(server.session(), "notify_ask_user", 1.0, "completed", **given, **more)
    host = await start_host(settings(server))

    def asks() -> list[Json]:
        return [ask for row in host.http("GET", "/api/agents").body for ask in row["asks"]]

    [ask] = await until(asks, "the ask")
    assert (ask["title"], ask["text"], ask["options"]) == (
        *("Merge?", "May I, with a merge?", ["Yes", "No"]),
    )
    assert (ask["agent"], ask["urgency"], ask["short_id"]) == ("Executor", "high", None)
    page = host.page("/inbox/agents")
    for words in ("May I, with a merge?", "Executor", ">urgent<", "Yes", "No"):
        assert words in page
    [told] = [event for event in host.events() if event["type"] == "asked"]
    assert (told["title"], told["question"]) == ("Merge?", "May I, with a merge?")
    assert (told["agent"], told["urgency"]) == ("Executor", "high")
    assert host.pending() == []


async def test_a_notify_ask_is_only_shown_unless_a_prompt_may_answer_it(
    start_host: StartHost, server: OpenCodeStandIn
) -> None:
    session = server.session()
    given = {"title": "Merge?", "question": "May I?", "options": ["Yes", "No"]}
    server.run_tool(session, "notify_ask_user", 1.0, "completed", **given)
    host = await start_host(settings(server, more="reply_by_prompt = true"))
    [asked] = await host.listed(1, GROUP)

    host.answer(asked["short_id"], "Yes")

    path, body = await replied(server)
    assert path == f"/session/{session}/prompt_async"
    assert body["parts"] == [{"type": "text", "text": "The answer to your question “Merge?”: Yes"}]
    closed = await host.closed(asked["request_id"])
    assert closed["delivered"] == "live"


async def test_what_is_not_in_the_settings_any_more_is_let_go(
    host: Host, server: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session(), "rm x")
    [asked] = await host.listed(1, GROUP)

    host.kill()
    host.configure(f"[groups.{GROUP}]\n")
    await host.start()

    closed = await host.closed(asked["request_id"])
    assert closed["ending"]["reason"] == "[sources.opencode] is not in the settings any more"


ELSEWHERE = "/srv/other"


async def ask_elsewhere(server: OpenCodeStandIn, host: Host) -> tuple[str, Json]:
    """Let a session ask that works in another folder than the server's own."""
    session = server.session("Elsewhere", directory=ELSEWHERE)
    server.busy.add(session)
    server.run_tool(session, "bash", 1.0, command="rm x")
    asked_id = server.ask_permission(session, "rm x")
    [asked] = await host.listed(1, GROUP)
    return asked_id, asked


@pytest.mark.parametrize("when", ["open", "answered"])
async def test_a_restart_ends_nothing_that_is_asked_in_another_folder(
    host: Host, server: OpenCodeStandIn, when: str
) -> None:
    asked_id, asked = await ask_elsewhere(server, host)
    if when == "answered":
        server.fail_with = 503
        host.answer(asked["short_id"], "approve")
        await until(lambda: server.failed_posts, "an attempt")

    host.kill()
    server.fail_with = None
    await host.start()
    if when == "open":
        [again] = await host.listed(1, GROUP)
        assert again["request_id"] == asked["request_id"]
        host.answer(again["short_id"], "approve")

    assert await replied(server) == (f"/permission/{asked_id}/reply", {"reply": "once"})
    assert (await host.closed(asked["request_id"]))["delivered"] == "live"


async def test_a_restart_cleared_what_is_asked_in_a_folder_that_failed_meanwhile(
    host: Host, server: OpenCodeStandIn
) -> None:
    asked_id, asked = await ask_elsewhere(server, host)

    host.kill()
    server.folders.clear()
    server.broken_folders.add(ELSEWHERE)
    await host.start()
    await until(lambda: server.folders.count(ELSEWHERE) > 1, "the folder to be tried twice")
    assert [one["request_id"] for one in host.pending()] == [asked["request_id"]]
    server.broken_folders.clear()
    host.answer(asked["short_id"], "approve")

    assert await replied(server) == (f"/permission/{asked_id}/reply", {"reply": "once"})
    assert (await host.closed(asked["request_id"]))["delivered"] == "live"


async def test_a_server_that_fails_for_a_while_keeps_what_it_asks_in_every_folder(
    host: Host, server: OpenCodeStandIn
) -> None:
    _, asked = await ask_elsewhere(server, host)

    server.fail_with = 500
    await until(lambda: "500" in str(host.http("GET", "/api/status").body["problems"]), "the fault")
    server.fail_with = None
    await until(lambda: not host.http("GET", "/api/status").body["problems"], "its end")

    [still] = host.pending()
    assert (still["request_id"], still["state"]) == (asked["request_id"], "open")


async def test_what_is_taken_back_and_asked_again_is_asked_again_here(
    host: Host, server: OpenCodeStandIn
) -> None:
    session = server.session()
    asked_id = server.ask_permission(session, "rm x")
    [asked] = await host.listed(1, GROUP)
    withdrawn = server.permissions.pop(asked_id)
    await host.closed(asked["request_id"])

    server.permissions[asked_id] = withdrawn
    [again] = await host.listed(1, GROUP)
    assert again["request_id"] != asked["request_id"]
    host.answer(again["short_id"], "approve")

    assert await replied(server) == (f"/permission/{asked_id}/reply", {"reply": "once"})


async def test_what_expired_here_is_still_seen_at_its_own_screen(
    start_host: StartHost, server: OpenCodeStandIn
) -> None:
    server.ask_permission(server.session(), "rm x")
    times = 'answer_ttl = "1s"\nwait_timeout = "1s"\n'
    host = await start_host(times + settings(server))
    await until(
        lambda: [q for q in host.history() if q["ending"]["outcome"] == "expired"], "its end"
    )

    def rows() -> list[Json]:
        found = host.http("GET", "/api/agents").body
        return [row for row in found if row["state"] == "permission"]

    await until(rows, "the row")
    host.kill()
    await host.start()
    await until(rows, "the row after a restart")
    assert server.replies == []


async def test_events_that_are_not_known_end_nothing(host: Host, server: OpenCodeStandIn) -> None:
    session = server.session()
    asked_id = server.ask_permission(session, "rm x")
    [asked] = await host.listed(1, GROUP)

    for kind in ("permission.updated", "permission.v3.seen", "question.listed"):
        await server.publish(kind, id=asked_id, sessionID=session, requestID=asked_id)
    other = server.ask(server.session(), "Which?", "A", "B")
    await host.listed(2, GROUP)

    assert asked["request_id"] in {one["request_id"] for one in host.pending()}
    assert other in server.questions


@pytest.mark.parametrize("when", ["open", "answered"])
async def test_a_host_stops_at_once_while_a_foreign_question_is_open(
    host: Host, server: OpenCodeStandIn, when: str
) -> None:
    server.ask_permission(server.session(), "rm x")
    [asked] = await host.listed(1, GROUP)
    if when == "answered":
        server.fail_with = 503
        host.answer(asked["short_id"], "approve")
        await until(lambda: server.failed_posts, "an attempt")

    assert await host.stop() == 0


@pytest.mark.parametrize("forward", ["forward = []", ""])
async def test_half_a_character_stops_no_host(
    start_host: StartHost, server: OpenCodeStandIn, forward: str
) -> None:
    half = "\ud800"
    server.sessions[server.session()]["title"] = half
    broken = server.session()
    server.ask_permission(broken, f"rm {half}")
    server.ask(broken, f"Which{half}?", f"A{half}", "B")
    server.ask_permission(server.session(), "git status")
    host = await start_host(settings(server, more=forward))

    def seen() -> bool:
        rows = host.http("GET", "/api/agents").body
        return sum(row["state"] == "permission" for row in rows) == 2

    await until(seen, "both to be seen")
    assert host.http("GET", "/healthz").status == 200


async def test_several_choices_go_back_as_the_server_wrote_them(
    host: Host, server: OpenCodeStandIn
) -> None:
    session = server.session()
    asked_id = server.ask(session, "Which?", "Red", "Green", "Blue")
    server.questions[asked_id]["questions"][0]["multiple"] = True
    [asked] = await host.listed(1, GROUP)

    host.answer(asked["short_id"], "Red", "Blue")

    _, body = await replied(server)
    assert body == {"answers": [["Red", "Blue"]]}


async def test_a_server_that_does_not_run_is_named_where_agents_are_listed(
    start_host: StartHost,
) -> None:
    gone = OpenCodeStandIn(port=9)
    host = await start_host(settings(gone))

    async def told() -> bool:
        code, out, err = await host.cli("agents")
        assert (code, "No agent is here" in out) == (0, True)
        return f"problem: OpenCode at {gone.url}: nobody listens there" in err

    await until(told, "the problem")
