"""One call as rules look at it: what they want to know of it is found out once, for all of them.

Not for the event loop: links are looked up on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from pynchy.calls import ToolCall
from pynchy.permissions import files
from pynchy.permissions.commands import Words
from pynchy.permissions.files import NOTHING, Place, Protected
from pynchy.permissions.links import LinkReader, LostTrack, TooManySteps
from pynchy.permissions.named_files import names_protected

HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
# More than a person could read on a card.
_MAX_PATHS = 1_000
_URL = re.compile(r"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that a call may be about. Unless it is certain, there may be others."""

    places: tuple[Place, ...]
    is_certain: bool
    is_whole: bool = True


class JudgedCall:
    """A call, and what there is to know of it."""

    def __init__(self, call: ToolCall, protected: Protected = NOTHING) -> None:
        self.call = call
        self.tool = call.tool
        self.protected = protected
        self._links = LinkReader()

    @cached_property
    def is_plain(self) -> bool:
        """True if it says nothing of itself that no rule would look at."""
        return self.call.is_plain()

    @property
    def places(self) -> tuple[Place, ...]:
        """Its file as it is written, and as links lead to it; nothing if that cannot be told."""
        is_one = len(self._paths) == 1 and self._files.is_certain
        return self._files.places if is_one else ()

    @property
    def all_places(self) -> tuple[Place, ...]:
        """The places of every file that it may be about, as far as they can be told."""
        return self._files.places

    @property
    def names_too_much(self) -> bool:
        """True if it names more files than are looked at."""
        return not self._files.is_whole

    @cached_property
    def host(self) -> str | None:
        """The host of a plain address, which every program reads in the same way."""
        url = self.call.text("url") or ""
        if not _URL.fullmatch(url) or "\\" in url:
            return None
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        # No user, no port, no brackets: then all of it is the host.
        host = parts.netloc.casefold()
        is_web = parts.scheme in {"http", "https"}
        return host if is_web and HOST.fullmatch(host) else None

    @cached_property
    def told_host(self) -> str:
        """The host that an address may mean, however it is written."""
        try:
            host = urlsplit(self.call.text("url") or "").hostname or ""
        except ValueError:
            return ""
        return host.casefold().rstrip(".")

    def why_off_limits(self, commands: Iterable[Words]) -> str:
        """Say why no rule allows commands of such words; empty if they name no such file."""
        cwd, protected, links = self.call.cwd, self.protected, self._links
        try:
            is_ours = any(names_protected(w, cwd, protected, links) for w in commands)
        except LostTrack as exc:
            return str(exc)
        return "it names files of the host itself" if is_ours else ""

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        return self.call.paths()

    @cached_property
    def _files(self) -> _Files:
        found: list[Place] = []
        is_certain, is_whole = True, len(self._paths) <= _MAX_PATHS
        for path in self._paths[:_MAX_PATHS]:
            written = files.written_place(path, self.call.cwd)
            if written is None:
                is_certain = False
                continue
            found.append(written)
            try:
                real = files.real_place(path, self.call.cwd, self._links)
            except TooManySteps:
                return _Files(tuple(found), is_certain=False, is_whole=False)
            except LostTrack:
                is_certain = False
            else:
                found += [real] if real.path != written.path else []
        return _Files(tuple(found), is_certain and is_whole, is_whole)
