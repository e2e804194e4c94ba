"""The scripted model: as strict as the real ones, and never with a turn that nobody wrote."""

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.standins.models import (
    AskUser,
    BreakOff,
    CallTool,
    CheckAnswer,
    ModelStandIn,
    Refuse,
    Say,
    load_script,
)

Json = dict[str, Any]

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
KEYS = {"authorization": "Bearer x", "anthropic-version": "2023-06-01"}
TOOL = {"ask_user": "mcp__pynchy__ask_user", "check_answer": "mcp__pynchy__check_answer"}


@pytest.fixture
def model() -> Iterator[ModelStandIn]:
    with ModelStandIn() as model:
        yield model


def post(
    model: ModelStandIn, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    address = urlsplit(model.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, payload, KEYS if headers is None else headers)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def events(text: str) -> list[Json]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def request(path: str, *turns: Any) -> Json:
    """Return a request of that API whose history is "hello" and the items."""
    if path == RESPONSES:
        space = {"type": "namespace", "name": "mcp__pynchy"}
        tools = [space | {"tools": [{"type": "function", "name": name} for name in TOOL]}]
        hello = {"type": "message", "role": "user", "content": []}
        return {"model": "m", "input": [hello, *turns], "tools": tools}
    hello = {"role": "user", "content": "hello"}
    names = TOOL.values() if path == MESSAGES else [f"pynchy_{name}" for name in TOOL]
    tools = [{"name": n} if path == MESSAGES else {"function": {"name": n}} for n in names]
    return {"model": "m", "max_tokens": 9, "messages": [hello, *turns], "tools": tools}


CALL: dict[str, Any] = {
    MESSAGES: {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}]},
    RESPONSES: {"type": "function_call", "call_id": "c1"},
    CHAT: {"role": "assistant", "tool_calls": [{"id": "c1"}]},
}
RESULT: dict[str, Any] = {
    MESSAGES: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]},
    RESPONSES: {"type": "function_call_output", "call_id": "c1", "output": "x"},
    CHAT: {"role": "tool", "tool_call_id": "c1", "content": "x"},
}
PATHS = pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])


@PATHS
def test_a_turn_is_streamed_and_its_request_kept(model: ModelStandIn, path: str) -> None:
    model.add([Say("Hello."), AskUser("Deploy?", "Yes", "No")])

    status, text = post(model, path, request(path))

    assert status == 200
    assert "Hello." in text
    assert "ask_user" in text
    assert "Deploy?" in text
    assert [one.path for one in model.requests] == [path]
    assert model.requests[0].body == request(path)
    assert model.refused == []


def test_a_tool_is_called_by_the_name_under_which_it_is_offered(model: ModelStandIn) -> None:
    model.add(*[[AskUser("Deploy?")]] * 3)

    [block] = [
        event["content_block"]
        for event in events(post(model, MESSAGES, request(MESSAGES))[1])
        if event["type"] == "content_block_start"
    ]
    [item] = [
        event["item"]
        for event in events(post(model, RESPONSES, request(RESPONSES))[1])
        if event["type"] == "response.output_item.done"
    ]
    deltas = [e["choices"][0]["delta"] for e in events(post(model, CHAT, request(CHAT))[1])]
    [call] = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]

    assert block["name"] == "mcp__pynchy__ask_user"
    assert (item["namespace"], item["name"]) == ("mcp__pynchy", "ask_user")
    assert call["function"]["name"] == "pynchy_ask_user"
    assert len({block["id"], item["call_id"], call["id"]}) == 3


@PATHS
def test_a_call_with_its_result_is_taken(model: ModelStandIn, path: str) -> None:
    model.add([Say("Fine.")])

    assert post(model, path, request(path, CALL[path], RESULT[path]))[0] == 200


