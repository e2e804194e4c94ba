"""Text made comparable: what looks or means the same to a person becomes the same, numbers too."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from pynchy.channels.numbered import vocabulary
from pynchy.unicode_safety import HIDDEN

_HIDDEN = re.compile(f"[{HIDDEN}]")
_KEYCAP = re.compile("([0-9#*])(\ufe0f?\u20e3)")
_TEN = "\U0001f51f"
# Superscripts belong to the word that they stand at.
_ENCIRCLED = re.compile("[\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3280-\u3289\u32b1-\u32bf]")
_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SEAM = re.compile(f"(?<=[0-9])(?=[{_EAST}])|(?<=[{_EAST}])(?=[0-9])")
_ENDING = " .,!;…。、，"

# “1.5” and “1:30” are one token, and no numbers of options; vowel signs of India belong to words.
_TOKEN = re.compile(r"[0-9]+(?:[.:][0-9]+)+|[\w\u0900-\u0dff]+|\S")
_HARMLESS = frozenset(",;/&+、،؛·|#().[]!…。")
_UNSURE = frozenset("-–—−~?¿:<>=")
# No card has so many options; a longer number is as far out of range.
_MAX_LENGTH = 3
_MAX_EMOJI_LENGTH = 8
# Longer than any list of numbers: to fold other scripts would take long.
_MAX_TEXT_LENGTH = 2_000
FAR_OUT = 10**_MAX_LENGTH


def fold(text: str) -> str:
    """Return the text as it is compared; it may be empty where only hidden characters were."""
    text = _KEYCAP.sub(r" \1 ", text).replace(_TEN, " 10 ")
    text = _ENCIRCLED.sub(_as_digits, _HIDDEN.sub("", text))
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(narrow(text).split())


def is_blank(text: str) -> bool:
    """True if there is nothing to see."""
    return not _HIDDEN.sub("", text).strip()


def fold_said(text: str) -> str:
    """Return the text as it is compared, without the points and marks that end a sentence."""
    folded = fold(text)
    return folded.rstrip(_ENDING) or folded


def fold_word(text: str) -> str:
    """Return the text as words are looked up: also without accents."""
    marked = unicodedata.normalize("NFD", fold_said(text).replace("’", "'"))
    return "".join(sign for sign in marked if not unicodedata.combining(sign))


def part_scripts(folded: str) -> str:
    """Return the text with a space between digits and the writing of East Asia."""
    return _SEAM.sub(" ", folded)


def narrow(text: str) -> str:
    """Return the text with plain digits and signs, each at the place where it was."""
    if text.isascii():
        return text
    text = _KEYCAP.sub(lambda found: found[1] + " " * len(found[2]), text)
    return "".join(map(_narrow, text))


def _narrow(sign: str) -> str:
    if sign.isascii():
        return sign
    plain = unicodedata.normalize("NFKC", sign)
    if len(plain) == 1 and plain.isascii():
        return plain
    return str(unicodedata.decimal(sign)) if sign.isdecimal() else sign


def _as_digits(found: re.Match[str]) -> str:
    return f" {unicodedata.numeric(found.group()):g} "


_NUMBERS = {fold_word(word): number for word, number in vocabulary.NUMBERS}
_AND = frozenset(map(fold_word, vocabulary.AND))
_OR = frozenset(map(fold_word, vocabulary.OR))
_OPTION = frozenset(map(fold_word, vocabulary.OPTION))


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
