"""Sessions as files: `<data>/sessions/<group>/<session id>.json`, each replaced atomically.

An id that cannot be a file's name is hashed into one; the record itself has the true id.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pynchy import wire
from pynchy.model import GroupName, Session, SessionId
from pynchy.safe_folder import Folder, UnsafeFile

log = logging.getLogger(__name__)

_CAP = 1024 * 1024


class FileSessions:
    """A SessionStore below the data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._root = data / "sessions"

    async def load(self) -> list[Session]:
        """See SessionStore."""
        return await asyncio.to_thread(lambda: list(self._load()))

    async def keep(self, session: Session) -> None:
        """See SessionStore."""
        await asyncio.to_thread(self._keep, session)

    async def forget(self, sessions: Iterable[tuple[GroupName, SessionId]]) -> None:
        """See SessionStore."""
        await asyncio.to_thread(self._forget, list(sessions))

    def _folder(self, group: str) -> Folder:
        return Folder(self._data, "sessions", group)

    def _load(self) -> Iterator[Session]:
        try:
            groups = sorted(e.name for e in os.scandir(self._root) if e.is_dir())
        except FileNotFoundError:
            return
        for group in groups:
            folder = self._folder(group)
            folder.clear_temporary()
            for name in sorted(folder.names()):
                if session := _read(folder, name):
                    yield session

    def _keep(self, session: Session) -> None:
        folder = self._folder(session.group)
        data = wire.session_json(session)
        try:
            folder.replace(_name(session.session_id), data)
        except FileNotFoundError:
            folder.make()
            folder.replace(_name(session.session_id), data)

    def _forget(self, sessions: list[tuple[GroupName, SessionId]]) -> None:
        for group, session_id in sessions:
            folder = self._folder(group)
            if folder.exists():
                folder.remove(_name(session_id))


def _read(folder: Folder, name: str) -> Session | None:
    try:
        return wire.read_session(folder.read(name, _CAP, one_link=False))
    except (OSError, ValueError, UnsafeFile) as exc:
        # Only the kind: the error's own text would quote what the record says.
        path, why = str(folder.path / name), type(exc).__name__
        log.warning("a session's record is damaged", extra={"path": path, "why": why})
        return None


def _name(session_id: SessionId) -> str:
    if wire.usable_id(session_id):
        return f"{session_id}.json"
    return f"~{hashlib.sha256(session_id.encode()).hexdigest()}.json"
