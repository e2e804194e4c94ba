"""Text made comparable: what looks or means the same to a person becomes the same.

Case, width, digits of every script, keycaps, circled numbers and invisible characters make no
difference. What a person wrote as their own words is never changed by this.
"""

from __future__ import annotations

import re
import unicodedata

from pynchy.unicode_safety import HIDDEN

_HIDDEN = re.compile(f"[{HIDDEN}]")
_KEYCAP = re.compile("([0-9#*])(\ufe0f?\u20e3)")
_TEN = "\U0001f51f"
# Superscripts belong to the word that they stand at.
_ENCIRCLED = re.compile("[\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3280-\u3289\u32b1-\u32bf]")
_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SEAM = re.compile(f"(?<=[0-9])(?=[{_EAST}])|(?<=[{_EAST}])(?=[0-9])")
_ENDING = " .,!;…。、，"


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
