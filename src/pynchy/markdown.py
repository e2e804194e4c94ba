"""Markdown that agents wrote, read so that nothing of it goes unseen.

Markdown can leave text out: definitions of links, cells that a table has no column for. Who says
yes must have seen all that was asked, so such a text is shown as it stands.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

# Each opening bracket is a search for its end: 20,000 of them would take seconds.
_MAX_BRACKETS = 500
# Every row of a table has as many cells as its head, whether they are written or not.
_MAX_CELLS = 2_000
# What Markdown is written with, and nothing that says anything.
_MARKUP = re.compile(r"[\s!-/:-@\[-`{-~]+")


def make_reader(renderer: type[RendererHTML] = RendererHTML) -> MarkdownIt:
    """Return a reader that takes no HTML, no pictures and no links that are defined elsewhere."""
    options = {"html": False, "linkify": False}
    reader = MarkdownIt("js-default", options, renderer_cls=renderer)
    return reader.disable(["image", "reference"])


def read(reader: MarkdownIt, text: str) -> list[Token] | None:
    """Return the text's tokens; None where it is to be shown as it stands."""
    if text.count("[") > _MAX_BRACKETS or text.count("|") > _MAX_CELLS:
        return None
    tokens = reader.parse(text)
    shown = "".join(f"{token.info}{token.content}" for token in tokens)
    return tokens if _MARKUP.sub("", text) == _MARKUP.sub("", shown) else None
