"""A card as numbered text, and the text that follows when its question is over."""

from __future__ import annotations

from pynchy.channels.wording import describe
from pynchy.model import Card, Ending, Question

SMALLEST_LIMIT = 1_000


def render_card(questions: tuple[Question, ...], card: Card, limit: int) -> str:
    """Return the questions in one text of at most `limit` characters (SMALLEST_LIMIT or more).

    Lengths are counted in UTF-16 units. A card with `repeated` says so.
    """
    lines = [f"{card.agent or card.group} asks #{card.short_id}"]
    for question in questions:
        lines += [question.text, *(f"{n}. {o}" for n, o in enumerate(question.labels, 1))]
    return "\n".join(lines)[:limit]


def render_settled(
    questions: tuple[Question, ...], card: Card, ending: Ending, here: str, limit: int
) -> str:
    """Return how the question ended, and how the answer gets to the agent (`card.delivery`).

    `here` is the name of the channel that says it.
    """
    del questions
    said = describe(ending, here, lambda text, most: text[:most])
    return f"#{card.short_id} {said}\n{card.delivery}"[:limit]
