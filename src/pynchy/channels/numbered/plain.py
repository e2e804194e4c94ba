"""What agents write, made harmless for a text: it cannot pass for a line of the frame.

A text of its own is marked at every line, as a quotation is; what stands within a line of ours is
one line, and has no “#” before a letter or digit, which only an id has.
"""

from __future__ import annotations

import re

from pynchy.channels.text import head, length
from pynchy.unicode_safety import name_all

MARK = "> "
_HASH = re.compile(r"[#＃﹟](?=\w)")
_LINES = re.compile(r"[\n\x0b\x0c\x85\u2028\u2029]")
_NOTHING = "—"


def in_line(text: str, most: int) -> str:
    """Return the text in one line of at most so many characters, as part of a line of ours."""
    line = " ".join(_harmless(text).split()) or _NOTHING
    return clip(_HASH.sub("＃", line), most)


def quoted(text: str, most: int) -> list[str]:
    """Return the lines of the text, at most so many characters in all, each with the mark.

    Of several blank lines one stays: the text cannot push our own lines out of sight.
    """
    lines = [line.rstrip() for line in _harmless(text).strip().split("\n")]
    kept = [line for before, line in zip(["", *lines], lines, strict=False) if line or before]
    whole = clip("\n".join(kept), most) or _NOTHING
    return [f"{MARK}{line}".rstrip() for line in whole.split("\n")]


def clip(text: str, most: int) -> str:
    """Return the text in at most so many characters; what is cut ends in an ellipsis."""
    return text if length(text) <= most else head(text, max(most, 1) - 1).rstrip() + "…"


def _harmless(text: str) -> str:
    """Name what hides; let no run of backticks turn what follows into code."""
    return re.sub("`{3,}", "'''", name_all(_LINES.sub("\n", text)))
