"""What the scripted agent asks, what `--auto` answers, and how the agent's words travel.

Only plain data: the agent's process imports this, and starts fast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from pynchy.errors import PynchyError

GROUP = "demo"
SESSION_ID = "demo-session"
AGENT = "release agent"
TASK = "release version 1.4.0"
# What Claude Code is told of a call that it may make, and of another.
ALLOWED, DENIED = "allow", "deny"


class DemoFailed(PynchyError):
    """A step did not happen as the story says; the text says which and what was seen instead."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One question or permission: what the agent says before, and what `--auto` answers."""

    title: str
    says: str
    question: Mapping[str, object]
    answer: tuple[str, ...]
    hint: str
    # The tool that the agent wants to use, as Claude Code tells it, where that is what it asks.
    call: Mapping[str, object] | None = None


CHOICE = Scene(
    title="A choice",
    says="Version 1.4.0 is built. Where it goes is not mine to decide, so I ask.",
    question={
        "question": "Where shall I deploy version 1.4.0?",
        "options": [
            {"label": "Staging", "description": "only the team sees it"},
            {"label": "Production", "description": "everybody sees it"},
            {"label": "Nowhere", "description": "keep the build, deploy nothing"},
        ],
    },
    answer=("1",),
    hint="a number, a label, or your own words",
)
SEVERAL = Scene(
    title="Several choices at once",
    says="Good. There is time for some checks before that.",
    question={
        "question": "Which checks shall I run first?",
        "options": ["Unit tests", "Load test", "Security scan"],
        "multiSelect": True,
    },
    answer=("1", "3"),
    hint="one or more numbers, such as 1 3",
)
TEXT = Scene(
    title="Free text",
    says="The checks are running. Meanwhile I write the release note.",
    question={"question": "What should the release note say first?"},
    answer=("Search is twice as fast.",),
    hint="any text",
)
_PUSH = "git push origin v1.4.0"
PERMISSION = Scene(
    title="A permission",
    says="The note is written. Publishing is a command that I may not run by myself.",
    question={"question": f"May I run a shell command? {_PUSH}"},
    answer=("approve",),
    hint="approve or deny, and a reason if you like",
    call={"tool_name": "Bash", "input": {"command": _PUSH}, "tool_use_id": "demo-push"},
)
LATE = Scene(
    title="The agent dies while it waits",
    says="All checks are green. This cannot be undone, so I ask once more.",
    question={
        "question": "Switch all users to version 1.4.0 now?",
        "options": ["Yes, switch", "Not today"],
    },
    answer=("2",),
    hint="a number, a label, or your own words",
)
LIVE_SCENES = (CHOICE, SEVERAL, TEXT, PERMISSION)


class Act(StrEnum):
    """What the agent does when it prints a line."""

    SAYS = "says"
    ASKS = "asks"
    HEARS = "hears"


@dataclass(frozen=True, slots=True)
class Utterance:
    """One line of the agent's output."""

    act: Act
    text: str

    def to_line(self) -> str:
        """Return it as a line without its line break."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> Utterance:
        """Return what the line says; what is not the agent's own (a traceback) is said too."""
        try:
            fields = json.loads(line)
            return cls(Act(fields["act"]), str(fields["text"]))
        except (ValueError, KeyError, TypeError):
            return cls(Act.SAYS, line)
