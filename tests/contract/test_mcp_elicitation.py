"""The person in front of the client is asked as well, where the host allows it: MCP's elicitation.

Both sides are real: the server as a process, and the official client or bare pipes on its own.
"""

import asyncio
import json
import os
import pwd
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitRequestParams, ElicitResult
from tests.contract.agent_support import (
    SERVER,
    HostStandIn,
    RawServer,
    log_of,
    server_environment,
    start_raw,
    text_of,
)
from tests.waiting import until

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": FORMS,
}
DEPLOY = {"question": "Deploy?", "options": ["Yes", {"label": "No", "description": "not today"}]}
STRICT = DEPLOY | {"options_only": True}
REGIONS = {"question": "Where?", "header": "Regions", "options": ["eu", "us"], "multiSelect": True}
WHY = {"question": "Why?"}


@pytest.fixture
def host(tmp_path: Path) -> HostStandIn:
    """A host that says that the desk may answer."""
    host = HostStandIn(tmp_path / "ipc")
    told = {"v": 1, "wait_seconds": 1800, "desk_answers": True}
    (host.ipc_dir / "input" / "host.json").write_text(json.dumps(told))
    return host


@pytest.fixture
async def server(host: HostStandIn) -> AsyncIterator[RawServer]:
    async with start_raw(host.ipc_dir) as raw:
        yield raw


async def shake_hands(server: RawServer, version: str = "2025-11-25", **capabilities: Any) -> None:
    declared = capabilities or FORMS
    server.send("initialize", "hello", protocolVersion=version, capabilities=declared)
    assert (await server.receive())["result"]["protocolVersion"] == version
    server.send("notifications/initialized")


async def ask(server: RawServer, host: HostStandIn, *questions: Any, **fields: Any) -> Any:
    """Ask, take the question as the host does, and return it with the form that is shown."""
    server.call(1, "ask_user", questions=list(questions or [DEPLOY]), **fields)
    request = await host.request()
    form = await server.receive()
    assert form["method"] == "elicitation/create"
    return request, form


def reply(server: RawServer, form: Any, action: str, **content: Any) -> None:
    result = {"action": action, **({"content": content} if action == "accept" else {})}
    message = {"jsonrpc": "2.0", "id": form["id"], "result": result}
    server.write(json.dumps(message).encode() + b"\n")


def answers_of(told: Any) -> list[tuple[list[str], str | None]]:
    return [(one["selected"], one["text"]) for one in told["answers"]]


async def is_silent(server: RawServer) -> None:
    """See that nothing but the answer to a ping comes: whatever was to be sent is out before."""
    server.send("ping", "still there")
    assert (await server.receive())["id"] == "still there"


async def test_the_official_client_falls_back_to_a_handshake_and_its_person_answers(
    host: HostStandIn,
) -> None:
    shown: list[ElicitRequestParams] = []

    async def at_desk(_context: Any, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params)
        return ElicitResult(action="accept", content={"question_1": "Yes"})

    parameters = StdioServerParameters(
        command=sys.executable, args=list(SERVER), env=server_environment(host.ipc_dir)
    )
    with log_of(host.ipc_dir).open("w") as log:
        transport = stdio_client(parameters, errlog=log)
        async with Client(transport, elicitation_callback=at_desk) as client:
            call = asyncio.create_task(client.call_tool("ask_user", {"questions": [DEPLOY]}))
            request = await host.request()
            told = await host.request("desk_answer")
            host.respond(
                request["request_id"],
                answered_by=told["by"],
                channel="desk",
                answers=[{"question": "Deploy?", **told["answers"][0]}],
            )
            result = await call
            version = client.protocol_version

    assert version == "2025-11-25"
    assert [params.message for params in shown] == ["Deploy?"]
    assert (told["by"], answers_of(told)) == (pwd.getpwuid(os.getuid()).pw_name, [(["Yes"], None)])
    assert "Answer: Yes" in text_of(result)


async def test_a_form_has_a_field_for_each_question_and_for_own_words(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)

    _, form = await ask(server, host, DEPLOY, REGIONS, WHY, STRICT, title="Before the release")

    choices = [{"const": "Yes", "title": "Yes"}, {"const": "No", "title": "No: not today"}]
    regions = [{"const": "eu", "title": "eu"}, {"const": "us", "title": "us"}]
    own_words = {"type": "string", "title": "Or in your own words"}
    assert form["params"]["message"] == "Before the release"
    assert form["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {
            "question_1": {
                "type": "string",
                "title": "Question 1",
                "description": "Deploy?",
                "oneOf": choices,
            },
            "question_1_words": own_words,
            "question_2": {
                "type": "array",
                "title": "Regions",
                "description": "Where?",
                "items": {"anyOf": regions},
            },
            "question_2_words": own_words,
            "question_3": {
                "type": "string",
                "title": "Question 3",
                "description": "Why?",
                "minLength": 1,
            },
            "question_4": {
                "type": "string",
                "title": "Question 4",
                "description": "Deploy?",
                "oneOf": choices,
            },
        },
        "required": ["question_3", "question_4"],
    }


async def test_what_is_chosen_and_written_is_passed_on_question_by_question(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)
    _, form = await ask(server, host, DEPLOY, REGIONS, WHY)

    written = {"question_1_words": " not now ", "question_3": "it is late"}
    reply(server, form, "accept", question_2=["eu", "us"], **written)
    told = await host.request("desk_answer")

    assert answers_of(told) == [([], "not now"), (["eu", "us"], None), ([], "it is late")]


