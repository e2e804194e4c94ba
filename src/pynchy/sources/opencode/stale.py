"""What is to be read again of one server, as its events tell.

An event that says what is asked is believed at once, until its folder has been read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from pynchy.sources.opencode.reading import (
    MAX_SESSIONS,
    read_permissions,
    read_questions,
    read_sessions,
)
from pynchy.sources.opencode.server import CONNECTED, ServerEvent
from pynchy.sources.opencode.state import ServerFolder, ServerState

log = logging.getLogger(__name__)

_MAX_REPLIES = 100
# As many as there may be questions of an earlier host.
_MAX_KEPT = 64
# So many of the folders that are not followed are named in the log.
_MAX_REFUSED = 20
# What an older server says where a newer one can be asked.
_ANNOUNCED = frozenset({"permission.requested", "permission.updated", "permission.asked"})
_OVER = frozenset({"replied", "rejected"})
_REPLIES = ("reply", "answers")


class StaleParts:
    """Which folders, which sessions, and whether the list of sessions is to be read again.

    `own` is the server's own folder, None until it is known. `replies` are the answers that the
    server has told of, by what they answer.
    """

    def __init__(self, url: str, state: ServerState, shown: Callable[[], None]) -> None:
        self.own: str | None = None
        self.folders: set[str] = set()
        self.sessions: set[str] = set()
        self.is_list = True
        self.wake = asyncio.Event()
        self.replies: dict[str, Mapping[str, Any]] = {}
        self._url = url
        self._state = state
        self._shown = shown
        self._kept: set[str] = set()
        self._refused: set[str] = set()

    def add_own(self, directory: str) -> None:
        """Take the folder for the server's own."""
        self.own = directory
        self.add_folder(directory)

    def keep_folder(self, directory: str) -> None:
        """Have the folder read, and let no other take its place."""
        if len(self._kept) < _MAX_KEPT:
            self._kept.add(directory)
        self.add_folder(directory)

    def add_folder(self, directory: str) -> None:
        """Have the folder read, unless too much goes on in others to follow it as well."""
        if self._state.add_place(directory, {self.own, *self._kept}):
            self._refused.discard(directory)
            self.folders.add(directory)
        elif directory not in self._refused and len(self._refused) < _MAX_REFUSED:
            self._refused.add(directory)
            extra = {"url": self._url, "folder": directory}
            log.warning("opencode.folder_refused", extra=extra)

    def add_due_folders(self) -> None:
        """Have every folder read whose turn it is."""
        self.folders |= {name for name, place in self._state.places.items() if place.is_due()}

    def add_all(self) -> None:
        """Have everything read that is known to be there."""
        self.folders |= self._state.places.keys()
        self.is_list = True

    def ask_for_sessions(self, place: ServerFolder) -> None:
        """Have the sessions listed again if one that asks is not known yet."""
        if not {asked.session_id for asked in place.asked} <= self._state.sessions.keys():
            self.is_list = True
            self.wake.set()

    def hear(self, event: ServerEvent) -> None:
        """Note what may have changed; it is read when its turn comes."""
        if event.type == CONNECTED:
            self.folders |= self._state.places.keys()
            self.wake.set()
        if self.own is not None:
            self._note(event, event.directory or self.own)

    def _note(self, event: ServerEvent, directory: str) -> None:
        area, _, verb = event.type.partition(".")
        session_id = event.session_id
        match area:
            case "permission" | "question":
                self.add_folder(directory)
                self._note_ask(event, verb, session_id)
                if self._state.is_exact and (place := self._state.places.get(directory)):
                    self._show_at_once(event, place)
            case "session" if verb in {"status", "idle", "error"}:
                self.add_folder(directory)
                self._note_session(session_id)
            case "session" if verb in {"created", "updated", "deleted"}:
                self.is_list = True
                self._note_new(event)
                return
            case "message" | "todo":
                if event.is_about_tools:
                    self._note_session(session_id)
                return
            case _:
                return
        self.wake.set()

    def _note_ask(self, event: ServerEvent, verb: str, session_id: str) -> None:
        if event.type in _ANNOUNCED and not self._state.is_exact:
            tool = event.properties.get("tool")
            call = tool.get("callID") if isinstance(tool, dict) else event.properties.get("callID")
            self._state.flag(session_id, call if isinstance(call, str) else "")
        if verb in _OVER:
            self._state.grant(session_id)
            known = {asked.id for place in self._state.places.values() for asked in place.asked}
            for told in event.ids & known:
                kept = {n: event.properties[n] for n in _REPLIES if n in event.properties}
                self.replies[told] = kept
                while len(self.replies) > _MAX_REPLIES:
                    del self.replies[next(iter(self.replies))]

    def _note_new(self, event: ServerEvent) -> None:
        """Know a session from its event on: what it asks is shown with it, not with the list."""
        sessions = self._state.sessions
        for session in read_sessions([event.properties.get("info")]).values():
            if session.id not in sessions and len(sessions) < MAX_SESSIONS:
                sessions[session.id] = session

    def _note_session(self, session_id: str) -> None:
        if session_id in self._state.sessions:
            self.sessions.add(session_id)

    def _show_at_once(self, event: ServerEvent, place: ServerFolder) -> None:
        """Take the event's word until its place has been read again."""
        match event.type:
            case "permission.asked":
                place.add(*read_permissions([event.properties]))
            case "question.asked":
                place.add(*read_questions([event.properties]))
            case "permission.replied" | "question.replied" | "question.rejected":
                place.drop(event.ids)
            case _:
                return
        self.ask_for_sessions(place)
        self._shown()
