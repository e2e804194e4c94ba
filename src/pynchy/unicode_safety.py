"""Characters that hide or turn text around, so that every screen can show them by name.

They are shown, not removed: who reads must see that something is there. What only joins or colours
emoji stays, where it does just that.
"""

from __future__ import annotations

import re

# C0 and C1 but for tab and line feed.
CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
# Bidirectional marks, overrides and isolates; invisible characters, joiners, fillers and blanks;
# line separators; variation selectors; tags; controls of shorthand, hieroglyphs and music.
HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
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
_HIDDEN_OR_CONTROL = re.compile(f"(?!{_IN_EMOJI})([{HIDDEN}{CONTROLS}])\\1*")
_SURROGATE = re.compile(f"[{SURROGATES}]")


def name_all(text: str) -> str:
    """Return the text with hidden and control characters named, in lines that end as ours do.

    A character is named by its number, as in ⟨U+202E⟩; the same one in a row once, with a count.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN_OR_CONTROL.sub(number_of, _SURROGATE.sub("\ufffd", text))


def number_of(found: re.Match[str]) -> str:
    """Return how a run of one character, the match's first group, is named."""
    count = len(found.group())
    return f"⟨U+{ord(found[1]):04X}{f' x{count}' if count > 1 else ''}⟩"