async def test_the_dialog_goes_before_the_result_when_the_phone_was_first(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)
    request, form = await ask(server, host)

    host.answer(request, "from the phone")
    over, result = await server.receive(), await server.receive()
    reply(server, form, "accept", question_1="Yes")  # too late, and ignored
    await is_silent(server)

    assert over["method"] == "notifications/cancelled"
    assert over["params"]["requestId"] == form["id"]
    assert "from the phone" in json.dumps(result["result"])
    assert host.requests("desk_answer") == []


@pytest.mark.parametrize("action", ["cancel", "decline", "no action at all"])
async def test_who_closes_the_dialog_has_answered_nothing_and_is_not_asked_again(
    host: HostStandIn, server: RawServer, action: str
) -> None:
    await shake_hands(server)
    request, form = await ask(server, host)

    reply(server, form, action)
    await is_silent(server)
    host.answer(request, "from the phone")
    result = await server.receive()

    assert host.requests("desk_answer") == []
    assert result["id"] == 1
    assert "from the phone" in json.dumps(result["result"])


async def test_a_client_that_refuses_the_form_changes_nothing(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)
    request, form = await ask(server, host)

    error = {"jsonrpc": "2.0", "id": form["id"], "error": {"code": -32603, "message": "no"}}
    server.write(json.dumps(error).encode() + b"\n")
    await is_silent(server)
    host.answer(request, "from the phone")

    assert "from the phone" in json.dumps((await server.receive())["result"])


async def test_an_empty_form_is_shown_again_but_not_forever(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)
    _, form = await ask(server, host)
    shown = [form]

    for _ in range(2):
        reply(server, shown[-1], "accept", question_1_words=" ")
        shown.append(await server.receive())
    reply(server, shown[-1], "accept")
    await is_silent(server)

    assert [one["params"]["message"].startswith("An answer is missing") for one in shown] == [
        False,
        True,
        True,
    ]
    assert host.requests("desk_answer") == []


async def test_a_cancelled_call_takes_its_dialog_back(host: HostStandIn, server: RawServer) -> None:
    await shake_hands(server)
    _, form = await ask(server, host)

    server.send("notifications/cancelled", requestId=1)
    over = await server.receive()
    await host.request("cancel")

    assert (over["method"], over["params"]["requestId"]) == ("notifications/cancelled", form["id"])


async def test_no_dialog_before_a_host_has_the_question(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)
    server.call(1, "ask_user", questions=[DEPLOY])
    await until(host.requests, "the question")
    await is_silent(server)

    await host.request()

    assert (await server.receive())["method"] == "elicitation/create"


async def test_an_approval_is_never_given_at_the_desk(host: HostStandIn, server: RawServer) -> None:
    await shake_hands(server)
    server.call(7, "request_approval", action="Deploy?")
    approval = await host.request()

    # Its dialog would have come up before that of a question which is asked now.
    question, form = await ask(server, host)

    assert form["params"]["message"] == "Deploy?"
    assert "question_1" in form["params"]["requestedSchema"]["properties"]
    host.answer(question, "Yes")
    assert (await server.receive())["params"]["requestId"] == form["id"]
    assert (await server.receive())["id"] == 1
    answer = {"question": "", "selected": ["Approve"], "values": ["approve"], "text": None}
    host.respond(approval["request_id"], answers=[answer])
    assert (await server.receive())["id"] == 7


async def test_who_does_not_wait_is_shown_no_dialog(server: RawServer) -> None:
    await shake_hands(server)

    server.call(1, "ask_user", questions=[DEPLOY], wait_for_response=False)

    assert (await server.receive())["id"] == 1


@pytest.mark.parametrize(
    ("version", "capabilities"),
    [
        ("2025-11-25", {"roots": {}}),
        ("2025-11-25", {"elicitation": {"url": {}}}),
        ("2025-11-25", {"elicitation": None}),
        ("2025-06-18", {"elicitation": {}}),
    ],
    ids=str,
)
async def test_a_client_that_shows_no_such_forms_is_sent_none(
    host: HostStandIn, server: RawServer, version: str, capabilities: Any
) -> None:
    await shake_hands(server, version, **capabilities)
    server.call(1, "ask_user", questions=[DEPLOY])

    host.answer(await host.request(), "from the phone")

    assert (await server.receive())["id"] == 1


async def test_without_the_setting_nothing_is_shown_and_the_newest_era_is_spoken(
    tmp_path: Path,
) -> None:
    host = HostStandIn(tmp_path / "plain")
    async with start_raw(host.ipc_dir) as server:
        server.send("server/discover", 1, _meta=META)
        discovered = await server.receive()
        await shake_hands(server)
        server.call(2, "ask_user", questions=[DEPLOY])
        host.answer(await host.request(), "from the phone")
        result = await server.receive()

    assert discovered["result"]["supportedVersions"] == ["2026-07-28"]
    assert result["id"] == 2


async def test_only_a_client_that_shows_forms_is_turned_away_from_the_newest_era(
    server: RawServer,
) -> None:
    plain = META | {"io.modelcontextprotocol/clientCapabilities": {}}
    server.send("server/discover", 1, _meta=META)
    server.send("server/discover", 2, _meta=plain)
    turned_away, served = await server.receive(), await server.receive()

    assert turned_away["error"]["code"] == -32601
    assert served["result"]["supportedVersions"] == ["2026-07-28"]


async def test_a_call_of_the_newest_era_is_shown_nowhere_else(
    host: HostStandIn, server: RawServer
) -> None:
    await shake_hands(server)
    arguments = {"questions": [DEPLOY]}
    server.send("tools/call", 1, name="ask_user", arguments=arguments, _meta=META)

    host.answer(await host.request(), "from the phone")

    assert (await server.receive())["id"] == 1
