"""Which session of an agent program is which of ours: a small file for each, kept for good.

It lies in PYNCHY_STATE_DIR, else in ~/.local/state/agent_runner, and has to outlive the container
just as the program's own folders have to. Groups that share it are told apart by their mailboxes:
the same session id in two of them is two sessions.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from agent_runner.asking import mailbox as files
from agent_runner.asking import wire
from agent_runner.errors import BadFile

_MAX_BYTES = 64 * 1024


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return where the book is."""
    if given := environ.get("PYNCHY_STATE_DIR"):
        return Path(given)
    base = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "agent_runner"


class SessionIds:
    """The sessions of one agent program for the group with that mailbox."""

    def __init__(self, folder: Path, agent: str, mailbox: Path) -> None:
        self._folder = folder / agent
        self._mailbox = mailbox

    def find(self, session_id: str) -> str | None:
        """Return the program's own id of the session; None if it is not known."""
        try:
            fields = wire.decode(files.read_small(self._path(session_id), _MAX_BYTES))
            return wire.optional_text(fields, "program_id") or None
        except (OSError, BadFile):
            return None

    def remember(self, session_id: str, program_id: str) -> None:
        """Write the program's own id down. Raise OSError if that cannot be done."""
        if self.find(session_id) == program_id:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry = {"session_id": session_id, "program_id": program_id, "at": wire.timestamp()}
        files.write_whole(self._path(session_id), wire.encode(entry))

    def _path(self, session_id: str) -> Path:
        # A session's id may be anything; a file's name may not.
        key = f"{self._mailbox}\0{session_id}".encode(errors="surrogateescape")
        return self._folder / f"{hashlib.sha256(key).hexdigest()[:32]}.json"
