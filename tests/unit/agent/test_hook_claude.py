"""The hook that Claude Code calls before a person is asked: as a process, over a real mailbox."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.conftest import Mailbox
from tests.waiting import until

from agent_runner.asking import RequestId, request_id_of
from agent_runner.hooks import claude
from agent_runner.hooks.claude import Turn, look

CALL = "toolu_1"
INPUT: dict[str, Any] = {"questions": [{"question": "Deploy?", "options": ["Yes", "No"]}]}
REQUEST_ID = request_id_of("s1", f"/{CALL}", INPUT)
BUILT_IN = "AskUserQuestion"


def line(*calls: str, message_id: str = "m1", stop_reason: str | None = "tool_use") -> str:
    """Return a line of a transcript in which the model calls these tools."""
    content = [{"type": "tool_use", "id": call, "name": "x", "input": {}} for call in calls]
    message = {"id": message_id, "content": content, "stop_reason": stop_reason}
    return json.dumps({"type": "assistant", "message": message}) + "\n"


class Hooks:
    """Runs the hook as Claude Code does."""

    def __init__(self, mailbox: Mailbox, folder: Path) -> None:
        self.mailbox = mailbox
        self.transcript = folder / "transcript.jsonl"
        self._started: list[subprocess.Popen[str]] = []
        self.told(park_after_seconds=0.01)

    def told(self, **fields: Any) -> None:
        """Let the host say how its agents wait."""
        (self.mailbox.input / "host.json").write_text(json.dumps({"v": 1, **fields}))

    def fire(self, event: dict[str, Any] | str | None = None, **env: str) -> subprocess.Popen[str]:
        fields = {
            "tool_name": "mcp__pynchy__ask_user",
            "tool_input": INPUT,
            "tool_use_id": CALL,
            "session_id": "claude-1",
            "transcript_path": str(self.transcript),
        }
        given = event if isinstance(event, str) else json.dumps(fields | (event or {}))
        environ = {"PYNCHY_IPC_DIR": str(self.mailbox.path), "PYNCHY_SESSION_ID": "s1", **env}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "agent_runner.hooks.claude"],
            env={"PATH": os.environ["PATH"], **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        process.stdin = None
        self._started.append(process)
        return process

    def decided(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Return what the hook has decided; nothing if it has left that to Claude Code."""
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return json.loads(out)["hookSpecificOutput"] if out else {}

    async def asked(self, request_id: str = REQUEST_ID) -> dict[str, Any]:
        """Wait for the question and return it."""
        path = self.mailbox.tasks / f"{request_id}.json"
        await until(path.exists, "the question")
        question: dict[str, Any] = json.loads(path.read_bytes())
        return question

    def hook(self) -> claude.ToolHook:
        """Return the hook, to be called without a process of its own."""
        return claude.ToolHook(claude.Mailbox.open(self.mailbox.path), {"PYNCHY_SESSION_ID": "s1"})

    def fired(self) -> claude.Fired:
        tool = "mcp__pynchy__ask_user"
        return claude.Fired(tool, CALL, INPUT, "claude-1", self.transcript, may_be_parked=True)

    def take(self, request_id: str = REQUEST_ID) -> None:
        """Take the question, as a host does when it has recorded it."""
        (self.mailbox.tasks / f"{request_id}.json").unlink()

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def hooks(mailbox: Mailbox, tmp_path: Path) -> Iterator[Hooks]:
    hooks = Hooks(mailbox, tmp_path)
    yield hooks
    hooks.end()


def test_the_hook_starts_without_what_is_slow_to_load() -> None:
    code = "import sys, agent_runner.hooks.claude; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True)

    assert {"asyncio", "watchdog", "pydantic", "click"}.isdisjoint(done.stdout.decode().split())


async def test_an_answer_that_comes_soon_lets_the_tool_take_it(hooks: Hooks) -> None:
    hooks.told(park_after_seconds=600)
    process = hooks.fire(PYNCHY_AGENT="claude", PYNCHY_TASK="the release", PYNCHY_LEASE="l1")

    question = await hooks.asked()
    hooks.mailbox.respond(REQUEST_ID)

    assert hooks.decided(process)["permissionDecision"] == "allow"
    assert hooks.mailbox.names("*.received") == []
    assert (question["session_id"], question["lease"]) == ("s1", "l1")
    assert (question["agent"], question["task"]) == ("claude", "the release")


