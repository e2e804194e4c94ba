"""What an agent wants to do: one call of a tool, as the agent's side tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

BASH = "Bash"
READ = "Read"
EDIT = "Edit"
WRITE = "Write"
WEB_FETCH = "WebFetch"
# What changes files: who is denied one of them is denied all.
EDITING = frozenset({EDIT, WRITE, "MultiEdit", "NotebookEdit"})
FILE_TOOLS = EDITING | {READ}
# The fields that say no more of a call than a rule looks at, or what a rule does not mind. Any
# other may widen the call: outside of a sandbox, in another folder, of another file.
_PLAIN_FIELDS = {
    BASH: "command description timeout",
    READ: "file_path description offset limit pages",
    EDIT: "file_path description diff old_string new_string replace_all",
    WRITE: "file_path description content",
    "MultiEdit": "file_path description diff edits",
    "NotebookEdit": "notebook_path description new_source cell_id cell_number cell_type edit_mode",
    WEB_FETCH: "url description prompt format timeout",
}
# What says by False what it says by being absent. Of any other field a no may widen the call as
# well as a yes: "sandbox": false.
_OFF_BY_FALSE = frozenset({"run_in_background", "dangerouslyDisableSandbox"})
# How programs name the file of a call.
_PATHS = ("file_path", "notebook_path", "filePath", "filepath", "path", "abs_path")
_OF_ONE_EDIT = frozenset({"old_string", "new_string", "replace_all"})


class RuleScope(StrEnum):
    """For whom a rule holds that is made of a call."""

    GROUP = "group"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class WhyAsked:
    """Why the program stopped at a call, as it says itself: shown, and never used."""

    reason: str = ""
    blocked_path: str = ""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool.

    `tool` is one of those above, or what the program calls it. `cwd` is absolute, or empty where
    it is not known. `editable`: its program takes another input in place of this one.
    """

    program: str
    tool: str
    input: Mapping[str, Any]
    cwd: str = ""
    editable: bool = False
    why: WhyAsked | None = None

    def command(self) -> str | None:
        """Return the command line of a shell call that has nothing else to be judged by.

        A call that leaves a sandbox or runs in the background says so in another field. What the
        fields beside a command mean is not known of other tools: it may be the machine.
        """
        return self.text("command") if self.tool == BASH and self.is_plain() else None

    def is_plain(self) -> bool:
        """True if it says nothing of itself that no rule would look at."""
        if self.tool not in _PLAIN_FIELDS:
            return True
        return not self._unknown_fields() and self._has_plain_edits()

    def odd_fields(self) -> list[str]:
        """Return the names of those of its fields that no rule looks at."""
        return self._unknown_fields() or ["edits"]

    def paths(self) -> tuple[str, ...]:
        """Return every path that it may be about; a plain call has one at most."""
        several = self.input.get("paths")
        listed = several if isinstance(several, list) else []
        found = [*(self.input.get(name) for name in _PATHS), *listed]
        return tuple(path for path in found if isinstance(path, str) and path)

    def text(self, field: str) -> str | None:
        """Return that field of the input if it is a text."""
        value = self.input.get(field)
        return value if isinstance(value, str) else None

    def _unknown_fields(self) -> list[str]:
        known = _PLAIN_FIELDS.get(self.tool, "").split()
        return [
            name
            for name, value in self.input.items()
            if not (name in known or value is None or (value is False and name in _OFF_BY_FALSE))
        ]

    def _has_plain_edits(self) -> bool:
        edits = self.input.get("edits")
        if edits is None:
            return True
        return isinstance(edits, list) and all(
            isinstance(edit, Mapping) and edit.keys() <= _OF_ONE_EDIT for edit in edits
        )
