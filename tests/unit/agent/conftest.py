"""A mailbox to ask in."""

import json
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class Mailbox:
    """The folders, and the few things that a host would do there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tasks = path / "tasks"
        self.responses = path / "responses"
        self.input = path / "input"
        for folder in (self.tasks, self.responses, self.input):
            folder.mkdir(parents=True)

    def respond(self, request_id: str, text: str = "yes", **fields: Any) -> None:
        body: dict[str, Any] = {
            "v": 1,
            "request_id": request_id,
            "outcome": "answered",
            "answers": [{"question": "Deploy?", "selected": [], "text": text}],
            "answered_by": "Ana",
            "channel": "local",
            "answered_at": "2026-11-16T09:30:00Z",
        }
        temporary = self.responses / f".{request_id}.tmp"
        temporary.write_text(json.dumps(body | fields))
        temporary.rename(self.responses / f"{request_id}.json")

    def names(self, pattern: str) -> list[str]:
        return sorted(path.name for path in self.tasks.glob(pattern))


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path / "ipc")
