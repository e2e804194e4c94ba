"""The sessions that are known: found by their ids, changed in memory, kept as files.

Each file, `<data>/sessions/<group>/<session id>.json`, is replaced atomically.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from pynchy import wire
from pynchy.aio import LockMap, finish
from pynchy.errors import UnknownSession
from pynchy.model import GroupName, SessionId
from pynchy.safe_folder import Folder, UnsafeFile
from pynchy.session import Session, SessionState

log = logging.getLogger(__name__)

_CAP = 1024 * 1024

_MIN_PREFIX_LENGTH = 4

SessionKey = tuple[GroupName, SessionId]


class SessionStore(Protocol):
    """Keeps what is known of sessions. A method returns when what it did would survive a crash."""

    async def load(self) -> list[Session]:
        """Return every session that is kept."""

    async def keep(self, session: Session) -> None:
        """Keep the session as it is now."""

    async def forget(self, sessions: Iterable[tuple[GroupName, SessionId]]) -> None:
        """Forget these sessions, where they are known."""


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
        log.warning("session.record_damaged", extra={"path": path, "why": why})
        return None


def _name(session_id: SessionId) -> str:
    if wire.usable_id(session_id):
        return f"{session_id}.json"
    return f"~{hashlib.sha256(session_id.encode()).hexdigest()}.json"


class SessionTable:
    """Every session that is known, and its place on the disk. Of each group, `most` ended ones."""

    def __init__(
        self,
        store: SessionStore,
        most: int,
        forgotten: Callable[[Session], None] = lambda _: None,
        is_group: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._store = store
        self._most = most
        self._known: dict[SessionKey, Session] = {}
        self._unsaved: set[SessionKey] = set()
        self._saving: LockMap[SessionKey] = LockMap()
        self._is_stuck = False
        self._forgotten = forgotten
        self._is_group = is_group

    async def load(self) -> None:
        """Take up what an earlier host knew."""
        self._known = {session.key: session for session in await self._store.load()}

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._known.values()))

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._known

    def __getitem__(self, key: SessionKey) -> Session:
        return self._known[key]

    def get(self, key: SessionKey) -> Session | None:
        """Return the session, if it is known."""
        return self._known.get(key)

    def put(self, session: Session) -> None:
        """Know the session as it is now."""
        if self._known.get(session.key) != session:
            self._known[session.key] = session
            self._unsaved.add(session.key)

    def find(self, target: str, among: Callable[[Session], bool] = lambda _: True) -> Session:
        """Return the session with that id, or GROUP/ID, or with the only one that begins so.

        Agents choose these ids, so one that several groups' sessions fit is asked back: only a
        group's own sessions are looked at after GROUP/, be there none. Of several, one that is
        `among` those in question is meant if no other is. Raise UnknownSession if there is none,
        or several.
        """
        group, slash, session_id = target.partition("/")
        own = [s for s in self._known.values() if slash and s.group == group]
        is_in_group = bool(own) or (bool(slash) and self._is_group(group))
        start = session_id if is_in_group else target
        is_long = len(target) >= _MIN_PREFIX_LENGTH
        fitting = [
            s
            for s in (own if is_in_group else self._known.values())
            if s.session_id == start or (is_long and s.session_id.startswith(start))
        ]
        fitting = [s for s in fitting if among(s)] or fitting
        exact = [s for s in fitting if s.session_id == start]
        groups = {s.group for s in fitting}
        if len(exact) == 1 and len(groups) == 1:
            return exact[0]
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            raise UnknownSession(f"no session has the id {target}")
        listed = ", ".join(sorted(groups))
        raise UnknownSession(
            f"several sessions fit {target} (in {listed}); give more of the id, or GROUP/ID"
        )

    async def save_all(self) -> None:
        """Save what has changed; what cannot be saved waits for the next time."""
        try:
            for key in list(self._unsaved):
                await self.save(key)
        except OSError as exc:
            if not self._is_stuck:
                log.warning("sessions.unsaved", extra={"why": exc.strerror})
            self._is_stuck = True
        else:
            self._is_stuck = False

    async def save(self, key: SessionKey) -> None:
        """Save the session, if it has changed. Raise OSError if that cannot be done."""
        async with self._saving.of(key):
            if key not in self._unsaved:
                return
            self._unsaved.discard(key)
            try:
                # An older version must not be written after a newer one.
                await finish(self._store.keep(self._known[key]))
            except BaseException:
                self._unsaved.add(key)
                raise

    async def forget_too_many(self, groups: Collection[GroupName]) -> None:
        """Forget the oldest sessions of these groups that have ended and are too many."""
        over: dict[GroupName, list[Session]] = defaultdict(list)
        for session in self._known.values():
            if session.group in groups and is_over(session):
                over[session.group].append(session)
        found = (sorted(each, key=lambda s: s.since)[: -self._most] for each in over.values())
        await self.forget([session for each in found for session in each])

    async def forget(self, sessions: list[Session]) -> None:
        """Forget these sessions."""
        for session in sessions:
            self._known.pop(session.key, None)
            self._unsaved.discard(session.key)
            self._forgotten(session)
        if sessions:
            await self._store.forget(session.key for session in sessions)


def is_over(session: Session) -> bool:
    """True if nothing works on the session, and nobody is asked."""
    return session.state is SessionState.ENDED
