"""What agents wrote, as a terminal may have it: Markdown, code and diffs with nothing to fear.

Every piece is cleaned after Markdown was read, since Markdown can spell characters by number. A
link is text with its address behind it; nothing can be clicked, nothing is markup to the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token
from rich.text import Text

from pynchy.cli.text import clean
from pynchy.inbox.markdown import make_reader, read

FOLD_LINES = 14
LONG_LINES = 30
LONG_TEXT = 2_500
CODE = "cyan"
QUIET = "dim"

# A table is lines of text here, and easier to read as it was written.
_MARKDOWN = make_reader().disable("table")
_DIFF_HEAD = re.compile(r"^(diff --git |@@ .*@@|--- \S)", re.MULTILINE)
_DIFF_HUNK = re.compile(r"^@@ .*@@", re.MULTILINE)
# Without a head, “--- x” is the line “-- x” that goes.
_CHANGE_STYLES = ((("+",), "green"), (("-",), "red"))
_DIFF_STYLES = (
    (("+++", "---", "diff ", "index "), "bold"),
    (("@@",), "cyan"),
    *_CHANGE_STYLES,
)
_INLINE_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "link": "underline"}


def markdown(text: str) -> Text:
    """Return the text, read as Markdown, to be shown."""
    cleaned = clean(text)
    tokens = read(_MARKDOWN, cleaned)
    if tokens is None:
        return Text(cleaned.rstrip())
    blocks = Text("\n").join(_blocks(tokens))
    blocks.rstrip()
    return blocks


def code(text: str, bar: str = "", *, is_called_diff: bool = False) -> Text:
    """Return the text as it stands, line by line; a diff is coloured."""
    styles = _DIFF_STYLES if is_diff(text) else _CHANGE_STYLES if is_called_diff else None
    lines = clean(text).rstrip().split("\n")
    return Text("\n").join(_barred(line, _line_style(line, styles), bar) for line in lines)


def is_diff(text: str) -> bool:
    """True for a unified diff: it has a hunk, and a header or changed lines."""
    return bool(_DIFF_HUNK.search(text) and _DIFF_HEAD.search(text))


def count_lines(text: str) -> int:
    """Return how many lines the text has."""
    return clean(text).rstrip().count("\n") + 1


def _barred(line: str, style: str, bar: str) -> Text:
    return Text().append(bar, QUIET).append(line, style)


def _line_style(line: str, styles: Sequence[tuple[tuple[str, ...], str]] | None) -> str:
    if styles is None:
        return CODE
    return next((style for starts, style in styles if line.startswith(starts)), "")


def _blocks(tokens: Sequence[Token]) -> Iterator[Text]:
    """Yield every block, with what stands in front of it: quotes, bullets, numbers."""
    nest: list[str] = []
    for at, token in enumerate(tokens):
        match token.type:
            case "bullet_list_open" | "ordered_list_open" | "blockquote_open":
                nest.append("▌ " if token.type == "blockquote_open" else "")
            case "bullet_list_close" | "ordered_list_close" | "blockquote_close":
                nest.pop()
                if not nest:
                    yield Text()
            case "list_item_open":
                nest[-1] = f"{token.info}{token.markup} " if token.info else "• "
            case "inline":
                yield _lead(nest).append_text(_inline(token, tokens[at - 1].type))
            case "fence" | "code_block":
                yield from _code_block(token, f"{_lead(nest).plain}│ ")
            case "hr":
                yield Text("────", QUIET)
            case "paragraph_close" | "heading_close" if not nest:
                yield Text()
            case _:
                continue


def _code_block(token: Token, bar: str) -> Iterator[Text]:
    if info := clean(token.info).strip():
        yield Text(bar + info, QUIET)
    yield code(token.content, bar, is_called_diff=info == "diff")
    yield Text()


def _lead(nest: list[str]) -> Text:
    lead = Text().append("".join(nest), QUIET)
    # What an item begins with stands only before its first block.
    nest[:] = [part if part == "▌ " else " " * len(part) for part in nest]
    return lead


def _inline(token: Token, inside: str) -> Text:
    text = Text(style="bold underline" if inside == "heading_open" else "")
    styles: list[str] = []
    targets: list[str] = []
    for child in token.children or ():
        name, _, edge = child.type.rpartition("_")
        match child.type:
            case "softbreak" | "hardbreak":
                text.append("\n")
            case "code_inline":
                text.append(clean(child.content), CODE)
            case _ if edge == "open":
                styles.append(_INLINE_STYLES.get(name, ""))
                targets += [_target(child)] if name == "link" else []
            case _ if edge == "close":
                styles.pop()
                if name == "link":
                    text.append(f" ({clean(targets.pop())})", QUIET)
            case _:
                text.append(clean(child.content), " ".join(filter(None, styles)))
    return text


def _target(link: Token) -> str:
    title = str(link.attrGet("title") or "")
    return str(link.attrGet("href") or "") + (f" “{title}”" if title else "")
