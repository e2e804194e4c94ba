"""What an agent wrote, as HTML that can do nothing.

Markdown is rendered without raw HTML and without pictures, links name the host that they lead to,
hidden characters are shown by number, and the result passes a sanitiser as well. What would lead
out of the card it stands in, such as sixty quotes in each other, is shown as it was written.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from html import escape
from itertools import accumulate
from typing import Any
from urllib.parse import unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from pynchy.unicode_safety import NAMED, name_all

# Each opening bracket is a search for its end: 20,000 of them would take seconds.
_MAX_BRACKETS = 500
# Every row of a table has as many cells as its head, whether they are written or not.
_MAX_CELLS = 2_000
# What Markdown is written with, and nothing that says anything.
_MARKUP = re.compile(r"[\s!-/:-@\[-`{-~]+")
# Markdown takes up to 60 µs for each of these, so that a text takes 0.1 s.
_MARKS = re.compile(r"[<>\[\]|\\&!\n]|([-*_~`#])\1*")
MAX_MARKS = 2_000
# Each level moves a text to the right, on a phone by a tenth of the card.
_MAX_DEPTH = 6
_NESTS = ("blockquote_", "bullet_list_", "ordered_list_")
# A number stands left of its item, where there is so much room.
_MAX_NUMBER = 3
# So many hidden characters of one text are marked; the others are named and look like text.
_MAX_SIGNS = 200

FOLD_LINES = 14
_LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_DIFF_HEAD = re.compile(r"^(diff --git |@@ .*@@|--- \S)", re.MULTILINE)
_DIFF_HUNK = re.compile(r"^@@ .*@@", re.MULTILINE)
_TAGS = {
    *("p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
_CLASSES = {"add", "del", "hunk", "meta", "sign", "goes", "line"}
_ATTRIBUTES = {"a": {"href", "target"}, "span": {"class"}, "ol": {"start"}, "li": {"value"}}


def make_reader(renderer: type[RendererHTML] = RendererHTML) -> MarkdownIt:
    """Return a reader that takes no HTML, no pictures and no links that are defined elsewhere."""
    options = {"html": False, "linkify": False}
    reader = MarkdownIt("js-default", options, renderer_cls=renderer)
    return reader.disable(["image", "reference"])


def read(reader: MarkdownIt, text: str) -> list[Token] | None:
    """Return the text's tokens; None where it is to be shown as it stands."""
    if text.count("[") > _MAX_BRACKETS or text.count("|") > _MAX_CELLS:
        return None
    if count_marks(text) > MAX_MARKS:
        return None
    tokens = reader.parse(text)
    if _leaves_card(tokens):
        return None
    shown = "".join(f"{token.info}{token.content}" for token in tokens)
    return tokens if _MARKUP.sub("", text) == _MARKUP.sub("", shown) else None


def _leaves_card(tokens: Sequence[Token]) -> bool:
    """True if it is nested so deep, or numbered so high, that a part would be beside the card."""
    depths = accumulate(token.nesting for token in tokens if token.type.startswith(_NESTS))
    items = (token for token in tokens if token.type == "list_item_open")
    return max(depths, default=0) > _MAX_DEPTH or any(len(i.info) > _MAX_NUMBER for i in items)


def count_marks(text: str) -> int:
    """Return how many marks there are that Markdown has to look at."""
    return sum(1 for _ in _MARKS.finditer(text))


class _Renderer(RendererHTML):
    """markdown-it's own, but for links, headings, code and pictures."""

    def link_open(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        tokens[idx].attrSet("target", "_blank")
        return self.renderToken(tokens, idx, options, env)

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any, **__: Any) -> str:  # noqa: ANN401 - as markdown-it calls it
        return f"</a>{_goes_to(tokens, idx)}"

    def list_item_open(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        if tokens[idx].info:  # a browser would count on from the first one
            tokens[idx].attrSet("value", tokens[idx].info)
        return self.renderToken(tokens, idx, options, env)

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any, **__: Any) -> str:  # noqa: ANN401 - as markdown-it calls it
        return f"<h{_heading(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any, **__: Any) -> str:  # noqa: ANN401 - as markdown-it calls it
        return f"</h{_heading(tokens[idx])}>"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any, **__: Any) -> str:  # noqa: ANN401 - as markdown-it calls it
        info = tokens[idx].info.strip()
        label = f'<span class="goes">{escape(info)}</span>\n' if info else ""
        lines = _code_lines(tokens[idx].content, is_called_diff=info == "diff")
        return f"<pre>{label}<code>{lines}</code></pre>"

    code_block = fence


