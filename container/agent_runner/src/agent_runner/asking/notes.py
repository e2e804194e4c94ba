"""Which answers a session was told when a person opened it again, before its model has replied.

The receipts of these are due. Whoever else tells such an answer to the session meanwhile says that
it was told before.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agent_runner.asking import wire
from agent_runner.asking._model import RequestId, is_request_id
from agent_runner.asking.mailbox import Mailbox, read_small, write_whole
from agent_runner.errors import BadFile

_MAX_BYTES = 1024 * 1024


class Notes:
    """What one session was told at its last start."""

    def __init__(self, folder: Path, session_id: str) -> None:
        key = hashlib.sha256(session_id.encode(errors="surrogateescape")).hexdigest()[:32]
        self._path = folder / "told" / f"{key}.json"

    def write(self, told: Iterable[tuple[Path, RequestId]]) -> None:
        """Note what is being told, each with its mailbox. Raise OSError."""
        entries = [{"mailbox": str(path), "request_id": request_id} for path, request_id in told]
        if not entries:
            self._path.unlink(missing_ok=True)
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._path, wire.encode({"told": entries}))

    def confirm(self) -> None:
        """Create the receipts of what was told. Raise OSError."""
        for path, request_id in self._read():
            with suppress(FileNotFoundError):  # the group is gone
                Mailbox(path).claim(request_id)
        self._path.unlink(missing_ok=True)

    def of_mailbox(self, path: Path) -> frozenset[RequestId]:
        """Return what of that mailbox was told. Raise OSError."""
        here = path.resolve()
        return frozenset(told for place, told in self._read() if place.resolve() == here)

    def _read(self) -> list[tuple[Path, RequestId]]:
        try:
            told = wire.decode(read_small(self._path, _MAX_BYTES)).get("told")
        except (FileNotFoundError, BadFile):
            return []
        entries = (
            [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
        )
        named = [(str(each.get("mailbox")), str(each.get("request_id"))) for each in entries]
        return [(Path(path), RequestId(told)) for path, told in named if is_request_id(told)]
