"""Numbers in a reply: a text that consists of nothing else, in digits or in words.

“2”, “1, 3 and 4”, “option two” and “1️⃣3️⃣” are numbers; “2 of them” and “1.5” are words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pynchy.channels.numbered import vocabulary
from pynchy.channels.numbered.normalize import fold, fold_word, part_scripts

# “1.5” and “1:30” are one token, and no numbers of options; vowel signs of India belong to words.
_TOKEN = re.compile(r"[0-9]+(?:[.:][0-9]+)+|[\w\u0900-\u0dff]+|\S")
_HARMLESS = frozenset(",;/&+、،؛·|#().[]!…。")
_UNSURE = frozenset("-–—−~?¿:<>=")
_NUMBERS = {fold_word(word): number for word, number in vocabulary.NUMBERS}
_AND = frozenset(map(fold_word, vocabulary.AND))
_OR = frozenset(map(fold_word, vocabulary.OR))
_OPTION = frozenset(map(fold_word, vocabulary.OPTION))
# No card has so many options; a longer number is as far out of range.
_MAX_LENGTH = 3
_MAX_EMOJI_LENGTH = 8
# Longer than any list of numbers: to fold other scripts would take long.
_MAX_TEXT_LENGTH = 2_000
FAR_OUT = 10**_MAX_LENGTH


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a text that has only numbers.

    `unsure` if something in it leaves open which are meant, as in “1 or 2”, “1-3” or “2?”;
    `spelled` if one is a word.
    """

    numbers: tuple[int, ...]
    unsure: bool = False
    spelled: bool = False


def count(text: str) -> Numbers | None:
    """Return the numbers that the text consists of; None if it has anything else, or none."""
    if len(text) > _MAX_TEXT_LENGTH and not text.isascii():
        return None
    tokens = _TOKEN.findall(part_scripts(fold(text)))
    numbers: dict[int, None] = {}
    unsure = spelled = False
    for place, token in enumerate(tokens):
        if token.isdecimal():
            numbers[_value(token)] = None
        elif token in _UNSURE:
            unsure = True
        elif token in _HARMLESS:
            continue
        elif (word := fold_word(token)) in _NUMBERS:
            spelled = True
            numbers[_NUMBERS[word]] = None
        elif word in _OR or (word in _AND and place in {0, len(tokens) - 1}):
            unsure = True
        elif word not in _AND | _OPTION:
            return None
    return Numbers(tuple(numbers), unsure, spelled) if numbers else None


def keycap(emoji: str) -> int | None:
    """Return the number on a keycap or in a circle; None if the emoji is something else."""
    is_plain = emoji.strip().isalnum() and emoji.isascii()
    numbers = count(emoji) if len(emoji) <= _MAX_EMOJI_LENGTH and not is_plain else None
    if numbers is None or numbers.spelled or numbers.unsure or len(numbers.numbers) != 1:
        return None
    return numbers.numbers[0]


def _value(digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_LENGTH else FAR_OUT
