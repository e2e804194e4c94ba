"""What a person is asked back whose message cannot be taken as it is.

What agents write is made harmless, and each question is named with its group.
"""

from __future__ import annotations

from collections.abc import Sequence

from pynchy.channels.numbered.choosing import Unclear
from pynchy.channels.numbered.render import how, in_line
from pynchy.channels.numbered.types import Hint, NumberedCard
from pynchy.choices import say_word
from pynchy.fair_order import fair_order

_BRIEF_HINT = 60
_WHY = 400
_MAX_LISTED = 8


def again(card: NumberedCard, number: int, unclear: Unclear) -> Hint:
    """Say why it was not taken, and how the question is answered."""
    question = card.questions[number - 1]
    why = in_line(unclear.why, _WHY)
    place = f"Question {number}: {why}" if len(card.questions) > 1 else _capital(why)
    is_number = unclear.numeric and question.takes_words_alone
    own = " (A number as your own words: put it in quotes.)" if is_number else ""
    way = "" if unclear.says_how else f" {how(question)}"
    return _hint(card, f"{place}.{way}{own}")


def needs_word(card: NumberedCard) -> Hint:
    """Say that a number or a yes is not enough here, and what is."""
    return _hint(card, f"{_capital(say_word(card.questions[0], card.short_id))}.")


def unclear_parts(card: NumberedCard) -> Hint:
    """Say how several questions are answered."""
    count = len(card.questions)
    return _hint(
        card,
        f"{count} questions were asked, and it is not clear which you mean. Give the number of "
        "each question and your answer, such as “1: 2, 2: 1”, or a line for each.",
    )


def unknown_part(card: NumberedCard, number: int) -> Hint:
    """Say which questions there are."""
    return _hint(card, f"There is no question {number}: there are 1–{len(card.questions)}.")


def twice(card: NumberedCard, number: int) -> Hint:
    """Say that one question was given two answers."""
    return _hint(card, f"Question {number} has two answers in your reply. Give one.")


def part_declined(card: NumberedCard) -> Hint:
    """Say that only the whole card can be declined."""
    return _hint(card, "One question alone cannot be declined; “cancel” declines all of them.")


def empty(card: NumberedCard) -> Hint:
    """Ask for the answer that is missing after an id."""
    return _hint(card, f"What is your answer? {how(card.questions[first(card) - 1])}")


def by_reply(card: NumberedCard) -> Hint:
    """Say that a reaction is not enough for this card."""
    if len(card.questions) > 1:
        return unclear_parts(card)
    return _hint(card, f"A reaction does not answer this one. {how(card.questions[0])}")


def too_long(card: NumberedCard, most: int) -> Hint:
    """Say how long an answer may be."""
    return _hint(card, f"Not taken: an answer may have at most {most} characters.")


def before(card: NumberedCard) -> Hint:
    """Say that the message is older than the question that it names."""
    return _hint(card, "Your message is older than the question. Please say it again.")


def confirm(card: NumberedCard, example: str) -> Hint:
    """Ask to say it again with the id, as it may have been meant for somebody else."""
    return Hint(
        f"Is that for the question below? Then begin with its id: “#{card.short_id} "
        f"{in_line(example, _BRIEF_HINT)}”.\n{_listed(card)}",
        card,
    )


def which(cards: Sequence[NumberedCard]) -> Hint:
    """Ask which of the open cards is meant."""
    lines = _fairly_listed(cards)
    more = len(cards) - len(lines)
    rest = [f"and {more} more"] if more > 0 else []
    head = "Which question is that for? Quote it, or begin with its id, such as "
    return Hint("\n".join([f"{head}“#{cards[0].short_id} …”:", *lines, *rest]))


def unknown_id(given: str, cards: Sequence[NumberedCard]) -> Hint:
    """Say that no card has the id, and which are open."""
    head = f"No question with the id #{given} is open here."
    lines = _fairly_listed(cards)
    return Hint("\n".join([head, *(["Open:"] if lines else []), *lines]))


def _fairly_listed(cards: Sequence[NumberedCard]) -> list[str]:
    """Return a line for each card that there is room for; no group fills it alone."""
    order = fair_order(range(len(cards)), lambda at: at, lambda at: cards[at].group)
    return [_listed(cards[at]) for at in order[:_MAX_LISTED]]


def one_at_a_time(cards: Sequence[NumberedCard]) -> Hint:
    """Say that one message answers one card."""
    ids = ", ".join(f"#{card.short_id}" for card in cards)
    return Hint(f"Your message names several questions ({ids}). Please answer each by itself.")


def first(card: NumberedCard) -> int:
    """Return the number of the question that is answered next."""
    return card.missing[0] if card.missing else 1


def _hint(card: NumberedCard, text: str) -> Hint:
    return Hint(f"{text} #{card.short_id}", card)


def _listed(card: NumberedCard) -> str:
    """Return the id, the group and the question: its text cannot pass for another group's."""
    asked = in_line(card.questions[first(card) - 1].text, _BRIEF_HINT)
    return f"#{card.short_id} {card.group}: {asked}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
