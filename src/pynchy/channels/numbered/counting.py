"""Numbers in a reply: a text that consists of nothing else, in digits or in words.

“2”, “1, 3 and 4”, “option two” and “1️⃣3️⃣” are numbers; “2 of them” and “1.5” are words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pynchy.channels.numbered import words
from pynchy.channels.numbered.folding import fold, fold_word, part_scripts

# “1.5” and “1:30” are one token, and no numbers of options; vowel signs of India belong to words.
_TOKEN = re.compile(r"[0-9]+(?:[.:][0-9]+)+|[\w\u0900-\u0dff]+|\S")
_BETWEEN = frozenset(",;/&+、،؛·|")
_AROUND = frozenset("#().[]!…。")
_UNSURE = frozenset("-–—−~?¿:<>=")
_NUMBERS = {fold_word(word): number for word, number in words.NUMBERS}
_AND = frozenset(map(fold_word, words.AND))
_OR = frozenset(map(fold_word, words.OR))
_OPTION = frozenset(map(fold_word, words.OPTION))
# No card has so many options; a longer number is as far out of range.
_LONGEST = 3
_LONGEST_EMOJI = 8
FAR_OUT = 10**_LONGEST


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
    tokens = _TOKEN.findall(part_scripts(fold(text)))
    numbers: list[int] = []
    unsure = spelled = False
    for place, token in enumerate(tokens):
        if token.isdecimal():
            numbers.append(_value(token))
        elif (word := fold_word(token)) in _NUMBERS:
            spelled = True
            numbers.append(_NUMBERS[word])
        elif token in _UNSURE or word in _OR:
            unsure = True
        elif word in _AND:
            unsure = unsure or not 0 < place < len(tokens) - 1
        elif token not in _BETWEEN | _AROUND and word not in _OPTION:
            return None
    return Numbers(tuple(dict.fromkeys(numbers)), unsure, spelled) if numbers else None


def keycap(emoji: str) -> int | None:
    """Return the number on a keycap or in a circle; None if the emoji is something else."""
    is_plain = emoji.strip().isalnum() and emoji.isascii()
    numbers = count(emoji) if len(emoji) <= _LONGEST_EMOJI and not is_plain else None
    if numbers is None or numbers.spelled or numbers.unsure or len(numbers.numbers) != 1:
        return None
    return numbers.numbers[0]


def _value(digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _LONGEST else FAR_OUT
