"""Read what a person said in a chat with cards: first for which card it is, then what it says.

Nothing is guessed. A card is meant by its id, by a quotation, by being the only open one, or by a
label that no other card has; in a group, a sentence must name or quote it. Whatever could be meant
for two cards, or for none, is asked back or left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pynchy.channels.numbered import hints
from pynchy.channels.numbered.addressing import Named, Several, Stray, address
from pynchy.channels.numbered.commands import Verdict, is_order, read_verdict
from pynchy.channels.numbered.counting import count, keycap
from pynchy.channels.numbered.meaning import (
    Answered,
    Declined,
    Doubtful,
    Meaning,
    is_cancel,
    is_label,
    understand,
)
from pynchy.channels.numbered.normalize import is_blank
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

MAX_TEXT = 20_000
_ENOUGH = 100
_MAX_TERSE_LENGTH = 2_000
# So long it may take a person to see that a question is over.
_NOTICED = timedelta(seconds=15)


def read(said: ChatMessage, cards: Sequence[NumberedCard]) -> Reading:
    """Return what the message means for the cards of its chat. Never raises."""
    text = said.text.strip()
    if len(text) > MAX_TEXT:
        return _too_long(said, cards)
    if is_blank(text):
        return NotForUs()
    if is_order(text):
        return _command(said, text, cards)
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
        return _among(text, open_)
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
    if said.private:
        return _as_reading(card, meaning)
    match meaning:
        case Answered(certain=True) | Doubtful(numeric=True):
            return _as_reading(card, meaning)
        case Declined():
            return hints.confirm(card, text)
        case _:
            return NotForUs()


def _among(text: str, cards: list[NumberedCard]) -> Reading:
    """Read what is for one of several cards: only a label tells which, and no number does."""
    fitting = [card for card in cards if is_label(card, text)]
    ambiguous = count(text) is not None or is_cancel(text)
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
