"""The tools as an agent program sees them: the official client, a real process, both eras."""

import asyncio
import json
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from tests.contract.agent_support import ERAS, HostStandIn, connect, log_of, text_of
from tests.waiting import until

pytestmark = pytest.mark.parametrize("era", ERAS)

ONE = {"questions": [{"question": "Deploy?", "options": ["Yes", "No"]}]}

# The server as it is, but with progress every 50 ms.
HASTY = """
import asyncio, os, pathlib
from agent_runner.agent_tools import Identity, serve
path = pathlib.Path(os.environ["PYNCHY_IPC_DIR"])
asyncio.run(serve(path, Identity(), stdin=0, stdout=1, progress_seconds=0.05))
"""


@pytest.fixture
def host(tmp_path: Path) -> HostStandIn:
    return HostStandIn(tmp_path / "ipc")


async def test_the_tools_are_listed_with_schemas(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        tools = (await client.list_tools()).tools

    names = ["ask_user", "check_answer", "withdraw_question", "request_approval"]
    assert [tool.name for tool in tools] == names
    assert tools[0].input_schema["required"] == ["questions"]
    assert "consent" in (tools[0].description or "")
    assert tools[3].input_schema["required"] == ["action"]
    assert "consent" in (tools[3].description or "")


async def test_a_client_that_must_ask_for_permissions_is_denied_them(
    host: HostStandIn, era: str
) -> None:
    wanted = {"tool_name": "Bash", "input": {}, "tool_use_id": "t1"}
    async with connect(host.ipc_dir, era, PYNCHY_DENIES="1") as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("permissions", wanted)
    async with connect(host.ipc_dir, era) as client:
        with pytest.raises(MCPError):
            await client.call_tool("permissions", wanted)

    assert tools[-1].name == "permissions"
    assert json.loads(text_of(result))["behavior"] == "deny"


async def test_a_permission_that_is_too_large_to_be_asked_for_is_denied_in_words(
    host: HostStandIn, era: str
) -> None:
    wanted = {"tool_name": "Bash", "input": {"command": "x" * 300_000}, "tool_use_id": "t1"}
    async with connect(host.ipc_dir, era, PYNCHY_PERMISSIONS="1") as client:
        result = await client.call_tool("permissions", wanted)

    told = json.loads(text_of(result))
    assert told["behavior"] == "deny"
    assert "at most 262144" in told["message"]


async def test_a_permission_that_our_tool_asks_for_blocks_where_the_group_parks(
    host: HostStandIn, era: str
) -> None:
    told = {"v": 1, "wait_seconds": 1800, "park_after_seconds": 0}
    (host.ipc_dir / "input" / "host.json").write_text(json.dumps(told))
    wanted = {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t1"}
    async with connect(host.ipc_dir, era, PYNCHY_PERMISSIONS="1") as client:
        call = asyncio.create_task(client.call_tool("permissions", wanted))
        request = await host.request()
        await client.list_tools()
        waits = not call.done()
        said = {"question": "?", "selected": ["Allow once"], "values": ["approve"]}
        host.respond(request["request_id"], answers=[said])
        result = await call

    assert waits
    assert json.loads(text_of(result))["behavior"] == "allow"
    assert host.requests("park") == []


async def test_an_answer_reaches_the_call_and_leaves_a_receipt(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era, PYNCHY_AGENT="dev", PYNCHY_TASK="release") as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        answers = [{"question": "Deploy?", "selected": ["Yes"], "text": "after lunch"}]
        host.respond(request["request_id"], answers=answers)
        result = await call

    text = text_of(result)
    assert not result.is_error
    for part in ("Deploy?", "Yes", "after lunch", "Ana", "local", "2026-11-16T09:30:00Z"):
        assert part in text
    receipt = host.receipt(request["request_id"])
    assert receipt is not None
    assert receipt["by"] == "waiter"
    assert request["agent"] == "dev"
    assert request["task"] == "release"
    assert request["session_id"] == "session-1"
    assert request["wait_seconds"] == 1800
    assert request["questions"][0]["options"] == [{"label": "Yes"}, {"label": "No"}]


async def test_whoever_started_the_client_learns_of_the_first_call(
    host: HostStandIn, era: str
) -> None:
    called = host.ipc_dir / "called"
    async with connect(host.ipc_dir, era, PYNCHY_CALLED=str(called)) as client:
        await client.list_tools()
        assert not called.exists()
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        assert called.exists()
        host.answer(request, "yes")
        await call


async def test_the_lease_of_a_living_server_is_named_and_then_removed(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        assert [path.stem for path in host.files("*.lease")] == [request["lease"]]
        host.answer(request, "yes")
        await call

    assert host.files("*.lease") == []


async def test_parallel_questions_get_their_own_answers(host: HostStandIn, era: str) -> None:
    names = [f"question {number}" for number in range(8)]

    async with connect(host.ipc_dir, era) as client:
        calls = [
            asyncio.create_task(client.call_tool("ask_user", {"questions": [{"question": name}]}))
            for name in names
        ]
        requests = [await host.request() for _ in names]
        for request in reversed(requests):
            host.answer(request, f"answer to {request['questions'][0]['question']}")
        texts = [text_of(result) for result in await asyncio.gather(*calls)]

    for name, text in zip(names, texts, strict=True):
        assert text.count("answer to") == 1
        assert f"answer to {name}" in text


async def test_a_timeout_leaves_the_question_open_and_the_next_result_brings_the_answer(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", {**ONE, "timeout": 0.3}))
        request = await host.request()
        pending = await call
        host.answer(request, "yes, go")
        other = asyncio.create_task(client.call_tool("ask_user", {"question": "And now?"}))
        host.answer(await host.request(), "now too")
        result = await other

    assert request["wait_seconds"] == 0.3
    assert not pending.is_error
    assert request["request_id"] in text_of(pending)
    assert "not running" not in text_of(pending)
    assert "now too" in text_of(result)
    assert "yes, go" in text_of(result)
    assert host.receipt(request["request_id"]) is not None


async def test_without_a_host_the_timeout_says_so(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("ask_user", {**ONE, "timeout": 0.2})

    assert "seems not to be running" in text_of(result)


async def test_the_clients_own_limit_ends_the_wait_before_it(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era, PYNCHY_MAX_WAIT="0.6") as client:
        result = await client.call_tool("ask_user", ONE, read_timeout_seconds=20)

    assert "No answer yet" in text_of(result)
    assert host.requests()[0]["wait_seconds"] == 1800


async def test_the_hosts_setting_is_how_long_a_call_blocks(host: HostStandIn, era: str) -> None:
    (host.ipc_dir / "input" / "host.json").write_text('{"v": 1, "wait_seconds": 0.2}')

    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("ask_user", ONE)

    assert "No answer yet" in text_of(result)
    assert host.requests()[0]["wait_seconds"] == 0.2


async def test_not_waiting_returns_the_id_at_once_and_check_answer_brings_the_answer(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        asked = await client.call_tool("ask_user", {**ONE, "wait_for_response": False})
        request = await host.request()
        check = {"request_id": request["request_id"]}
        early = await client.call_tool("check_answer", check)
        waiting = asyncio.create_task(client.call_tool("check_answer", {**check, "timeout": 15}))
        host.answer(request, "blue")
        answered = await waiting
        again = await client.call_tool("check_answer", check)

    assert request["request_id"] in text_of(asked)
    assert "No answer yet" in text_of(early)
    assert "blue" in text_of(answered)
    assert "Already delivered" not in text_of(answered)
    assert "blue" in text_of(again)
    assert "Already delivered" in text_of(again)


async def test_check_answer_does_not_claim_that_an_id_it_has_not_asked_stands_for_a_question(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("check_answer", {"request_id": "zzz"})

    told = text_of(result)
    assert told.startswith("No answer yet under request_id zzz.")
    assert "cannot tell whether there is one" in told
    assert "Silence is not consent" in told


async def test_check_answer_takes_up_the_question_of_an_earlier_process(
    host: HostStandIn, era: str
) -> None:
    host.respond("earlier", answers=[{"question": "Deploy?", "selected": ["No"], "text": None}])

    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("check_answer", {"request_id": "earlier"})

    assert "No" in text_of(result)
    assert host.receipt("earlier") is not None


async def test_what_a_resumed_session_was_given_is_shown_but_not_to_be_applied_twice(
    host: HostStandIn, era: str
) -> None:
    host.respond("late", answers=[{"question": "Deploy?", "selected": ["No"], "text": None}])
    host.take_receipt("late")

    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("check_answer", {"request_id": "late"})

    assert "Already delivered" in text_of(result)
    assert "Answer: No" in text_of(result)


async def test_a_waiter_whose_receipt_is_taken_gets_no_answer(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        host.take_receipt(request["request_id"])
        host.answer(request, "secret")
        result = await call

    assert "resumed session" in text_of(result)
    assert "secret" not in text_of(result)


async def test_withdrawing_tells_the_host_and_reports_how_it_ended(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        await client.call_tool("ask_user", {**ONE, "wait_for_response": False})
        request = await host.request()
        identity = {"request_id": request["request_id"]}
        call = asyncio.create_task(client.call_tool("withdraw_question", identity))
        withdrawal = await host.request("withdraw")
        host.respond(request["request_id"], outcome="withdrawn", answered_by=None, channel=None)
        result = await call

    assert withdrawal["request_id"] == request["request_id"]
    assert "is withdrawn" in text_of(result)


async def test_withdrawing_what_was_answered_first_brings_the_answer(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        await client.call_tool("ask_user", {**ONE, "wait_for_response": False})
        request = await host.request()
        host.answer(request, "too late")
        identity = {"request_id": request["request_id"]}
        result = await client.call_tool("withdraw_question", identity)

    assert "over before" in text_of(result)
    assert "too late" in text_of(result)
    assert host.receipt(request["request_id"]) is not None


async def test_progress_says_who_is_waited_for(host: HostStandIn, era: str) -> None:
    messages: list[str] = []

    async def on_progress(_progress: float, _total: float | None, message: str | None) -> None:
        messages.append(message or "")

    async with connect(host.ipc_dir, era, arguments=("-c", HASTY)) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE, progress_callback=on_progress))
        await until(lambda: messages, "progress")
        request = await host.request()
        await until(lambda: "waiting for a person" in messages[-1], "progress about a person")
        unseen = host.responses / f"{request['request_id']}.unseen.json"
        unseen.write_text('{"v": 1, "why": "chat: the service is down"}')
        await until(lambda: "nobody has seen this yet" in messages[-1], "progress about channels")
        assert "chat: the service is down" in messages[-1]
        unseen.write_text("rubbish")
        await until(lambda: "waiting for a person" in messages[-1], "progress about a person")
        host.answer(request, "yes")
        result = await call

    assert messages[0].startswith("no pynchy host has picked this up yet")
    assert "yes" in text_of(result)


async def test_a_cancelled_call_tells_the_host_and_its_answer_comes_later(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        call.cancel()
        cancel = await host.request("cancel")
        host.answer(request, "still wanted")
        result = await client.call_tool("check_answer", {"request_id": "unknown"})

    assert cancel["request_id"] == request["request_id"]
    assert "still wanted" in text_of(result)


@pytest.mark.parametrize(
    ("outcome", "words", "is_error"),
    [
        ("declined", "not consent", False),
        ("defaulted", "Nobody answered", False),
        ("expired", "not consent", False),
        ("undeliverable", "could not be shown", True),
    ],
)
async def test_every_ending_is_told_in_words(
    host: HostStandIn, era: str, outcome: str, words: str, *, is_error: bool
) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        host.respond(request["request_id"], outcome=outcome, answered_by=None, channel=None)
        result = await call

    assert words in text_of(result)
    assert bool(result.is_error) is is_error


async def test_a_request_that_the_host_refused_is_an_error(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request_id = (await host.request())["request_id"]
        body = f'{{"v": 1, "request_id": "{request_id}", "error": "no such group"}}'
        host.write_response(request_id, body.encode())
        result = await call

    assert result.is_error
    assert "no such group" in text_of(result)


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"[]",
        b'{"v": 2, "request_id": "ID", "outcome": "answered"}',
        b'{"v": 1, "request_id": "other", "outcome": "answered"}',
        b'{"v": 1, "request_id": "ID", "outcome": "surprising"}',
    ],
)
async def test_an_unusable_response_is_waited_out(
    host: HostStandIn, era: str, damage: bytes
) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("ask_user", ONE))
        request = await host.request()
        request_id = request["request_id"]
        host.write_response(request_id, damage.replace(b"ID", request_id.encode()))
        await until(lambda: "cannot be used yet" in log_of(host.ipc_dir).read_text(), "the note")
        assert host.receipt(request_id) is None
        host.answer(request, "mended")
        result = await call

    assert "mended" in text_of(result)


async def test_wrong_arguments_come_back_as_text_that_names_the_field(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("ask_user", {"questions": [{"question": ""}]})

    assert result.is_error
    assert "questions[0].question" in text_of(result)
    assert host.requests() == []


async def test_an_unknown_tool_is_refused(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("sudo", {})


async def test_the_same_call_sent_twice_is_one_question(host: HostStandIn, era: str) -> None:
    meta = {"claudecode/toolUseId": "toolu_1"}

    async with connect(host.ipc_dir, era) as client:
        calls = [asyncio.create_task(client.call_tool("ask_user", ONE, meta=meta)) for _ in "ab"]
        request = await host.request()
        host.answer(request, "once")
        texts = [text_of(result) for result in await asyncio.gather(*calls)]

    assert all("once" in text for text in texts)
    assert len(list(host.responses.glob("*.json"))) == 1
    assert len(host.files("*.received")) == 1


async def test_a_misspelt_argument_is_told_and_nobody_is_asked(host: HostStandIn, era: str) -> None:
    question = {"question": "Deploy?", "options": ["Yes", "No"], "multi_select": True}
    async with connect(host.ipc_dir, era) as client:
        refused = await client.call_tool("ask_user", {"questions": [question]})
        checked = await client.call_tool("check_answer", {"requestId": "q1"})

    assert (refused.is_error, checked.is_error) == (True, True)
    assert "questions[0].multi_select: unknown; did you mean multiSelect?" in text_of(refused)
    assert "did you mean request_id?" in text_of(checked)
    assert not list((host.ipc_dir / "tasks").glob("*.json"))


DEPLOY = {"action": "Deploy 2.1?", "details": "To all.", "preview": "+ new", "risk": "high"}


def decided(value: str, label: str, text: str | None = None) -> list[dict[str, object]]:
    """Return the answers of a response that approves or denies."""
    return [{"question": "Deploy 2.1?", "selected": [label], "values": [value], "text": text}]


async def test_an_approval_is_asked_for_and_the_yes_is_plain(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("request_approval", DEPLOY))
        request = await host.request()
        host.respond(request["request_id"], answers=decided("approve", "Approve", "after six"))
        result = await call

    assert (request["approval"], "questions" in request) == (DEPLOY, False)
    assert not result.is_error
    assert text_of(result).startswith("Approved by Ana via local at 2026-11-16T09:30:00Z.")
    assert "after six" in text_of(result)
    assert host.receipt(request["request_id"]) is not None


async def test_a_denied_approval_says_so_with_the_reason(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        call = asyncio.create_task(client.call_tool("request_approval", {"action": "Deploy 2.1?"}))
        request = await host.request()
        host.respond(request["request_id"], answers=decided("deny", "Deny", "not on a Friday"))
        result = await call

    assert text_of(result).startswith("Denied by Ana")
    assert "Do not do what you asked about" in text_of(result)
    assert "not on a Friday" in text_of(result)


async def test_silence_is_no_approval_and_the_decision_comes_later(
    host: HostStandIn, era: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        waits = {"action": "Deploy 2.1?", "timeout": 0.2}
        silent = await client.call_tool("request_approval", waits)
        request_id = (await host.request())["request_id"]
        host.respond(request_id, answers=decided("approve", "Approve"))
        checked = await client.call_tool("check_answer", {"request_id": request_id})

    assert "Silence is not consent" in text_of(silent)
    assert "approved" not in text_of(silent).lower()
    assert text_of(checked).startswith("Approved by Ana")


async def test_a_late_decision_comes_with_the_next_result(host: HostStandIn, era: str) -> None:
    async with connect(host.ipc_dir, era) as client:
        asked = {"action": "Deploy 2.1?", "wait_for_response": False}
        await client.call_tool("request_approval", asked)
        host.respond((await host.request())["request_id"], answers=decided("deny", "Deny"))
        wrong = await client.call_tool("request_approval", {"action": " "})

    assert "Denied by Ana" in text_of(wrong)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "action: missing"),
        ({"action": " "}, "action: missing"),
        ({"action": 1}, "action: must be a text"),
        ({"action": "x" * 20_001}, "action: at most 20000 characters"),
        ({"action": "x", "preview": "x" * 64_001}, "preview: at most 64000"),
        ({"action": "x", "risk": "none"}, "risk: must be low, medium or high, not 'none'"),
        ({"action": "x", "detail": "y"}, "detail: unknown; did you mean details?"),
        ({"action": "x", "default": "approve"}, "default: unknown; there are action"),
        ({"action": "x", "options": ["Yes"]}, "options: unknown"),
    ],
)
async def test_a_call_for_an_approval_that_is_wrong_asks_nobody(
    host: HostStandIn, era: str, given: dict[str, object], complaint: str
) -> None:
    async with connect(host.ipc_dir, era) as client:
        result = await client.call_tool("request_approval", given)

    assert result.is_error
    assert f"request_approval did nothing. Correct this and call again: {complaint}" in text_of(
        result
    )
    assert host.requests() == []
