"""Commands that stand in the words of another one, for a shell or a program that it starts.

What they are is guessed: it makes a rule ask, and never allows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pynchy.permissions.guards import why_refused
from pynchy.permissions.programs import (
    INTERPRETERS,
    WRAPPING,
    base_name,
    is_one_of,
    known_as,
    names,
    script_of,
)

# What an agent may do with pynchy: ask, and look.
ASKING = names("ask mcp status pending show history events sessions log docs")
# What is left to people: to answer, and to say what agents may do.
ACTING = names(
    "agents answer approve completion connect decline demo deny dismiss doctor groups hook inbox "
    "init retry rules run serve slack stop sweep whatsapp"
)
_OURS = "pynchy"
_MENTIONED = re.compile(rf"(?<![a-z0-9_])(?:-[a-z]*m)?{_OURS}(?![a-z0-9_])", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_./+@=-]+")


@lru_cache(maxsize=512)
def with_inner_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words, with those in their texts if a program may run what is in there."""
    is_run = why_refused(words, 1) is not None or any(map(_runs_texts, words[1:]))
    return tuple(part for word in words for part in _WORD.findall(word)) if is_run else words


def _runs_texts(word: str) -> bool:
    """True if the word names a program; `.` and `in` are words of a shell, and mostly others."""
    return is_one_of(WRAPPING, word) or is_one_of(INTERPRETERS, word)


def acts_for_people(words: Sequence[str]) -> bool:
    """True if the command may answer, revoke or start something in a person's place."""
    own, _ = script_of(words, len(words))
    if _is_ours(own[0]):
        return own[1:2] == () or own[1] not in ASKING
    if is_one_of(INTERPRETERS, own[0]):
        return any(map(_MENTIONED.search, own[1:]))
    inner = with_inner_words(tuple(own))
    at = next((at for at, word in enumerate(inner) if _is_ours(word)), len(inner))
    return any(word in ACTING for word in inner[at:])


def _is_ours(program: str) -> bool:
    """True if it is pynchy: the program, the module or a part of it, its folder as a script."""
    name = base_name(program).casefold()
    is_package = program.casefold().endswith(f"{_OURS}/__main__.py")
    return _OURS in known_as(program) or name.startswith(f"{_OURS}.") or is_package
