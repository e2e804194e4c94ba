"""Agent text made harmless: it can neither mention nor link nor format, and it fits.

Lengths are counted in UTF-16 units, the largest count that Slack could mean by a character.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from pynchy.channels.text import head, length

# Control characters that Slack may refuse, and marks that turn the direction of writing around.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_NOTHING = "—"
# What a person typed has no bare angle brackets: these are Slack's own.
_TOKEN = re.compile(r"<([^<>]+)>")
_MENTIONS = {"@": "@", "#": "#", "!": "@"}


def clean(text: str) -> str:
    """Return the text without what could break a card; never empty, which Slack refuses."""
    return _harmless(text).strip() or _NOTHING


def escape(text: str) -> str:
    """Return the text so that Slack takes nothing in it for a mention or a link."""
    return html.escape(clean(text), quote=False)


def as_typed(text: str) -> str:
    """Return what the person typed: Slack makes links and mentions of it, and escapes it, once."""
    text = _TOKEN.sub(lambda found: _typed(found[1]), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _typed(token: str) -> str:
    """Return what stood where Slack has put a link or a mention."""
    target, bar, label = token.partition("|")
    if target[:1] in _MENTIONS:
        name = label or target[1:].partition("^")[0]
        return name if target[0] == "!" and label else _MENTIONS[target[0]] + name
    # What a person's client made a link of by itself has its own address for a label.
    made = target.partition(":")[2].lstrip("/").rstrip("/") == label.rstrip("/")
    if not bar or target == label:
        return target
    return label if made else f"{label} ({target})"


def clip(text: str, most: int) -> str:
    """Return the cleaned text in at most so many characters; what is cut ends in an ellipsis."""
    text = clean(text)
    if length(text) <= most:
        return text
    return head(text, most - 1).rstrip() + "…"


def one_line(text: str, most: int) -> str:
    """Return the text in a single line of at most so many characters."""
    return clip(" ".join(clean(text).split()), most)


def chunks(text: str, most: int) -> Iterator[str]:
    """Yield the whole text in pieces of at most so many characters, cut at a line or a word."""
    # Spaces at the start stay: they are part of a drawing.
    text = _harmless(text).strip("\n").rstrip() or _NOTHING
    start = 0
    while length(text[start : start + most + 1]) > most:
        whole = head(text[start : start + most], most)
        cut = max(whole.rfind("\n", len(whole) // 2), whole.rfind(" ", len(whole) // 2)) + 1
        piece = whole[: cut or len(whole)]
        start += len(piece)
        if piece.strip():
            yield piece.rstrip()
    if text[start:].strip():
        yield text[start:]


def _harmless(text: str) -> str:
    return _HARMFUL.sub("", text.replace("\r\n", "\n"))
