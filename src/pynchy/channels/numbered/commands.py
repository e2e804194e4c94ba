"""Messages that are for other programs in the same chat: /status, !deploy, approve ab12."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A path has another slash; “/2” and “!!” are no orders.
_ORDER = re.compile(r"[/!][A-Za-z][\w-]{0,63}(?:@\w{1,64})?(?:\s|\Z)")
_VERDICT = re.compile(
    r"(approve|deny|reject|revoke|allow)\s{1,8}#?([0-9a-z]{2,8})[.!]?\Z", re.IGNORECASE
)
_SHORT = 4
_ORDINARY = """
it this that them these those all both none any one two more less now once him her me us
plan prod push
"""
_ORDINARY_WORDS = frozenset(_ORDINARY.split())


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word and the id of what it is said of."""

    verb: str
    id: str


def is_order(text: str) -> bool:
    """True if the message is an order to a program."""
    return _ORDER.match(text) is not None


def read_verdict(text: str) -> Verdict | None:
    """Return the verdict that the message is; ordinary words are no ids."""
    found = _VERDICT.match(text)
    if found is None or found[2].casefold() in _ORDINARY_WORDS:
        return None
    is_id = len(found[2]) <= _SHORT or any(sign.isdigit() for sign in found[2])
    return Verdict(found[1], found[2].casefold()) if is_id else None
