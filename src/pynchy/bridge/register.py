"""The sessions that are known: found by their ids, changed in memory, saved one after another.

What has changed is saved by the next `save`; what could not be saved stays to be saved.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from weakref import WeakValueDictionary

from pynchy.errors import UnknownSession
from pynchy.model import GroupName, Session, SessionId, SessionState
from pynchy.sessions.base import SessionStore

log = logging.getLogger(__name__)

_SHORTEST_PREFIX = 4

SessionKey = tuple[GroupName, SessionId]


class Register:
    """Every session that is known, and its place on the disk. Of each group, `most` ended ones."""

    def __init__(self, store: SessionStore, most: int) -> None:
        self._store = store
        self._most = most
        self._known: dict[SessionKey, Session] = {}
        self._unsaved: set[SessionKey] = set()
        # Weak: a lock is needed for a moment only.
        self._saving: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()
        self._is_stuck = False
        self.on_forgotten: Callable[[Session], None] = lambda _: None

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

    def find(self, target: str, prefer: Callable[[Session], bool]) -> Session:
        """Return the session with that id (or GROUP/ID), or with the only id that begins so.

        Of several with the same id, the preferred one is meant. Raise UnknownSession if there is
        none, or if there are several.
        """
        group, _, session_id = target.partition("/")
        # GROUP/ID first: so every session can be named, whatever ids other groups make up.
        if session := self.get((GroupName(group), SessionId(session_id))):
            return session
        found = self._named(target)
        if len(found) > 1:
            found = [session for session in found if prefer(session)] or found
        if len(target) >= _SHORTEST_PREFIX:
            found = found + self._begun(target, {session.group for session in found})
        if not found:
            raise UnknownSession(f"no session has the id {target}")
        if len(found) > 1:
            groups = ", ".join(sorted({s.group for s in found}))
            raise UnknownSession(
                f"several sessions fit {target} (in {groups}); give more of the id, or GROUP/ID"
            )
        return found[0]

    def _named(self, target: str) -> list[Session]:
        return [s for s in self._known.values() if s.session_id == target]

    def _begun(self, target: str, named: Collection[GroupName]) -> list[Session]:
        """Return the sessions whose id goes on after the target, but for groups that have it whole.

        Others than those count: the target may be another group's id that was made up to be like
        the beginning of this one's.
        """
        others = [s for s in self._known.values() if s.group not in named]
        begun = [s for s in others if s.session_id.startswith(target) and s.session_id != target]
        if begun or named:
            return begun
        return [s for s in others if _full_id(s).startswith(target)]

    async def save_all(self) -> None:
        """Save what has changed; what cannot be saved waits for the next time."""
        try:
            for key in list(self._unsaved):
                await self.save(key)
        except OSError as exc:
            if not self._is_stuck:
                log.warning("sessions cannot be saved", extra={"why": exc.strerror})
            self._is_stuck = True
        else:
            self._is_stuck = False

    async def save(self, key: SessionKey) -> None:
        """Save the session, if it has changed. Raise OSError if that cannot be done."""
        async with self._saving.setdefault(key, asyncio.Lock()):
            if key not in self._unsaved:
                return
            self._unsaved.discard(key)
            try:
                await self._store.keep(self._known[key])
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
            self.on_forgotten(session)
        if sessions:
            await self._store.forget(session.key for session in sessions)


def is_over(session: Session) -> bool:
    """True if nothing works on the session, and nobody is asked."""
    return session.state is SessionState.ENDED


def _full_id(session: Session) -> str:
    return f"{session.group}/{session.session_id}"