@PATHS
@pytest.mark.parametrize("what", ["no result", "no call", "no key", "no model", "not JSON"])
def test_what_the_api_would_refuse_is_refused(model: ModelStandIn, path: str, what: str) -> None:
    model.add([Say("Fine.")])
    body: Any = {
        "no result": request(path, CALL[path]),
        "no call": request(path, RESULT[path]),
        "no model": request(path) | {"model": ""},
        "not JSON": b"{",
    }.get(what, request(path))

    status, _ = post(model, path, body, {} if what == "no key" else None)

    assert status == 400
    assert len(model.refused) == 1
    assert model.requests == []


def test_a_result_in_a_later_message_comes_too_late(model: ModelStandIn) -> None:
    model.add([Say("Fine.")])
    between = {"role": "user", "content": "wait"}

    status, text = post(
        model, MESSAGES, request(MESSAGES, CALL[MESSAGES], between, RESULT[MESSAGES])
    )

    assert status == 400
    assert "c1" in text


@PATHS
def test_a_tool_that_is_not_offered_and_a_script_that_is_over_are_errors(
    model: ModelStandIn, path: str
) -> None:
    model.add([CallTool("fly")])

    assert post(model, path, request(path))[0] == 400
    assert post(model, path, request(path))[0] == 400
    assert ["fly" in one.problem for one in model.refused] == [True, False]
    assert "over" in model.refused[1].problem


@PATHS
def test_a_request_without_tools_takes_no_turn(model: ModelStandIn, path: str) -> None:
    model.add([Say("Fine.")])

    assert post(model, path, request(path) | {"tools": []})[0] == 200
    assert "Fine." in post(model, path, request(path))[1]
    assert len(model.requests) == 1
    assert len(model.exchanges) == 2


def test_a_scripted_failure_is_no_refusal(model: ModelStandIn) -> None:
    model.add(Refuse(529, "busy"), [Say("Fine.")])

    assert post(model, MESSAGES, request(MESSAGES))[0] == 529
    assert post(model, MESSAGES, request(MESSAGES))[0] == 200
    assert (model.refused, len(model.requests)) == ([], 1)


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
def test_a_stream_that_breaks_off_is_accepted_and_holds_nothing(
    model: ModelStandIn, path: str
) -> None:
    model.add(BreakOff(), [Say("Fine.")])

    assert post(model, path, request(path)) == (200, "")
    assert "Fine." in post(model, path, request(path))[1]
    assert (model.refused, len(model.requests)) == ([], 2)


def test_the_last_id_is_the_one_that_the_program_was_told_last(model: ModelStandIn) -> None:
    model.add([CheckAnswer("last", 5)])
    told = {"role": "user", "content": "open under request_id aaa1. … open under request_id bbb2."}

    _, text = post(model, MESSAGES, request(MESSAGES, told))

    assert "bbb2" in text
    assert "aaa1" not in text


def test_other_paths_are_not_there(model: ModelStandIn) -> None:
    assert post(model, "/v2/else", {})[0] == 404
    assert model.exchanges == []


def test_waiting_for_requests_ends_when_they_come_or_the_time_is_over(
    model: ModelStandIn,
) -> None:
    model.add([Say("Fine.")])
    later = threading.Thread(target=post, args=(model, MESSAGES, request(MESSAGES)))
    later.start()

    assert len(model.wait_for(1, 30)) == 1
    later.join()
    with pytest.raises(TimeoutError):
        model.wait_for(2, 0.01)


def test_a_script_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('[[{"say": "Hi."}, {"call": "ask_user", "arguments": {"a": 1}}], []]')

    assert load_script(path) == [[Say("Hi."), CallTool("ask_user", {"a": 1})], []]
    for odd in ("{}", "[1]", '[[{"sing": 1}]]'):
        path.write_text(odd)
        with pytest.raises(ValueError, match="script"):
            load_script(path)


def test_the_stand_in_can_be_started_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('[[{"say": "Hi."}]]')
    command = [sys.executable, "-m", "tests.standins.models", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()

    assert "http://127.0.0.1:" in line
