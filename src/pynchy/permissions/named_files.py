"""Whether a command names a file of the host's own, wherever in its words that is.

A path may stand in a word behind another one, an option or a quote (`-v /srv/pynchy:/x`), be
written with dots, and lead there by links. Each `/` in a word may begin a path, and each mark that
is no part of usual names may end one. What that costs is bounded by the steps of the link reader:
beyond them it raises LostTrack, and a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import unquote

from pynchy.permissions.files import Protected, joined, normal, usable
from pynchy.permissions.links import MARK, LinkReader

_QUOTES = re.compile(r"['\"\\]")
_PIECE = re.compile(r"[\w./-]+")
_OPTION = re.compile(r"-[A-Za-z](?=.)")
# What follows a path that is not the path's own.
_END = r"(?![\w.-])"


def names_protected(
    words: Sequence[str], cwd: str, protected: Protected, links: LinkReader
) -> bool:
    """True if a word of a command is, or has in it, the path of something protected.

    Raise LostTrack.
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
