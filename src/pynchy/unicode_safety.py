"""Characters that hide or turn text around, so that every screen can show them by name.

They are shown, not removed: who reads must see that something is there. What only joins or colours
emoji stays, where it does just that.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

# C0 and C1 but for tab and line feed.
CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
# Unicode's Default_Ignorable_Code_Point, which a font may leave out: what formats (Cf, but for the
# signs that Arabic, Syriac and Kaithi write around numbers), variation selectors, and what is
# reserved for more of them, assigned or not.
_DEFAULT_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# What a font may leave out as well, or shows as nothing: line and paragraph separators, the blank
# pattern of Braille, annotations, controls of hieroglyphs, the filler of Khitan, a note without a
# head.
_BLANK = "\u2028\u2029\u2800\ufff9-\ufffb\U00013430-\U0001345f\U00016fe4\U0001d159"
HIDDEN = _DEFAULT_IGNORABLE + _BLANK
SURROGATES = "\ud800-\udfff"

_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
# The selector of a coloured picture or of a keycap, and the joiner of two pictures.
_IN_EMOJI = (
    f"(?<={_PICTURE})\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?:(?<={_PICTURE})|(?<={_PICTURE}\ufe0f))\u200d(?={_PICTURE})"
)
_HIDDEN_RUN = re.compile(f"(?:(?!{_IN_EMOJI})[{HIDDEN}{CONTROLS}])+")
_SURROGATE = re.compile(f"[{SURROGATES}]")
# So many names in a row are read; more of them are counted.
_MAX_NAMES = 8
NAME = r"U\+[0-9A-F]{4,6}(?: x[0-9]+)?"
# What names hidden characters in a text, for those who mark it up.
NAMED = re.compile(
    rf"⟨(?:{NAME}|[0-9]+ hidden characters: {NAME}(?:, {NAME})*(?:, [0-9]+ others)?)⟩"
)


def name_all(text: str) -> str:
    """Return the text with hidden and control characters named, in lines that end as ours do.

    A character is named by its number, as in ⟨U+202E⟩; the same one in a row once, with a count;
    many different ones in a row together, each with how often it is there.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN_RUN.sub(_name_run, _SURROGATE.sub("\ufffd", text))


def strip_hidden(text: str) -> str:
    """Return the text without hidden and control characters, to compare what can be seen."""
    return _HIDDEN_RUN.sub("", text)


def clip(text: str, most: int) -> str:
    """Return at most so many characters of the text, which ends in an ellipsis where it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def number_of(found: re.Match[str]) -> str:
    """Return how a run of one character, the match's first group, is named."""
    return f"⟨{_name(found[1], len(found.group()))}⟩"


def _name_run(found: re.Match[str]) -> str:
    run = found.group()
    names = [_name(character, len(list(same))) for character, same in groupby(run)]
    if len(names) <= _MAX_NAMES:
        return "".join(f"⟨{name}⟩" for name in names)
    counts = Counter(run)
    told = counts.most_common(_MAX_NAMES)
    others = len(run) - sum(count for _, count in told)
    parts = [_name(*pair) for pair in told] + ([f"{others} others"] if others else [])
    return f"⟨{len(run)} hidden characters: {', '.join(parts)}⟩"


def _name(character: str, count: int) -> str:
    return f"U+{ord(character):04X}{f' x{count}' if count > 1 else ''}"
