"""Which option a typed word means: one rule for every place where people type.

A number means the position that is shown. A label that is the number of another position cannot
be told from it, so nothing is guessed: the person is asked for the whole line, as in “1. 2”.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pynchy.errors import InvalidReply

_NUMBER = re.compile(r"[0-9]{1,3}\Z")
_LINE = re.compile(r"([0-9]{1,3})\s*[.):]\s*(\S.*)\Z", re.DOTALL)


def is_number(typed: str) -> bool:
    """True if the text is nothing but a number that could be a position."""
    return _NUMBER.match(typed) is not None


def ask_for_line(typed: str, label: str, place: int) -> str:
    """Say that the text names one option by its number and another, at this place, by its label."""
    return (
        f"“{typed}” is the number of one option and the label of another: "
        f"give the whole line, such as “{place}. {label}”"
    )


@dataclass(frozen=True, slots=True)
class Choices:
    """The labels of one question, folded once however many words are compared with them."""

    labels: tuple[str, ...]
    folded: Mapping[str, str]

    @classmethod
    def of(cls, labels: tuple[str, ...]) -> Self:
        """Return the labels, ready to be compared."""
        return cls(labels, {label.casefold(): label for label in labels})

    def find(self, typed: str) -> str | None:
        """Return the label that the text names by number, label or line; None if it names none.

        Raise InvalidReply for a number that no option has, and for what could be two of them.
        """
        label = self.folded.get(typed.casefold())
        if not is_number(typed):
            return label or self._on_line(typed)
        number = int(typed)
        at_place = self.labels[number - 1] if 1 <= number <= len(self.labels) else None
        if label is None and at_place is None:
            raise InvalidReply(f"there is no option {typed}: choose 1 to {len(self.labels)}")
        if label and at_place and label != at_place:
            raise InvalidReply(ask_for_line(typed, label, self.labels.index(label) + 1))
        return label or at_place

    def _on_line(self, typed: str) -> str | None:
        """Read a line of the card, such as “2. Blue”: number and label must agree."""
        line = _LINE.match(typed)
        label = self.folded.get(line[2].casefold()) if line else None
        if line and label and self.labels.index(label) + 1 != int(line[1]):
            raise InvalidReply(f"“{label}” is not number {line[1]}")
        return label
