"""Calls that wait as tasks: the extension of 2026-07-28, over the bare protocol."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_support import HostStandIn, RawServer, start_raw
from tests.waiting import until

EXTENSION = "io.modelcontextprotocol/tasks"
DEPLOY = {"questions": [{"question": "Deploy?"}]}


def envelope(*, declares: bool = True) -> dict[str, Any]:
    capabilities = {"extensions": {EXTENSION: {}}} if declares else {}
    return {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }


class Tasks:
    """A client that declares the extension."""

    def __init__(self, server: RawServer) -> None:
        self.server = server
        self._id = 0

    async def send(self, method: str, *, declares: bool = True, **params: Any) -> dict[str, Any]:
        """Return the whole response."""
        self._id += 1
        meta = envelope(declares=declares) | params.pop("meta", {})
        self.server.send(method, self._id, _meta=meta, **params)
        response = await self.server.receive()
        assert response["id"] == self._id
        return response

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result."""
        response = await self.send(method, **params)
        assert "error" not in response, response
        result: dict[str, Any] = response["result"]
        return result

    async def ask(self, **arguments: Any) -> dict[str, Any]:
        asked = DEPLOY | arguments
        return await self.call("tools/call", name="ask_user", arguments=asked)

    async def get(self, task_id: str) -> dict[str, Any]:
        found = await self.call("tasks/get", taskId=task_id)
        assert found["resultType"] == "complete"
        assert found["taskId"] == task_id
        return found


@pytest.fixture
def host(tmp_path: Path) -> HostStandIn:
    return HostStandIn(tmp_path / "ipc")


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


@pytest.fixture
async def tasks(host: HostStandIn, state: str) -> AsyncIterator[Tasks]:
    async with start_raw(host.ipc_dir, PYNCHY_STATE_DIR=state) as raw:
        yield Tasks(raw)


def text_of(task: dict[str, Any]) -> str:
    [block] = task["result"]["content"]
    return str(block["text"])


async def test_a_call_that_waits_is_a_task_whose_id_is_that_of_the_question(
    host: HostStandIn, tasks: Tasks
) -> None:
    created = await tasks.ask()
    request = await host.request()

    assert created["resultType"] == "task"
    assert created["status"] == "working"
    assert created["taskId"] == request["request_id"]
    assert created["ttlMs"] is None
    assert isinstance(created["pollIntervalMs"], int)
    assert (await tasks.get(created["taskId"]))["status"] == "working"

    host.answer(request, "yes")
    done = await tasks.get(created["taskId"])

    assert done["status"] == "completed"
    assert "Answer: yes" in text_of(done)
    assert done["result"]["isError"] is False
    assert done["createdAt"] == created["createdAt"]
    assert host.receipt(request["request_id"])


async def test_a_task_that_is_completed_stays_so_however_often_it_is_asked_for(
    host: HostStandIn, tasks: Tasks
) -> None:
    created = await tasks.ask()
    host.answer(await host.request(), "yes")

    first = await tasks.get(created["taskId"])
    again = await tasks.get(created["taskId"])
    other = await tasks.call("tools/call", name="check_answer", arguments={"request_id": "abc"})

    assert first == again
    assert "Answer: yes" not in other["content"][0]["text"]


async def test_a_task_is_taken_up_again_by_another_process_after_both_have_died(
    host: HostStandIn, state: str
) -> None:
    async with start_raw(host.ipc_dir, PYNCHY_STATE_DIR=state) as raw:
        created = await Tasks(raw).ask()
        request = await host.request()
        raw.process.kill()
        await raw.exit_code()
    host.answer(request, "yes")

    async with start_raw(host.ipc_dir, PYNCHY_STATE_DIR=state) as raw:
        done = await Tasks(raw).get(created["taskId"])

    assert done["status"] == "completed"
    assert "Answer: yes" in text_of(done)
    assert "Already delivered" not in text_of(done)


async def test_an_answer_that_another_process_has_taken_is_shown_with_a_warning(
    host: HostStandIn, state: str
) -> None:
    async with start_raw(host.ipc_dir, PYNCHY_STATE_DIR=state) as raw:
        created = await Tasks(raw).ask()
        request = await host.request()
        host.answer(request, "yes")
        await Tasks(raw).get(created["taskId"])

    async with start_raw(host.ipc_dir, PYNCHY_STATE_DIR=state) as raw:
        done = await Tasks(raw).get(created["taskId"])

    assert "Answer: yes" in text_of(done)
    assert "Already delivered" in text_of(done)


async def test_a_task_whose_time_is_over_ends_and_its_answer_comes_with_the_next_result(
    host: HostStandIn, tasks: Tasks
) -> None:
    created = await tasks.ask(timeout=0.05)
    request = await host.request()

    async def ended() -> dict[str, Any]:
        while (found := await tasks.get(created["taskId"]))["status"] == "working":
            continue
        return found

    done = await ended()
    host.answer(request, "yes")
    again = await tasks.get(created["taskId"])
    other = await tasks.call("tools/call", name="check_answer", arguments={"request_id": "abc"})

    assert done["status"] == again["status"] == "completed"
    assert "No answer yet" in text_of(done)
    assert text_of(done) == text_of(again)
    assert "Answer: yes" in other["content"][0]["text"]


