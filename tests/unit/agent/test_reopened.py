"""A session that is opened again by hand is told what was answered while it was closed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_support import connect, text_of
from tests.unit.agent.conftest import Mailbox as Folders

from agent_runner.hooks import claude


class Hook:
    """Claude Code's side: it fires events, and reads what is printed."""

    def __init__(self, mailbox: Folders, state: Path) -> None:
        self.mailbox = mailbox
        self.state = state
        self._environ = {"PYNCHY_STATE_DIR": str(state)}

    def fire(self, event: str, session_id: str = "s1", **fields: Any) -> None:
        body = {"hook_event_name": event, "session_id": session_id, **fields}
        self.fire_raw(json.dumps(body).encode())

    def fire_raw(self, data: bytes) -> None:
        mailboxes = [self.mailbox.path, self.mailbox.path / "no-such"]
        assert claude.tell_missed(mailboxes, self._environ, data) == 0

    def answer(self, request_id: str, session_id: str) -> None:
        body = {
            "v": 1,
            "request_id": request_id,
            "outcome": "answered",
            "answers": [{"question": "Deploy?", "selected": ["Yes"], "text": None}],
            "answered_by": "ana",
            "channel": "local",
            "answered_at": "2026-11-16T09:30:00Z",
            "session_id": session_id,
        }
        path = self.mailbox.responses / f"{request_id}.json"
        path.write_text(json.dumps(body))
        os.utime(path, (0, 0))


@pytest.fixture
def hook(mailbox: Folders, tmp_path: Path) -> Hook:
    return Hook(mailbox, tmp_path / "state")


def test_what_was_answered_meanwhile_is_told_and_received_when_the_model_has_replied(
    hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.answer("q1", "s1")
    hook.answer("q2", "another")

    hook.fire("SessionStart", source="resume")
    told = json.loads(capsys.readouterr().out)["hookSpecificOutput"]
    before = hook.mailbox.names("*.received")
    hook.fire("Stop")

    assert told["hookEventName"] == "SessionStart"
    assert "Deploy?" in told["additionalContext"]
    assert "Answer: Yes" in told["additionalContext"]
    assert before == []
    assert hook.mailbox.names("*.received") == ["q1.received"]
    assert capsys.readouterr().out == ""


def test_a_session_that_was_closed_before_its_model_replied_is_told_again(
    hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.answer("q1", "s1")
    hook.fire("SessionStart")
    capsys.readouterr()

    hook.fire("SessionStart", source="resume")

    assert "Deploy?" in capsys.readouterr().out


def test_what_somebody_else_took_meanwhile_stays_theirs(hook: Hook) -> None:
    hook.answer("q1", "s1")
    hook.fire("SessionStart")
    (hook.mailbox.tasks / "q1.received").write_text('{"v": 1, "by": "host", "claim": "c"}')

    hook.fire("Stop")

    assert "claim" in (hook.mailbox.tasks / "q1.received").read_text()


async def next_result(hook: Hook, session_id: str = "s1", **arguments: Any) -> str:
    """Have the session's model call a tool of ours, and return what it reads."""
    given = {"request_id": "other", "timeout": 0, **arguments}
    named = {"PYNCHY_SESSION_ID": session_id, "PYNCHY_STATE_DIR": str(hook.state)}
    async with connect(hook.mailbox.path, **named) as client:
        return text_of(await client.call_tool("check_answer", given))


REPEATED = "Do not apply it a second time. (question q1)"


async def test_a_reopened_session_learned_of_an_answer_twice_as_if_it_were_two(hook: Hook) -> None:
    hook.answer("q1", "s1")
    hook.fire("SessionStart", source="resume")

    told = await next_result(hook)
    again = await next_result(hook)
    hook.fire("Stop")

    assert "Answer: Yes" in told
    assert REPEATED in told
    assert "Answer: Yes" not in again
    assert hook.mailbox.names("q1.*") == ["q1.passed", "q1.received"]


async def test_an_answer_that_is_asked_for_says_that_it_was_told_at_the_start(hook: Hook) -> None:
    hook.answer("q1", "s1")
    hook.fire("SessionStart", source="resume")

    assert REPEATED in await next_result(hook, request_id="q1")


async def test_an_answer_that_came_after_the_start_is_no_repetition(hook: Hook) -> None:
    hook.answer("q1", "s1")
    hook.fire("SessionStart", source="resume")
    hook.answer("q2", "s1")
    hook.answer("q3", "s2")

    own, other = await next_result(hook), await next_result(hook, "s2")

    assert own.count("Answer: Yes") == 2
    assert own.count("a second time") == 1
    assert "question q2" not in own
    assert "a second time" not in other


async def test_what_an_earlier_start_told_is_no_repetition_if_the_last_one_did_not(
    hook: Hook,
) -> None:
    hook.answer("q1", "s1")
    hook.fire("SessionStart")
    (hook.mailbox.tasks / "q1.received").write_text('{"v": 1, "by": "waiter", "lease": "dead"}')
    hook.fire("SessionStart", source="resume")
    (hook.mailbox.tasks / "q1.received").unlink()

    told = await next_result(hook)

    assert "Answer: Yes" in told
    assert "a second time" not in told


@pytest.mark.parametrize(
    "data", [b"", b"no json", b"[]", b"{}", b'{"session_id": 1, "hook_event_name": "Stop"}']
)
def test_no_event_is_too_odd(hook: Hook, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    hook.fire_raw(data)

    assert capsys.readouterr().out == ""