_MARKDOWN = make_reader(_Renderer)
# Only what leads away, and says so: a path would be one of our own pages.
_MARKDOWN.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]


def render(text: str, *, is_whole: bool = False) -> Markup:
    """Return the text, read as Markdown, as HTML.

    `is_whole`: all of it must be in sight. A table, which may be wider than any screen, then
    stands as it was written.
    """
    tokens = read(_MARKDOWN, name_all(text))
    if tokens is None or (is_whole and any(token.type == "table_open" for token in tokens)):
        return as_is(text)
    # Once more afterwards: Markdown reads `&#x202e;` as the character.
    html = name_all(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
    return Markup(_sanitise(_signed(html)))  # noqa: S704 - it has just been made safe


def as_is(text: str) -> Markup:
    """Return the text as a paragraph that keeps its lines, and reads nothing as Markdown."""
    return Markup('<p class="as-is">%s</p>') % plain(text)


def plain(text: str) -> Markup:
    """Return the text as it stands, hidden characters shown."""
    return Markup(_sanitise(_signed(escape(name_all(text), quote=False))))  # noqa: S704 - the same


def code(text: str) -> Markup:
    """Return the text as the content of a code block; a unified diff is marked up."""
    return Markup(_sanitise(_code_lines(name_all(text))))  # noqa: S704 - the same


def is_diff(text: str) -> bool:
    """True for a unified diff: it has a hunk, and a header or changed lines."""
    return bool(_DIFF_HUNK.search(text) and _DIFF_HEAD.search(text))


def count_lines(text: str) -> int:
    """Return how many lines the text has."""
    return text.rstrip().count("\n") + 1


def _sanitise(html: str) -> str:
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_only_our_classes,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def _only_our_classes(_tag: str, attribute: str, value: str) -> str | None:
    return None if attribute == "class" and not set(value.split()) <= _CLASSES else value


def _signed(html: str) -> str:
    return NAMED.sub(_sign, html, count=_MAX_SIGNS)


def _sign(found: re.Match[str]) -> str:
    return f'<span class="sign">{found.group()[1:-1]}</span>'


def _code_lines(text: str, *, is_called_diff: bool = False) -> str:
    lines = text.rstrip().split("\n")
    if is_diff(text):
        return "".join(_diff_line(line, _DIFF_KINDS) for line in lines)
    if is_called_diff:
        return "".join(_diff_line(line, _CHANGES) for line in lines)
    return _signed("\n".join(escape(line, quote=False) for line in lines))


def _diff_line(line: str, kinds: Sequence[tuple[str, str]]) -> str:
    kind = next((kind for start, kind in kinds if line.startswith(start)), "line")
    body = _signed(escape(line, quote=False))
    return f'<span class="{kind}">{body}\n</span>'


# Without a head, “--- x” is the line “-- x” that goes.
_CHANGES = (("+", "add"), ("-", "del"))
_DIFF_KINDS = (
    ("+++", "meta"),
    ("---", "meta"),
    ("diff ", "meta"),
    ("index ", "meta"),
    ("@@", "hunk"),
    *_CHANGES,
)


def _goes_to(tokens: Sequence[Token], close: int) -> str:
    """Return where a link leads, whose text may name another place, and its title."""
    start = max(at for at in range(close) if tokens[at].type == "link_open")
    link, text = tokens[start], "".join(token.content for token in tokens[start:close])
    address = str(link.attrGet("href") or "")
    title = str(link.attrGet("title") or "")
    told = _place(address, is_shown=address.endswith(text) and bool(text))
    told = f"{told} “{title}”" if title else told
    return f' <span class="goes">({escape(name_all(told))})</span>'


def _place(address: str, *, is_shown: bool) -> str:
    """Return the address without its scheme; only its host where the text is the address."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return address
    whole = unquote(address.partition(":")[2].removeprefix("//")).removesuffix("/")
    if host and (is_shown or whole == host):
        return host
    return whole if parts.netloc in {host, ""} else f"{host}: {whole}"


def _heading(token: Token) -> int:
    # The page and the card have the first two levels.
    return min(int(token.tag[1:]) + 2, 6)
