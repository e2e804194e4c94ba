"""Read what a person said in a chat with cards: first for which card it is, then what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from pynchy.channels.numbered import hints
from pynchy.channels.numbered.meaning import (
    Answered,
    Declined,
    Doubtful,
    Meaning,
    is_cancel,
    is_label,
    understand,
)
from pynchy.channels.numbered.normalize import count, fold_word, is_blank, keycap, narrow
from pynchy.channels.numbered.types import (
    Answers,
    ChatMessage,
    Decline,
    NotForUs,
    NumberedCard,
    Reacted,
    Reading,
    TooLate,
)

# A path has another slash; “/2” and “!!” are no orders.
_ORDER = re.compile(r"[/!][A-Za-z][\w-]{0,63}(?:@\w{1,64})?(?:\s|\Z)")
_VERDICT = re.compile(
    r"(approve|deny|reject|revoke|allow)\s{1,8}#?([0-9a-z]{2,8})[.!]?\Z", re.IGNORECASE
)
_WORD_AND_ID = re.compile(r"([A-Za-z]{2,20})[:,]?\s{1,8}#?([0-9A-Za-z]{4,12})(?!\w)")
# What is over may have lost its options.
_WORDS_OF_OLD = frozenset({"approve", "always", "session", "deny"})
# Small talk otherwise; while a permission is open, whoever says it may believe to have given it.
_YES_OR_NO = frozenset(
    {"ok", "okay", "yes", "y", "no", "n", "ja", "nein", "oui", "non", "sí", "да"}
)
_SHORT = 4
_ORDINARY = """
it this that them these those all both none any one two more less now once him her me us
plan prod push
"""
_ORDINARY_WORDS = frozenset(_ORDINARY.split())

_LEADING = re.compile(r"\s*#[ \t]?([0-9A-Za-z]{4,12})(?!\w)(?:[\s:,.]|[-–—](?!\d))*")
_TRAILING = re.compile(r"(?<!\S)#([0-9A-Za-z]{4,12})[.!]?\Z")
_BARE = re.compile(r"\s*([0-9A-Za-z]{4,12})(:?)[ \t\r\n]+(?=\S)|\s*([0-9A-Za-z]{4,12})(:)")
_AT_LINE = re.compile(r"(?m)^[ \t]{0,8}#([0-9A-Za-z]{4,12})(?!\w)")

MAX_TEXT = 20_000
_ENOUGH = 100
_MAX_TERSE_LENGTH = 2_000
# So long it may take a person to see that a question is over.
_NOTICED = timedelta(seconds=15)


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


def read(said: ChatMessage, cards: Sequence[NumberedCard]) -> Reading:
    """Return what the message means for the cards of its chat. Never raises."""
    text = said.text.strip()
    if len(text) > MAX_TEXT:
        return _too_long(said, cards)
    if is_blank(text):
        return NotForUs()
    if is_order(text):
        return _command(said, text, cards)
    if worded := _by_word(said, text, cards):
        return worded
    match address(text, cards):
        case Named(card, body):
            return _named(said, card, body)
        case Several(named):
            return hints.one_at_a_time(named)
        case _ if verdict := read_verdict(text):
            return _verdict(said, text, verdict, cards)
        case Stray(given, body):
            return _stray(said, given, body, cards)
        case None:
            return _quoting(said, cards) if said.quoted else _untargeted(said, text, cards)


def read_reaction(reacted: Reacted, cards: Sequence[NumberedCard]) -> Reading:
    """Return what the reaction means: a keycap on a card answers a single choice. Never raises."""
    card = _quoted(reacted.message_id, cards)
    number = keycap(reacted.emoji)
    if card is None or number is None:
        return NotForUs()
    if card.over:
        return TooLate(card)
    if reacted.at < card.asked_at:
        return hints.before(card)
    question = card.questions[0]
    if len(card.questions) > 1 or question.multi_select or not question.options:
        return hints.by_reply(card)
    meaning = understand(card, str(number))
    at_place = question.labels[number - 1 : number]
    if isinstance(meaning, Answered) and meaning.parts[0].answer.selected != at_place:
        # An option is named by the number of another one.
        return hints.by_reply(card)
    return _as_reading(card, meaning)


def _by_word(said: ChatMessage, text: str, cards: Sequence[NumberedCard]) -> Reading | None:
    """Read “deny ab2c too risky”, where that is how the card is answered, or was."""
    found = _WORD_AND_ID.match(narrow(text))
    if found is None:
        return None
    word, id_ = found[1].casefold(), found[2].casefold()
    for card in cards:
        options = card.questions[0].options if card.needs_word else ()
        words = {option.value.casefold() for option in options} or _WORDS_OF_OLD
        if card.short_id.casefold() == id_ and word in words and (options or card.over):
            return _named(said, card, text)
    return None


def _named(said: ChatMessage, card: NumberedCard, body: str) -> Reading:
    if card.over:
        return TooLate(card)
    if said.at < card.asked_at:
        return hints.before(card)
    return _as_reading(card, understand(card, body)) if not is_blank(body) else hints.empty(card)


def _quoting(said: ChatMessage, cards: Sequence[NumberedCard]) -> Reading:
    card = _quoted(said.quoted, cards)
    if card is None:
        return _quoting_others(said, cards)
    return TooLate(card) if card.over else _as_reading(card, understand(card, said.text.strip()))


def _quoting_others(said: ChatMessage, cards: Sequence[NumberedCard]) -> Reading:
    """Ask back in a direct chat for what quotes something that is no card."""
    open_ = _open(cards, said)
    if not said.private or not open_:
        return NotForUs()
    return hints.which(open_) if len(open_) > 1 else hints.confirm(open_[0], said.text)


def _stray(said: ChatMessage, given: str, body: str, cards: Sequence[NumberedCard]) -> Reading:
    text = said.text.strip()
    is_own_label = any(is_label(card, text) for card in _open(cards, said))
    if is_own_label or not _is_terse(body, cards):
        if said.quoted:
            return _quoting(said, cards)
        if is_own_label:
            return _untargeted(said, text, cards)
        if not said.private:
            return NotForUs()
    return hints.unknown_id(given, _open(cards, said))


def _command(said: ChatMessage, text: str, cards: Sequence[NumberedCard]) -> Reading:
    """Leave orders alone; one that is a label counts if the card is quoted, else we ask back."""
    quoted = _quoted(said.quoted, cards)
    fitting = [card for card in _open(cards, said) if is_label(card, text)]
    if quoted in fitting:
        return _quoting(said, cards)
    return hints.confirm(fitting[0], text) if len(fitting) == 1 else NotForUs()


def _verdict(
    said: ChatMessage, text: str, verdict: Verdict, cards: Sequence[NumberedCard]
) -> Reading:
    """Take “approve ab12” where ab12 is a card with that label; otherwise it is a command."""
    for card in _open(cards, said):
        if card.short_id.casefold() == verdict.id and is_label(card, verdict.verb):
            return _named(said, card, verdict.verb)
    return _command(said, text, cards)


def _untargeted(said: ChatMessage, text: str, cards: Sequence[NumberedCard]) -> Reading:
    open_ = _open(cards, said)
    ended = _just_ended(cards, said)
    terse = _is_terse(text, [*open_, *ended])
    if not terse and not said.private:
        return NotForUs()
    if not open_:
        return _after(said, ended, terse=terse)
    if len(open_) > 1:
        return _among(text, open_, ended)
    if ended:
        return hints.confirm(open_[0], text)
    return _only(said, text, open_[0])


def _after(said: ChatMessage, ended: list[NumberedCard], *, terse: bool) -> Reading:
    """Tell whoever answers the only card there was, but not who just goes on talking."""
    meant = [card for card in ended if terse or said.at < (card.ended_elsewhere_at or said.at)]
    return TooLate(meant[0]) if len(meant) == 1 else NotForUs()


def _only(said: ChatMessage, text: str, card: NumberedCard) -> Reading:
    """Read what is for the only open card; in a group, only what can hardly be small talk."""
    meaning = understand(card, text)
    if card.needs_word and not isinstance(meaning, Declined):
        return hints.needs_word(card)
    if said.private:
        return _as_reading(card, meaning)
    match meaning:
        case Answered(certain=True) | Doubtful(numeric=True):
            return _as_reading(card, meaning)
        case Declined():
            return hints.confirm(card, text)
        case _:
            return NotForUs()


def _among(text: str, cards: list[NumberedCard], ended: list[NumberedCard]) -> Reading:
    """Read what is for one of several cards: a label tells which, where nobody else can be meant.

    Labels are the agents' own words: of what one group asks, none may catch an answer that is meant
    for another group, or a yes that is meant for a permission. No number tells which either.
    """
    fitting = [card for card in cards if is_label(card, text)]
    around = [*cards, *ended]
    is_shared = len({card.group for card in around}) > 1 or any(one.needs_word for one in around)
    ambiguous = is_shared or count(text) is not None or is_cancel(text)
    if len(fitting) == 1 and not ambiguous:
        return _as_reading(fitting[0], understand(fitting[0], text))
    return hints.which(fitting if len(fitting) > 1 and not ambiguous else cards)


def _too_long(said: ChatMessage, cards: Sequence[NumberedCard]) -> Reading:
    named = address(said.text[:_ENOUGH], cards)
    card = named.card if isinstance(named, Named) else _quoted(said.quoted, cards)
    open_ = _open(cards, said)
    if card is None and said.private and said.quoted is None and len(open_) == 1:
        card = open_[0]
    if card is None:
        return NotForUs()
    return TooLate(card) if card.over else hints.too_long(card, MAX_TEXT)


def _as_reading(card: NumberedCard, meaning: Meaning) -> Reading:
    match meaning:
        case Answered(parts):
            return Answers(card, parts)
        case Declined(reason):
            return Decline(card, reason)
        case Doubtful(hint):
            return hint


def _is_terse(text: str, cards: Sequence[NumberedCard]) -> bool:
    """True for what is hardly small talk: numbers, a label, a word to decline, numbered parts."""
    if count(text) is not None or is_cancel(text):
        return True
    asked = [card for card in cards if card.questions]
    if fold_word(text) in _YES_OR_NO and any(card.needs_word for card in asked):
        return True
    if len(text) > _MAX_TERSE_LENGTH or any(is_label(card, text) for card in asked):
        return len(text) <= _MAX_TERSE_LENGTH
    return len(asked) == 1 and _is_certain(asked[0], text)


def _is_certain(card: NumberedCard, text: str) -> bool:
    meaning = understand(card, text)
    return isinstance(meaning, Answered) and meaning.certain


def _open(cards: Sequence[NumberedCard], said: ChatMessage) -> list[NumberedCard]:
    """Return the cards that were open when it was said: nobody answers what is yet to come."""
    return [card for card in cards if not card.over and card.asked_at <= said.at]


def _just_ended(cards: Sequence[NumberedCard], said: ChatMessage) -> list[NumberedCard]:
    """Return the cards that the person may still have taken for open."""
    return [
        card
        for card in cards
        if card.over and card.ended_elsewhere_at is not None
        if card.asked_at <= said.at < card.ended_elsewhere_at + _NOTICED
    ]


def _quoted(message_id: str | None, cards: Sequence[NumberedCard]) -> NumberedCard | None:
    return next((card for card in cards if message_id and message_id in card.message_ids), None)
