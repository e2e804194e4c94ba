"""Code between fences of backticks or tildes: found, and known where it may be left open.

A text is read line by line, once, so that no text takes long, whatever fences are in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

_OPENS = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})(.*)")
_CLOSES = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\Z")
# In a list or a quotation a fence ends with them, and what closes it elsewhere opens another.
_NESTED = re.compile(r"[\s>*+.)\d-]*(?:`{3}|~{3})")
# What may stand at a fence and says nothing. Any other word is a part of what is told.
_LANGUAGES = (
    "bash c c++ console cpp cs csharp css diff dockerfile go graphql hcl html http ini java "
    "javascript js json jsonc jsx kotlin lua makefile markdown md perl php plaintext powershell "
    "proto py python rb ruby rs rust scss sh shell sql swift terraform text toml ts tsx txt "
    "typescript xml yaml yml zsh"
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text: words, or the code between two fences."""

    text: str
    is_code: bool = False


def split_code(text: str) -> list[Part]:
    """Return the parts of the text in order; a fence that nothing closes is a line of words.

    Of an opening fence only the name of a language is left out.
    """
    lines = _lines(text)
    ends = [_CLOSES.match(line) for line in lines]
    left = {mark: _longest_from([end[1] if end else "" for end in ends], mark) for mark in "`~"}
    parts: list[Part] = []
    at = start = 0
    while at < len(lines):
        opening = _OPENS.match(lines[at])
        at += 1
        if opening is None or left[opening[1][0]][at] < len(opening[1]):
            continue
        end = next(i for i in range(at, len(lines)) if _is_end(ends[i], opening[1]))
        said = opening[2].strip()
        info = [said] if said and said.casefold() not in _LANGUAGES.split() else []
        parts.append(Part("\n".join(lines[start : at - 1])))
        parts.append(Part("\n".join([*info, *lines[at:end]]), is_code=True))
        at = start = end + 1
    return [part for part in [*parts, Part("\n".join(lines[start:]))] if part.text.strip()]


def leaves_open(text: str) -> bool:
    """True if what follows the text could be taken for code: a fence in it may not be closed."""
    opening = None
    for line in _lines(text):
        if opening:
            opening = None if _is_end(_CLOSES.match(line), opening[1]) else opening
        elif _NESTED.match(line):
            opening = _OPENS.match(line)
            if opening is None or opening.start(1):
                return True
    return opening is not None


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _is_end(end: re.Match[str] | None, opening: str) -> bool:
    return end is not None and end[1].startswith(opening)


def _longest_from(fences: list[str], mark: str) -> list[int]:
    """Return for every line how long the longest fence is that it or a later line could close."""
    sizes = [len(fence) if fence.startswith(mark) else 0 for fence in reversed(fences)]
    return [*reversed([*accumulate(sizes, max, initial=0)])]
