"""One call as rules look at it: what they want to know of it is found out once, for all of them.

Not for the event loop: links are looked up on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import unquote, urlsplit

from pynchy.calls import ToolCall
from pynchy.permissions import files
from pynchy.permissions.commands import Words
from pynchy.permissions.files import NOTHING, Place, Protected, joined, normal, usable
from pynchy.permissions.inner_words import leads_paths_elsewhere
from pynchy.permissions.links import MARK, LinkReader, LostTrack, TooManySteps

HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
# More than a person could read on a card.
_MAX_PATHS = 1_000
_URL = re.compile(r"[\x21-\x7e]{1,4096}")
_QUOTES = re.compile(r"['\"\\]")
_PIECE = re.compile(r"[\w./-]+")
_OPTION = re.compile(r"-[A-Za-z](?=.)")
# What follows a path that is not the path's own.
_END = r"(?![\w.-])"


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

    def why_off_limits(self, commands: Sequence[Words]) -> str:
        """Say why no rule allows commands of such words; empty if they name no such file."""
        if len(commands) > 1 and any(map(leads_paths_elsewhere, commands)):
            return "a command in it changes where the paths of others lead"
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


def names_protected(
    words: Sequence[str], cwd: str, protected: Protected, links: LinkReader
) -> bool:
    """True if a word of a command is, or has in it, the path of something protected.

    A path may stand in a word behind another one, an option or a quote (`-v /srv/pynchy:/x`), be
    written with dots, and lead there by links. Each `/` in a word may begin a path, and each mark
    that is no part of usual names may end one. What that costs is bounded by the steps of the link
    reader: beyond them it raises LostTrack, and a person is asked.
    """
    if not protected.paths:
        return False
    folder = usable(cwd)
    texts = dict.fromkeys(text for word in words for text in _spellings(word))
    return any(
        _is_written(text, protected) or any(map(protected.has, _paths(text, folder, links)))
        for text in texts
    )


def _spellings(word: str) -> Iterator[str]:
    """Yield the word, and what a shell makes of quotes in it, or a browser of numbers."""
    yield word
    if _QUOTES.search(word):
        yield _QUOTES.sub("", word)
    if "%" in word:
        yield unquote(word)


def _is_written(text: str, protected: Protected) -> bool:
    """True if a path of something protected stands in the text, however its letters are."""
    finder = _finder(protected)
    return any(finder.search(one.casefold()) for one in (text, _straight(text)))


@lru_cache(maxsize=16)
def _finder(protected: Protected) -> re.Pattern[str]:
    own, others = map(_one_of, (protected.paths, protected.open_within))
    return re.compile(f"(?!{others}{_END}){own}{_END}")


def _one_of(paths: Sequence[str]) -> str:
    texts = (re.escape(path.casefold().rstrip("/")) for path in paths)
    return f"(?:{'|'.join(texts) or '(?!)'})"


def _straight(text: str) -> str:
    """Return the text without `..`, `.` and doubled slashes in its paths."""
    first, *names = text.split("/")
    kept: list[str] = []
    for name in names:
        if name == "..":
            del kept[-1:]
        elif name not in {"", "."}:
            kept.append(name)
    return "/".join((first, *kept))


def _paths(text: str, folder: str, links: LinkReader) -> Iterator[str]:
    """Yield each path that may be meant by the text or a part of it: as written, and resolved."""
    wholes = dict.fromkeys((text, text.partition("=")[2], _from_slash(text)))
    for path in filter(None, wholes):
        yield normal(joined(path, folder))
        yield links.real(path, folder)
    yield from _relative(text, folder, links)
    for spelled in dict.fromkeys((text, _straight(text))):
        names = spelled.split("/")
        for start in range(1, len(names)):
            yield from links.beginnings(names, start)


def _relative(text: str, folder: str, links: LinkReader) -> Iterator[str]:
    """Yield where paths lead that do not begin at the root; a text with no mark is one whole."""
    if MARK.search(text):
        for whole in dict.fromkeys((text, text.partition("=")[2])):
            yield from links.beginnings(whole.split("/"), 0, folder)
    for piece in _PIECE.finditer(text):
        option = _OPTION.match(piece[0])
        for start in {piece.start(), piece.start() + (option.end() if option else 0)}:
            if start and text[start] != "/":
                written = text[start : piece.end()]
                yield normal(joined(written, folder))
                # Only behind its first slash may a path have marks of its own.
                rest = text[start:] if "/" in written else written
                yield from links.beginnings(rest.split("/"), 0, folder)


def _from_slash(word: str) -> str:
    _, slash, rest = word.partition("/")
    return slash + rest
