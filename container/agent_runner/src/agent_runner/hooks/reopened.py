"""What a session has missed that a person opens again by hand: a hook of Claude Code.

    SessionStart ─► answers that nobody has taken ─► told as context ─► Stop ─► receipts

An answer counts as received when the model has replied after it was told, not when it was printed:
a session that is closed before is told again.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_runner.asking import Result, text, wire
from agent_runner.asking import mailbox as files
from agent_runner.asking.mailbox import Mailbox
from agent_runner.errors import AgentRunnerError, BadFile
from agent_runner.session_ids import state_folder

_INTRO = "While this session was closed, a person answered what you had asked in it:"
_MAX_BYTES = 1024 * 1024


def main(mailboxes: Iterable[Path], environ: Mapping[str, str]) -> int:
    """Heed the event that stdin tells of, for the session that it names. Return the exit code."""
    try:
        event = json.loads(sys.stdin.buffer.read())
        session_id = str(event["session_id"])
        notes = Notes(state_folder(environ), session_id)
        match event["hook_event_name"]:
            case "SessionStart":
                _tell(notes, session_id, mailboxes)
            case "Stop":
                notes.confirm()
    except (ValueError, LookupError, TypeError, RecursionError, RuntimeError) as exc:
        print(f"pynchy: no hook event of Claude Code: {exc}", file=sys.stderr)  # noqa: T201 - its log
    except (AgentRunnerError, OSError) as exc:
        print(f"pynchy: {exc}", file=sys.stderr)  # noqa: T201 - Claude Code keeps it in its log
    return 0


def _tell(notes: "Notes", session_id: str, mailboxes: Iterable[Path]) -> None:
    found = [(path, result) for path in mailboxes for result in _missed(path, session_id)]
    if not found:
        return
    notes.write(found)
    told = "\n\n".join([_INTRO, *(text.describe(result) for _, result in found)])
    said = {"hookEventName": "SessionStart", "additionalContext": told}
    print(json.dumps({"hookSpecificOutput": said}))  # noqa: T201 - the protocol


def _missed(path: Path, session_id: str) -> list[Result]:
    """Return how questions of the session ended of which nobody has been told."""
    try:
        mailbox = Mailbox.open(path)
        # The session only begins: no call of it can be waiting.
        waiting = mailbox.untaken(session_id, set(), older_than=0.0)
        return [result for each in waiting if (result := mailbox.read_response(each))]
    except (AgentRunnerError, OSError):
        return []


class Notes:
    """What one session was told, and whose receipts are due when its model has replied."""

    def __init__(self, folder: Path, session_id: str) -> None:
        key = hashlib.sha256(session_id.encode(errors="surrogateescape")).hexdigest()[:32]
        self._path = folder / "told" / f"{key}.json"

    def write(self, told: Iterable[tuple[Path, Result]]) -> None:
        """Note what is being told. Raise OSError."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = [{"mailbox": str(path), "request_id": result.request_id} for path, result in told]
        files.write_whole(self._path, wire.encode({"told": entries}))

    def confirm(self) -> None:
        """Create the receipts of what was told. Raise OSError."""
        for entry in self._read():
            mailbox, request_id = Mailbox(Path(entry["mailbox"])), entry["request_id"]
            with suppress(FileNotFoundError):  # the group is gone
                mailbox.claim(request_id)
        self._path.unlink(missing_ok=True)

    def _read(self) -> list[dict[str, Any]]:
        try:
            told = wire.decode(files.read_small(self._path, _MAX_BYTES)).get("told")
        except (FileNotFoundError, BadFile):
            return []
        return (
            [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list) else []
        )
