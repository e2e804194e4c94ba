"""Which option a typed text means: one rule for every place where people type.

A number means the position that is shown. A text that could mean two options, such as the number
of one that is the label of another, is never guessed: the person is told what to type instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pynchy.errors import InvalidReply

# A line of a card, such as “2. Blue” or “2) 7”. Neither “1.5” nor “1:30” is one.
LINE = re.compile(r"([0-9]{1,3})\s*[.):](?:\s+|(?=\D))(\S.*)\Z", re.DOTALL)
_SEPARATOR = re.compile(r"[,;]\s*")
_DIGITS = re.compile(r"[0-9]{1,3}\Z")
# What may stand around a number, a keycap's box included.
_AROUND = " .()[]\ufe0f\u20e3"


def read_number(text: str) -> int | None:
    """Return the number that the text is, in whatever digits and brackets; None if it is none."""
    plain = unicodedata.normalize("NFKC", text).strip(_AROUND)
    return int(plain) if plain.isascii() and _DIGITS.match(plain) else None


def ask_back(
    labels: tuple[str, ...], meant: Collection[str], lead: str, means: Callable[[str], object]
) -> str:
    """Say what to type for each option that a text could mean, after `lead`.

    `means` returns the set of the labels that a text means.
    """
    said = []
    for place, label in enumerate(labels, 1):
        if label in meant:
            ways = (str(place), f"{place}. {label}", label)
            way = next((way for way in ways if means(way) == {label}), None)
            said.append(f"“{lead}{way}” for number {place}" if way else f"{place} only by a click")
    return f"that could mean several options; say {', '.join(said)}"


@dataclass(frozen=True, slots=True)
class Choices:
    """The labels of one question, folded once however many texts are compared with them.

    `lead` goes before an answer to this question where several were asked.
    """

    labels: tuple[str, ...]
    folded: Mapping[str, str]
    numbered: Mapping[int, frozenset[str]]
    lead: str = ""

    @classmethod
    def of(cls, labels: tuple[str, ...], lead: str = "") -> Self:
        """Return the labels, ready to be compared."""
        numbered: dict[int, frozenset[str]] = {
            place: frozenset([label]) for place, label in enumerate(labels, 1)
        }
        for label in labels:
            if (number := read_number(label)) is not None:
                numbered[number] = numbered.get(number, frozenset()) | {label}
        return cls(labels, {label.casefold(): label for label in labels}, numbered, lead)

    def find(self, typed: str) -> str | None:
        """Return the label of the option that is meant; None if the text names none.

        Raise InvalidReply for a number that no option has, and for what could be several.
        """
        meant = self.meant(typed)
        if len(meant) > 1:
            raise self._unclear(meant)
        if meant:
            return next(iter(meant))
        if (number := read_number(typed)) is not None:
            raise InvalidReply(f"there is no option {number}: choose 1 to {len(self.labels)}")
        if (line := LINE.match(typed)) and (label := self.folded.get(line[2].casefold())):
            raise InvalidReply(f"“{label}” is not number {line[1]}")
        return None

    def meant(self, typed: str) -> frozenset[str]:
        """Return the labels of the options that the text names by number, label or line."""
        named = {self.folded.get(typed.casefold()), self._on_line(typed)} - {None}
        number = read_number(typed)
        by_number = self.numbered.get(number, frozenset()) if number is not None else frozenset()
        return by_number | frozenset(label for label in named if label)

    def find_several(self, values: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Return the labels that the values name, also several with commas, and what is left over.

        Raise InvalidReply as `find` does.
        """
        parts = [part for value in values for part in self._parts(value)]
        label = self.folded.get(" ".join(values).casefold())
        if label and len(parts) > 1:
            raise self._unclear({label}.union(*map(self.meant, parts)))
        found = [(part, self.find(part)) for part in parts]
        chosen = dict.fromkeys(label for _, label in found if label is not None)
        return tuple(chosen), " ".join(part for part, label in found if label is None)

    def _parts(self, value: str) -> list[str]:
        """Return `1, 3` as two values; a text with commas stays one."""
        parts = _SEPARATOR.split(value)
        every = all(self.meant(part) or read_number(part) is not None for part in parts)
        return parts if every else [value]

    def _unclear(self, meant: Collection[str]) -> InvalidReply:
        return InvalidReply(ask_back(self.labels, meant, self.lead, self.meant))

    def _on_line(self, typed: str) -> str | None:
        line = LINE.match(typed)
        label = self.folded.get(line[2].casefold()) if line else None
        return label if line and label and self.labels.index(label) + 1 == int(line[1]) else None
