"""Agents in terminals: what each works on, by its folder, and which of its calls are over.

A program that asks does not say which call it asks for, so a call is known by its session, its tool
and its input. Calls that are alike in all of them are never told apart by guess: they are over when
as many have ended as have begun.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pynchy.model import GroupName, RequestId

_MAX_RUNNING = 256
_BRANCH = re.compile(rb"ref: refs/heads/([^\x00-\x20\x7f]{1,200})\s*\Z")
_MAX_HEAD = 300
_MAX_PARENTS = 30
_MAX_TASK = 500


@dataclass(frozen=True, slots=True)
class CallKey:
    """What is known of a call. `agent` is the subagent that makes it, empty for the main one."""

    group: GroupName
    session_id: str
    agent: str
    tool: str
    input_digest: str


@dataclass(slots=True)
class _Alike:
    """Calls that cannot be told apart: who waits, who was allowed, and how many have ended.

    `words` are what their models read beside a result.
    """

    waiting: list[RequestId] = field(default_factory=list)
    allowed: int = 0
    ended: int = 0
    words: list[str] = field(default_factory=list)

    @property
    def are_over(self) -> bool:
        return self.ended >= len(self.waiting) + self.allowed


class RunningCalls:
    """The calls that wait for a person, with those like them that were allowed already."""

    def __init__(self) -> None:
        self._calls: dict[CallKey, _Alike] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def begin(self, call: CallKey, request_id: RequestId) -> None:
        """A permission is asked for the call."""
        self._calls.setdefault(call, _Alike()).waiting.append(request_id)

    def decide(
        self, call: CallKey, request_id: RequestId, allowed: CallKey | None, words: str = ""
    ) -> None:
        """Nobody waits for the permission any more. What was allowed in its place will end."""
        alike = self._calls.get(call)
        if alike is None or request_id not in alike.waiting:
            return
        alike.waiting.remove(request_id)
        if allowed is not None:
            made = self._calls.setdefault(allowed, _Alike())
            made.allowed += 1
            made.words += [words] if words else []
        if alike.waiting:
            return
        if alike.are_over:
            del self._calls[call]
        self._forget_oldest(call.group)

    def take_words(self, call: CallKey) -> str:
        """Return what the model is to read beside the result of a call that has ended, once."""
        alike = self._calls.get(call)
        return alike.words.pop(0) if alike is not None and alike.words else ""

    def end(self, call: CallKey) -> list[RequestId]:
        """The program has made the call. Return which permissions nobody needs any more."""
        alike = self._calls.get(call)
        if alike is None:
            return []
        alike.ended += 1
        return self._take([call]) if alike.are_over else []

    def end_turn(self, group: GroupName, session_id: str) -> list[RequestId]:
        """The session's main agent has done all that it called for. Return the same."""
        over = [
            call
            for call in self._calls
            if (call.group, call.session_id, call.agent) == (group, session_id, "")
        ]
        return self._take(over)

    def _forget_oldest(self, group: GroupName) -> None:
        """Forget calls of the group's programs that were killed: nobody tells of their end."""
        own = [call for call in self._calls if call.group == group]
        running = [call for call in own if not self._calls[call].waiting]
        for call in running[:-_MAX_RUNNING]:
            del self._calls[call]

    def _take(self, calls: Iterable[CallKey]) -> list[RequestId]:
        return [request_id for call in calls for request_id in self._calls.pop(call).waiting]


def describe_folder(cwd: str) -> str:
    """Return "repository @ branch" for a folder in one, else the folder's name."""
    folder = Path(cwd)
    if not cwd or not folder.is_absolute():
        return ""
    for place in [folder, *folder.parents][:_MAX_PARENTS]:
        with suppress(OSError, ValueError):
            if found := _BRANCH.match(_read_head(place / ".git" / "HEAD")):
                return f"{place.name} @ {found[1].decode(errors='replace')}"[:_MAX_TASK]
    return folder.name[:_MAX_TASK]


def _read_head(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.read(fd, _MAX_HEAD) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
