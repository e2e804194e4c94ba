"""What a resumed session begins with."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.conftest import Mailbox

from agent_runner.asking import Answer, Option, Outcome, Question
from agent_runner.errors import BadFile
from agent_runner.initial import acknowledge, find_ipc_dir, load_initial

FIELDS: dict[str, Any] = {
    "v": 1,
    "session_id": "s",
    "request_id": "q1",
    "questions": [{"question": "Which?", "options": ["a", {"label": "b"}], "default": ["a"]}],
    "answers": [{"question": "Which?", "selected": ["b"], "text": None}],
    "outcome": "answered",
    "answered_by": "Ana",
    "answered_at": "2026-11-16T09:30:00Z",
    "prompt": "You asked: Which? Ana chose b. Continue.",
}


def write(mailbox: Mailbox, **fields: Any) -> Path:
    path = mailbox.input / "q1" / "initial.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(FIELDS | fields))
    return path


def test_what_was_asked_and_answered_is_read(mailbox: Mailbox) -> None:
    initial = load_initial(write(mailbox))

    assert initial.questions == (
        Question("Which?", options=(Option("a"), Option("b")), default=("a",)),
    )
    assert initial.answers == (Answer("Which?", selected=("b",)),)
    assert initial.outcome is Outcome.ANSWERED
    assert initial.prompt.endswith("Continue.")
    assert (initial.session_id, initial.request_id) == ("s", "q1")


def test_it_is_acknowledged_once(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYNCHY_IPC_DIR", raising=False)
    path = write(mailbox)
    initial = load_initial(path)
    ipc_dir = find_ipc_dir(path)

    assert acknowledge(initial, ipc_dir)
    assert not acknowledge(initial, ipc_dir)
    assert mailbox.names("*.resumed") == ["q1.resumed"]


def test_the_environment_says_where_the_mailbox_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYNCHY_IPC_DIR", "/ipc")

    assert find_ipc_dir(Path("/elsewhere/input/q1/initial.json")) == Path("/ipc")


@pytest.mark.parametrize(
    "fields",
    [
        {"v": 2},
        {"request_id": "../q1"},
        {"request_id": None},
        {"outcome": "pending"},
        {"questions": 5},
        {"questions": [5]},
        {"questions": [{"options": 5}]},
        {"questions": [{"options": [5]}]},
        {"answers": [5]},
        {"answers": [{"selected": "b"}]},
        {"prompt": 5},
    ],
)
def test_what_does_not_say_it_is_refused(mailbox: Mailbox, fields: dict[str, Any]) -> None:
    with pytest.raises(BadFile):
        load_initial(write(mailbox, **fields))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        load_initial(tmp_path / "initial.json")