async def test_a_call_alone_in_its_turn_is_put_off_and_the_host_is_told_first(
    hooks: Hooks,
) -> None:
    hooks.transcript.write_text(line("toolu_0", message_id="m0") + line(CALL))

    process = hooks.fire()
    await hooks.asked()
    hooks.take()
    decision = hooks.decided(process)

    assert decision == {"hookEventName": "PreToolUse", "permissionDecision": "defer"}
    parked = json.loads((hooks.mailbox.tasks / f"{REQUEST_ID}.park.json").read_bytes())
    assert (parked["type"], parked["request_id"]) == ("ask_user:park", REQUEST_ID)


def test_what_no_host_has_taken_is_not_put_off_but_waits(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude, "UNSURE_SECONDS", 0.5)
    hooks.transcript.write_text(line(CALL))

    decision = hooks.hook().decide(hooks.fired())

    assert decision == claude.ALLOW
    assert hooks.mailbox.names("*.park.json") == []


def test_a_question_that_ends_while_its_call_is_put_off_lets_the_tool_tell(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks.transcript.write_text(line(CALL))
    send_about = claude.Mailbox.send_about

    def ends_first(mailbox: claude.Mailbox, type_: str, request_id: RequestId) -> None:
        hooks.mailbox.respond(request_id, outcome="undeliverable")
        send_about(mailbox, type_, request_id)

    monkeypatch.setattr(claude.Mailbox, "send_about", ends_first)
    monkeypatch.setattr(claude.Mailbox, "is_unread", lambda *_: False)

    assert hooks.hook().decide(hooks.fired()) == claude.ALLOW


def test_a_call_beside_another_is_left_to_wait_by_itself(hooks: Hooks) -> None:
    hooks.transcript.write_text(line(CALL) + line("toolu_2"))

    assert hooks.decided(hooks.fire())["permissionDecision"] == "allow"
    assert hooks.mailbox.names("*.park.json") == []


@pytest.mark.parametrize(
    ("lines", "turn"),
    [
        ("", Turn.UNSEEN),
        (line("toolu_2"), Turn.UNSEEN),
        (line(CALL), Turn.ALONE),
        (line(CALL, stop_reason=None), Turn.UNSEEN),
        (line(CALL, stop_reason=None) + line("toolu_2", stop_reason=None), Turn.TOGETHER),
        (line(CALL, "toolu_2"), Turn.TOGETHER),
        (line("toolu_2", message_id="m0") + line(CALL), Turn.ALONE),
        (line(CALL, message_id=""), Turn.UNSEEN),
        (
            '"tool_use"\n{"tool_use"\n[]\n{"type": "assistant", "message": "tool_use"}\n',
            Turn.UNSEEN,
        ),
        ('{"type": "assistant", "message": {"content": ["tool_use"]}}\n' + line(CALL), Turn.ALONE),
    ],
)
def test_a_call_is_alone_only_in_a_turn_that_is_complete(
    tmp_path: Path, lines: str, turn: Turn
) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_text(lines)

    assert look(path, CALL) is turn
    assert look(tmp_path / "nowhere", CALL) is Turn.UNSEEN


@pytest.mark.parametrize(
    ("event", "env"),
    [
        ({"tool_input": {**INPUT, "wait_for_response": False}}, {}),
        ({"tool_input": {**INPUT, "timeout": 60}}, {}),
        ({}, {"PYNCHY_SESSION_ID": ""}),
        ({"tool_name": "Bash"}, {}),
        ({"tool_name": "mcp__other__ask"}, {}),
        ({"tool_input": "nonsense"}, {}),
    ],
)
def test_a_call_that_is_not_to_be_put_off_is_not_asked_here(
    hooks: Hooks, event: dict[str, Any], env: dict[str, str]
) -> None:
    hooks.transcript.write_text(line(CALL))

    assert hooks.decided(hooks.fire(event, **env)) == {}
    assert hooks.mailbox.names("*.json") == []


def test_where_agents_block_the_tool_asks_and_waits_alone(hooks: Hooks) -> None:
    hooks.told(wait_seconds=60)

    assert hooks.decided(hooks.fire()) == {}
    assert hooks.mailbox.names("*.json") == []


def test_the_call_of_a_subagent_waits_by_itself(hooks: Hooks) -> None:
    hooks.transcript.write_text(line(CALL))

    decision = hooks.decided(hooks.fire({"agent_id": "sub-1"}))

    assert decision["permissionDecision"] == "allow"
    assert hooks.mailbox.names("*.park.json") == []


def test_arguments_that_are_wrong_are_for_the_tool_to_refuse(hooks: Hooks) -> None:
    wrong = {"tool_input": {"questions": []}}

    assert hooks.decided(hooks.fire(wrong))["permissionDecision"] == "allow"
    denied = hooks.decided(hooks.fire(wrong | {"tool_name": BUILT_IN}))
    assert denied["permissionDecision"] == "deny"
    assert "questions" in denied["permissionDecisionReason"]


@pytest.mark.parametrize("event", ["", "[]", "[" * 100_000, "\0"])
def test_what_is_no_event_decides_nothing(hooks: Hooks, event: str) -> None:
    assert hooks.decided(hooks.fire(event)) == {}


def test_without_a_mailbox_the_tool_says_what_is_wrong(hooks: Hooks, tmp_path: Path) -> None:
    process = hooks.fire(PYNCHY_IPC_DIR=str(tmp_path / "nowhere"))

    assert hooks.decided(process) == {}


def test_the_answer_that_a_session_is_resumed_for_is_neither_asked_nor_taken_again(
    hooks: Hooks,
) -> None:
    hooks.mailbox.respond(REQUEST_ID)

    decision = hooks.decided(hooks.fire(PYNCHY_RESUMED=REQUEST_ID))

    assert decision["permissionDecision"] == "allow"
    assert hooks.mailbox.names("*") == []


async def test_the_built_in_tool_is_handed_its_answer_receipt_first(hooks: Hooks) -> None:
    hooks.told(wait_seconds=60)
    process = hooks.fire({"tool_name": BUILT_IN}, PYNCHY_SESSION_ID="")
    request_id = request_id_of("claude-1", f"/{CALL}", INPUT)

    question = await hooks.asked(request_id)
    hooks.mailbox.respond(request_id, "in a week")

    decision = hooks.decided(process)
    assert question["session_id"] == "claude-1"
    assert decision["permissionDecision"] == "allow"
    assert decision["updatedInput"] == {**INPUT, "answers": {"Deploy?": "in a week"}}
    assert hooks.mailbox.names("*.received") == [f"{request_id}.received"]


@pytest.mark.parametrize("outcome", ["declined", "expired", "defaulted", "withdrawn"])
def test_nothing_but_an_answer_is_handed_to_the_built_in_tool(hooks: Hooks, outcome: str) -> None:
    hooks.mailbox.respond(REQUEST_ID, outcome=outcome)

    decision = hooks.decided(hooks.fire({"tool_name": BUILT_IN}))

    assert decision["permissionDecision"] == "deny"
    assert "updatedInput" not in decision


def test_an_answer_that_another_session_has_is_not_handed_over_twice(hooks: Hooks) -> None:
    hooks.mailbox.respond(REQUEST_ID)
    (hooks.mailbox.tasks / f"{REQUEST_ID}.received").touch()

    decision = hooks.decided(hooks.fire({"tool_name": BUILT_IN}))

    assert decision["permissionDecision"] == "deny"
    assert "handed to a resumed session" in decision["permissionDecisionReason"]


def test_a_built_in_question_that_nobody_answers_in_time_stays_open(hooks: Hooks) -> None:
    hooks.told(wait_seconds=0.1)

    decision = hooks.decided(hooks.fire({"tool_name": BUILT_IN}))

    assert decision["permissionDecision"] == "deny"
    assert "Silence is not consent" in decision["permissionDecisionReason"]
    assert hooks.mailbox.names("*") == [f"{REQUEST_ID}.json"]


async def test_an_approval_is_parked_as_a_question_is(hooks: Hooks) -> None:
    approval = {"action": "Deploy 2.1?", "risk": "high"}
    request_id = request_id_of("s1", f"/{CALL}", approval)
    hooks.transcript.write_text(line(CALL))
    fired = {"tool_name": "mcp__pynchy__request_approval", "tool_input": approval}

    process = hooks.fire(fired)
    asked = await hooks.asked(request_id)
    (hooks.mailbox.tasks / f"{request_id}.json").unlink()

    assert asked["approval"] == approval
    assert hooks.decided(process)["permissionDecision"] == "defer"


def test_a_wrong_call_for_an_approval_is_left_to_the_tool(hooks: Hooks) -> None:
    fired = {"tool_name": "mcp__pynchy__request_approval", "tool_input": {"questions": []}}

    assert hooks.decided(hooks.fire(fired)) == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
    }
    assert not list(hooks.mailbox.tasks.glob("*.json"))
