"""Which card a message names by its id, and what it says beside the id.

An id counts at the start or the end of a message. Within a sentence it is talk about the card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pynchy.channels.numbered.meaning import Answered, Declined, understand
from pynchy.channels.numbered.normalize import narrow
from pynchy.channels.numbered.types import NumberedCard

_LEADING = re.compile(r"\s*#[ \t]?([0-9A-Za-z]{4,12})(?!\w)(?:[\s:,.]|[-–—](?!\d))*")
_TRAILING = re.compile(r"(?<!\S)#([0-9A-Za-z]{4,12})[.!]?\Z")
_BARE = re.compile(r"\s*([0-9A-Za-z]{4,12})(:?)[ \t\r\n]+(?=\S)|\s*([0-9A-Za-z]{4,12})(:)")
_AT_LINE = re.compile(r"(?m)^[ \t]{0,8}#([0-9A-Za-z]{4,12})(?!\w)")


@dataclass(frozen=True, slots=True)
class Named:
    """The message is for this card, and says `body` to it."""

    card: NumberedCard
    body: str


@dataclass(frozen=True, slots=True)
class Several:
    """The message names more than one open card."""

    cards: tuple[NumberedCard, ...]


@dataclass(frozen=True, slots=True)
class Stray:
    """The message names an id that no card of this chat has."""

    given: str
    body: str


Address: TypeAlias = Named | Several | Stray


def address(text: str, cards: Sequence[NumberedCard]) -> Address | None:
    """Return what the message is for by the ids in it; None if it names none."""
    plain = narrow(text)
    known = {card.short_id.casefold(): card for card in cards}
    named = _leading(text, plain, known) or _trailing(text, plain, known)
    if isinstance(named, Named):
        others = _others(plain, known, named)
        return Several((named.card, *others)) if others else named
    return named or _bare(text, plain, known)


def _leading(text: str, plain: str, known: dict[str, NumberedCard]) -> Named | Stray | None:
    # “#2” is the number of an option: no id has digits alone.
    found = _LEADING.match(plain)
    if found is None or found[1].isdigit():
        return None
    body = text[found.end() :].strip()
    card = known.get(found[1].casefold())
    return Named(card, body) if card else Stray(found[1], body)


def _trailing(text: str, plain: str, known: dict[str, NumberedCard]) -> Named | Stray | None:
    plain = plain.rstrip()
    found = _TRAILING.search(plain, max(0, len(plain) - 20))
    if found is None or found[1].isdigit():
        return None
    body = text[: found.start()].strip()
    card = known.get(found[1].casefold())
    return Named(card, body) if card else Stray(found[1], body)


def _bare(text: str, plain: str, known: dict[str, NumberedCard]) -> Named | None:
    """Read an id without “#”: with a digit or a colon, or before what is no sentence."""
    found = _BARE.match(plain)
    card = known.get((found[1] or found[3]).casefold()) if found else None
    if found is None or card is None:
        return None
    named = Named(card, text[found.end() :].strip())
    if found[2] or found[4] or any(sign.isdigit() for sign in card.short_id):
        return named
    if card.over:
        return None
    meaning = understand(card, named.body)
    sure = isinstance(meaning, Declined) or (isinstance(meaning, Answered) and meaning.certain)
    return named if sure else None


def _others(plain: str, known: dict[str, NumberedCard], named: Named) -> list[NumberedCard]:
    """Return the other open cards that a line begins with, or the message ends with."""
    given = [found[1] for found in _AT_LINE.finditer(plain)]
    if ending := _TRAILING.search(plain.rstrip()):
        given.append(ending[1])
    cards = {id_: known[id_] for id_ in map(str.casefold, given) if id_ in known}
    return [card for card in cards.values() if card != named.card and not card.over]