async def test_a_cancelled_task_leaves_its_question_open(host: HostStandIn, tasks: Tasks) -> None:
    created = await tasks.ask()
    request = await host.request()

    acknowledged = await tasks.call("tasks/cancel", taskId=created["taskId"])
    cancelled = await tasks.get(created["taskId"])
    await until(lambda: host.requests("cancel"), "the host to be told")
    host.answer(request, "yes")
    other = await tasks.call("tools/call", name="check_answer", arguments={"request_id": "abc"})

    assert acknowledged["resultType"] == "complete"
    assert cancelled["status"] == "cancelled"
    assert host.requests("withdraw") == []
    assert "Answer: yes" in other["content"][0]["text"]


async def test_the_same_call_sent_twice_is_one_task(tasks: Tasks) -> None:
    call = {"name": "ask_user", "arguments": DEPLOY, "meta": {"claudecode/toolUseId": "t1"}}

    first = await tasks.call("tools/call", **call)
    again = await tasks.call("tools/call", **call)

    assert first["taskId"] == again["taskId"]
    assert first["createdAt"] == again["createdAt"]


async def test_who_does_not_declare_it_gets_no_task_and_may_not_ask_for_one(
    host: HostStandIn, tasks: Tasks
) -> None:
    created = await tasks.ask()
    await host.request()

    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        refused = await tasks.send(method, declares=False, taskId=created["taskId"])
        assert refused["error"]["code"] == -32021
        assert EXTENSION in refused["error"]["data"]["requiredCapabilities"]["extensions"]
    tasks.server.send(
        "tools/call",
        "plain",
        _meta=envelope(declares=False),
        name="ask_user",
        arguments=DEPLOY,
    )
    host.answer(await host.request(), "no")
    plain = await tasks.server.receive()

    assert plain["result"]["resultType"] == "complete"
    assert "Answer: no" in plain["result"]["content"][0]["text"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["nobody", "../../etc/passwd", "", 7, None, "x" * 500])
async def test_a_task_that_is_not_there_is_refused(tasks: Tasks, method: str, task_id: Any) -> None:
    refused = await tasks.send(method, taskId=task_id)

    assert refused["error"]["code"] == -32602


async def test_what_does_not_wait_is_no_task(host: HostStandIn, tasks: Tasks) -> None:
    asked = await tasks.ask(wait_for_response=False)
    wrong = await tasks.call("tools/call", name="ask_user", arguments={})

    assert asked["resultType"] == wrong["resultType"] == "complete"
    assert wrong["isError"] is True
    assert await host.request()


async def test_an_update_is_acknowledged_and_what_is_gone_is_no_method(
    host: HostStandIn, tasks: Tasks
) -> None:
    created = await tasks.ask()
    await host.request()

    updated = await tasks.call("tasks/update", taskId=created["taskId"], inputResponses={})
    listed = await tasks.send("tasks/list")
    tasks.server.send("tasks/get", "old", taskId=created["taskId"])
    old = await tasks.server.receive()

    assert updated["resultType"] == "complete"
    assert listed["error"]["code"] == old["error"]["code"] == -32601


async def test_the_extension_is_offered_in_the_stateless_era_alone(tasks: Tasks) -> None:
    discovered = await tasks.call("server/discover")
    tasks.server.send("initialize", "hello", protocolVersion="2025-11-25", capabilities={})
    initialized = await tasks.server.receive()

    assert discovered["capabilities"]["extensions"] == {EXTENSION: {}}
    assert "extensions" not in initialized["result"]["capabilities"]


async def test_where_a_task_cannot_be_noted_the_call_waits_as_always(
    host: HostStandIn, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    async with start_raw(host.ipc_dir, PYNCHY_STATE_DIR=str(tmp_path / "file")) as raw:
        raw.send("tools/call", 1, _meta=envelope(), name="ask_user", arguments=DEPLOY)
        host.answer(await host.request(), "yes")
        response = await raw.receive()

    assert response["result"]["resultType"] == "complete"
    assert "Answer: yes" in response["result"]["content"][0]["text"]


async def test_a_task_of_another_mailbox_is_not_there(
    host: HostStandIn, tasks: Tasks, tmp_path: Path, state: str
) -> None:
    created = await tasks.ask()
    await host.request()
    elsewhere = HostStandIn(tmp_path / "other")

    async with start_raw(elsewhere.ipc_dir, PYNCHY_STATE_DIR=state) as raw:
        refused = await Tasks(raw).send("tasks/get", taskId=created["taskId"])

    assert refused["error"]["code"] == -32602


async def test_claude_code_is_offered_no_task_and_its_call_blocks(
    host: HostStandIn, tasks: Tasks
) -> None:
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.325"}}

    offered = await tasks.call("server/discover", meta=meta)
    asked = asyncio.create_task(
        tasks.call("tools/call", name="ask_user", arguments=DEPLOY, meta=meta)
    )
    host.answer(await host.request(), "yes")
    result = await asked

    assert "extensions" not in offered["capabilities"]
    assert result["resultType"] == "complete"
    assert "Answer: yes" in result["content"][0]["text"]
