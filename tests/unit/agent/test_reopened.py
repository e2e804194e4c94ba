"""A session that is opened again by hand is told what was answered while it was closed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.conftest import Mailbox as Folders

from agent_runner.hooks import claude


class Hook:
    """Claude Code's side: it fires events, and reads what is printed."""

    def __init__(self, mailbox: Folders, state: Path) -> None:
        self.mailbox = mailbox
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


@pytest.mark.parametrize(
    "data", [b"", b"no json", b"[]", b"{}", b'{"session_id": 1, "hook_event_name": "Stop"}']
)
def test_no_event_is_too_odd(hook: Hook, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    hook.fire_raw(data)

    assert capsys.readouterr().out == ""
