"""A program that speaks as Claude Code does without a terminal asks for a permission.

The runner is the real one; the host's half of the mailbox is played by hand.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_support import HostStandIn
from tests.waiting import until

from agent_runner.asking import request_id_of

FAKE = Path(__file__).parents[1] / "unit" / "agent" / "fake_claude.py"
CALL = {"command": "make all", "timeout": 3}
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "abc",
    "mcp_servers": [{"name": "pynchy", "status": "connected"}],
}
SPOKEN = {"type": "assistant", "message": {"model": "m", "content": []}}
ENDED = {"type": "result", "subtype": "success", "is_error": False}


def asks(key: str = "q1", **request: Any) -> dict[str, Any]:
    call = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": f"call-{key}"}
    return {"type": "control_request", "request_id": key, "request": {**call, **request}}


def calls(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": one, "name": "Bash", "input": {}} for one in ids]
    return {"type": "assistant", "message": {"model": "m", "content": blocks}}


class Run:
    """The runner with that program, which does as its script says."""

    def __init__(self, folder: Path) -> None:
        self.host = HostStandIn(folder / "ipc")
        self.work = folder / "work"
        self.sign = folder / "sign"
        self._folder = folder
        program = folder / "bin" / "claude"
        for made in (self.work, program.parent):
            made.mkdir()
        program.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
        program.chmod(0o755)

    async def start(self, *script: Any) -> asyncio.subprocess.Process:
        lines = [line if isinstance(line, str) else f"print {json.dumps(line)}" for line in script]
        whole = ["lease", f"print {json.dumps(INIT)}", f"print {json.dumps(SPOKEN)}", *lines]
        (self._folder / "script").write_text("\n".join([*whole, f"print {json.dumps(ENDED)}"]))
        initial = self._folder / "initial.json"
        initial.write_text(json.dumps({"v": 1, "session_id": "s1", "prompt": "Do it."}))
        env = {
            **os.environ,
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self._folder),
            "PYNCHY_IPC_DIR": str(self.host.ipc_dir),
            "FAKE_SCRIPT": str(self._folder / "script"),
            "FAKE_PROMPT": str(self._folder / "prompt"),
            "FAKE_REPLIES": str(self._folder / "replies"),
        }
        command = [sys.executable, "-m", "agent_runner", "--initial", str(initial)]
        self._process = await asyncio.create_subprocess_exec(*command, env=env, cwd=self.work)
        return self._process

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        await self._process.wait()

    def waits_for(self, seconds: float, **more: float) -> None:
        told = {"v": 1, "wait_seconds": seconds, **more}
        (self.host.ipc_dir / "input" / "host.json").write_text(json.dumps(told))

    def replies(self) -> list[Any]:
        """What the program has read in reply, as it read it."""
        path = self._folder / "replies"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def reply(self) -> Any:
        [told] = await until(self.replies, "a reply")
        assert (told["subtype"], told["request_id"]) == ("success", "q1")
        return told["response"]

    def says(self, request: Any, value: str, text: str | None = None, **fields: Any) -> None:
        answer = {"question": "", "selected": [value], "values": [value], "text": text}
        self.host.respond(request["request_id"], answers=[answer], **fields)


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    run = Run(tmp_path)
    yield run
    await run.end()


async def test_why_the_program_stopped_is_passed_on_and_bounded(run: Run) -> None:
    rules = [{"toolName": "Bash", "ruleContent": f"make {n} *"} for n in range(90)]
    suggested = [{"type": "addRules", "rules": rules, "behavior": "allow"}]
    why = {"decision_reason": "r" * 9_000, "blocked_path": "/etc/hosts"}
    await run.start(asks(input=CALL, permission_suggestions=suggested, **why), "reply")

    request = await run.host.request()
    run.says(request, "approve")

    told = request["permission"]["why"]
    assert (len(told["reason"]), told["blocked_path"]) == (300, "/etc/hosts")
    assert told["suggestions"][0] == "Bash(make 0 *)"
    assert told["suggestions"][3:] == ["Bash(make 3 *)", "and 86 more"]
    assert await run.reply() == {"behavior": "allow", "updatedInput": CALL}


@pytest.mark.parametrize("who", [{}, {"answered_by": "rule h3kd7p", "channel": "rule"}])
@pytest.mark.parametrize("value", ["approve", "always"])
async def test_what_a_person_or_a_rule_allows_is_called_as_it_was_asked(
    run: Run, value: str, who: Any
) -> None:
    process = await run.start(asks(input=CALL), "reply")

    request = await run.host.request()
    run.says(request, value, **who)

    assert await run.reply() == {"behavior": "allow", "updatedInput": CALL}
    asked = request["permission"]
    assert (asked["program"], asked["tool"], asked["input"]) == ("claude", "Bash", CALL)
    assert asked["cwd"] == str(run.work)
    assert request["session_id"] == "s1"
    assert await process.wait() == 0
    assert run.host.receipt(request["request_id"]) is not None


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ({}, "not on a Friday"),
        ({"answered_by": "rule h3kd7p", "channel": "rule"}, "A rule of the group denies this"),
    ],
)
async def test_a_no_is_told_with_its_words(run: Run, who: Any, words: str) -> None:
    await run.start(asks(input=CALL), "reply")

    run.says(await run.host.request(), "deny", "not on a Friday", **who)

    told = await run.reply()
    assert told["behavior"] == "deny"
    assert words in told["message"]


@pytest.mark.parametrize(
    "ending",
    [
        {"outcome": "declined"},
        {"outcome": "expired"},
        {"outcome": "cleared"},
        {"outcome": "withdrawn"},
        {"outcome": "undeliverable", "error": "no channel"},
        {"outcome": "answered", "answers": []},
        {"outcome": "answered", "answers": [{"question": "", "selected": [], "text": "yes"}]},
    ],
)
async def test_all_but_a_yes_is_a_no(run: Run, ending: Any) -> None:
    await run.start(asks(input=CALL), "reply")

    run.host.respond((await run.host.request())["request_id"], **ending)

    told = await run.reply()
    assert (told["behavior"], bool(told["message"])) == ("deny", True)


async def test_a_yes_that_another_session_has_taken_is_none_here(run: Run) -> None:
    await run.start(asks(input=CALL), "reply")

    request = await run.host.request()
    run.host.take_receipt(request["request_id"])
    run.says(request, "approve")

    assert (await run.reply())["behavior"] == "deny"


async def test_silence_is_a_no_and_the_question_stays_open(run: Run) -> None:
    run.waits_for(0.2)

    process = await run.start(asks(input=CALL), "reply")

    told = await run.reply()
    assert told["behavior"] == "deny"
    assert "Nobody has answered in time" in told["message"]
    request = await run.host.request("cancel")
    assert await process.wait() == 0
    assert not run.host.files(f"{request['request_id']}.withdraw.json")


async def test_a_call_that_is_given_up_is_taken_back(run: Run) -> None:
    given_up = {"type": "control_cancel_request", "request_id": "q1"}
    await run.start(asks(input=CALL), f"wait {run.sign}", given_up, "reply")
    asked = await run.host.request()

    run.sign.touch()

    taken_back = await run.host.request("withdraw")
    assert taken_back["request_id"] == asked["request_id"]
    assert run.replies() == []


async def test_where_nobody_can_be_asked_it_is_a_no(run: Run) -> None:
    name = request_id_of("s1", "/permission/call-q1", CALL)
    # In the place of the file that is to be written.
    (run.host.tasks / f"{name}.json").mkdir()

    await run.start(asks(input=CALL), "reply")

    told = await run.reply()
    assert told["behavior"] == "deny"
    assert "nobody could be asked" in told["message"]


async def test_an_agent_that_removes_its_own_folder_can_still_ask(run: Run) -> None:
    await run.start(f"remove {run.work}", asks(input=CALL), "reply")

    request = await run.host.request()
    run.says(request, "approve")

    assert request["permission"]["cwd"] == str(run.work)
    assert (await run.reply())["behavior"] == "allow"


async def test_a_call_that_is_too_large_to_be_asked_for_is_denied_in_words(run: Run) -> None:
    await run.start(asks(input={"command": "x" * 300_000}), "reply")

    told = await run.reply()

    assert told["behavior"] == "deny"
    assert "262144" in told["message"]
    assert run.host.requests() == []


@pytest.mark.parametrize("request_", [{"subtype": "of another version"}, {"subtype": 3}, None])
async def test_a_request_that_we_do_not_know_is_refused_so_that_no_program_waits(
    run: Run, request_: Any
) -> None:
    unknown = {"type": "control_request", "request_id": "q1", "request": request_}

    process = await run.start(unknown, "reply")

    [told] = await until(run.replies, "a reply")
    assert (told["subtype"], told["request_id"], bool(told["error"])) == ("error", "q1", True)
    assert await process.wait() == 0


async def test_an_agent_that_waits_long_is_parked_where_its_group_parks(run: Run) -> None:
    run.waits_for(600, park_after_seconds=0.2)
    failed = {"type": "result", "subtype": "error_during_execution", "is_error": True}
    denials = [{"tool_name": "Bash", "tool_use_id": "call-q1", "tool_input": CALL}]

    process = await run.start(
        calls("call-q1"),
        asks(input=CALL),
        "reply",
        {**failed, "permission_denials": denials},
        "exit 1",
    )

    request = await run.host.request()
    told = await run.reply()
    assert (told["behavior"], told["interrupt"]) == ("deny", True)
    assert await process.wait() == 0
    assert (await run.host.request("park"))["request_id"] == request["request_id"]
    words = {event["event"] for event in run.host.events()}
    assert words == {"started", "waiting", "parked"}


async def test_an_agent_that_does_something_else_meanwhile_is_not_parked(run: Run) -> None:
    run.waits_for(600, park_after_seconds=0.05)
    ended = {"type": "tool_result", "tool_use_id": "other"}

    await run.start(
        calls("other", "call-q1"),
        asks(input=CALL),
        f"wait {run.sign}",
        {"type": "user", "message": {"content": [ended]}},
        "reply",
    )

    await run.host.request()
    run.sign.touch()
    assert (await run.reply())["interrupt"]


async def test_an_answer_in_the_moment_of_parking_counts(run: Run) -> None:
    run.waits_for(600, park_after_seconds=0.05)

    await run.start(calls("call-q1"), asks(input=CALL), "reply")
    [request] = await until(run.host.requests, "the request")
    run.says(request, "approve")
    await run.host.request()

    assert (await run.reply())["behavior"] == "allow"
    assert run.host.receipt(request["request_id"]) is not None
