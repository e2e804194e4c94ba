"""The parts of a card, and the ids by which a restarted host finds its question again.

Agent text goes into plain text alone, where nothing is interpreted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from pynchy.channels.slack import limits
from pynchy.channels.slack.limits import Block, Piece
from pynchy.channels.text import head, length
from pynchy.fences import split_code
from pynchy.model import RequestId
from pynchy.unicode_safety import name_all

PREFIX = "pynchy:"

PICK = f"{PREFIX}pick"
CHOICE = f"{PREFIX}choice"
OTHER = f"{PREFIX}other"
SUBMIT = f"{PREFIX}submit"
DECLINE = f"{PREFIX}decline"
LINK = f"{PREFIX}link"
MEANT = f"{PREFIX}meant"

_BLOCK = re.compile(rf"{PREFIX}([A-Za-z0-9_-]+):")
_PART = re.compile(r"([0-9]+\.[0-9]+)(?:@([0-9]+))?\Z")
_PLACE = re.compile(r"([A-Z0-9]+)(?:/([0-9]+\.[0-9]+))?:([^+]+)(\+?)\Z")

# What is no character, and Slack may refuse.
_NO_CHARACTER = re.compile("[\ufffe\uffff]")
_NOTHING = "—"
# What a person typed has no bare angle brackets: these are Slack's own.
_TOKEN = re.compile(r"<([^<>]+)>")
_MENTIONS = {"@": "@", "#": "#", "!": "@"}


def make_block_id(request_id: RequestId, name: str) -> str:
    """Return the id of a block of the question's card."""
    return f"{PREFIX}{request_id}:{name}"


def request_of(identifier: object) -> RequestId | None:
    """Return the request whose card has the block; None for a block that is not ours."""
    match = _BLOCK.match(identifier) if isinstance(identifier, str) else None
    return RequestId(match.group(1)) if match else None


@dataclass(frozen=True, slots=True)
class CardMessage:
    """One message of a card; `question` counts from 1 where it shows only that one."""

    ts: str
    question: int | None = None

    def __str__(self) -> str:
        return self.ts if self.question is None else f"{self.ts}@{self.question}"


@dataclass(frozen=True, slots=True)
class CardLocation:
    """Where a card is: the conversation, the thread it was posted into, and its messages.

    `copied` is true where Slack may show the card a second time, in messages that are not known.
    """

    channel: str
    parts: tuple[CardMessage, ...]
    thread: str | None = None
    copied: bool = False

    def __str__(self) -> str:
        chat = self.channel if self.thread is None else f"{self.channel}/{self.thread}"
        return f"{chat}:{','.join(map(str, self.parts))}{'+' if self.copied else ''}"

    @property
    def root(self) -> str:
        """The message under which people reply to the card."""
        return self.thread or self.parts[0].ts


def read_location(message_id: str) -> CardLocation | None:
    """Return the place that a message id stands for; None if it is not one of ours."""
    match = _PLACE.match(message_id)
    if match is None:
        return None
    found = [_PART.match(part) for part in match.group(3).split(",")]
    parts = tuple(
        CardMessage(m.group(1), int(m.group(2)) if m.group(2) else None) for m in found if m
    )
    if len(parts) < len(found):
        return None
    return CardLocation(match.group(1), parts, match.group(2), copied=bool(match.group(4)))


def read_chat(jid: str) -> tuple[str, str | None]:
    """Return the conversation of a group's `chat`, and the thread if it names one."""
    channel, _, thread = jid.partition("/")
    return channel, thread or None


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
    """Yield the whole text in pieces of at most so many characters, cut at a line, or a word."""
    # Spaces at the start stay: they are part of a drawing.
    text = _harmless(text).strip("\n").rstrip() or _NOTHING
    start = 0
    while length(text[start : start + most + 1]) > most:
        whole = head(text[start : start + most], most)
        half = len(whole) // 2
        cut = (whole.rfind("\n", half) + 1) or (whole.rfind(" ", half) + 1)
        piece = whole[: cut or len(whole)]
        start += len(piece)
        if piece.strip():
            yield piece.rstrip()
    if text[start:].strip():
        yield text[start:]


def joined(lines: Iterable[str]) -> list[str]:
    """Return the lines in as few texts as a section can hold, no line cut."""
    made: list[str] = []
    for line in lines:
        longer = f"{made[-1]}\n{line}" if made else ""
        if made and length(longer) <= limits.SECTION:
            made[-1] = longer
        else:
            made.append(line)
    return made


def _harmless(text: str) -> str:
    """Name what hides: a person must see that something is there."""
    return _NO_CHARACTER.sub("\ufffd", name_all(text))


def plain(text: str, most: int) -> Block:
    """Return text that is shown as it is."""
    return {"type": "plain_text", "text": clip(text, most), "emoji": False}


def moment(at: datetime) -> str:
    """Return mrkdwn that shows the moment in the reader's own time zone."""
    written = at.strftime("%Y-%m-%d %H:%M UTC")
    return f"<!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{written}>"


def header(text: str) -> Block:
    """Return the card's title."""
    return {"type": "header", "text": plain(one_line(text, limits.HEADER), limits.HEADER)}


def section(text: str) -> Block:
    """Return a paragraph."""
    return {"type": "section", "text": plain(text, limits.SECTION)}


def unfolded(piece: Piece) -> Piece:
    """Return the piece with paragraphs of which Slack folds nothing away."""
    made = [b | ({"expand": True} if b["type"] == "section" else {}) for b in piece.blocks]
    return replace(piece, blocks=tuple(made))


def context(*texts: str) -> Block:
    """Return a line of small print."""
    return {"type": "context", "elements": [plain(text, limits.SECTION) for text in texts]}


def own_words(mrkdwn: str) -> Block:
    """Return small print of our own, never with a word of an agent's or a person's in it."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": mrkdwn}]}


def divider() -> Block:
    """Return a line between questions."""
    return {"type": "divider"}


def preformatted(text: str) -> Block:
    """Return text in a fixed width, shown as it is."""
    part = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [part]}


def paragraphs(text: str) -> list[Block]:
    """Return the whole text as paragraphs and, where it has fences around a part, as code."""
    made: list[Block] = []
    for part in split_code(text):
        as_block = preformatted if part.is_code else section
        made += map(as_block, chunks(part.text, limits.SECTION))
    return made or [section(text)]


def button(label: str, action_id: str, value: str, style: str | None = None) -> Block:
    """Return a button."""
    made: Block = {
        "type": "button",
        "action_id": action_id,
        "text": plain(one_line(label, limits.BUTTON), limits.BUTTON),
        "value": value,
    }
    return made | ({"style": style} if style else {})


def confirm(title: str, text: str) -> Block:
    """Return what Slack asks before a button counts."""
    return {
        "title": plain(one_line(title, limits.CONFIRM_TITLE), limits.CONFIRM_TITLE),
        "text": plain(text, limits.CONFIRM),
        "confirm": plain("Yes", limits.CONFIRM_BUTTON),
        "deny": plain("Cancel", limits.CONFIRM_BUTTON),
    }


def link_button(url: str) -> Block:
    """Return a button that opens the question's page."""
    made = button("Open in the browser", LINK, "link")
    return made | {"url": url}


def option(number: int, label: str, description: str = "") -> Block:
    """Return a choice; its value is its number, as a label may be too long for one."""
    made: Block = {
        "text": plain(one_line(label, limits.OPTION), limits.OPTION),
        "value": f"o{number}",
    }
    if not description:
        return made
    return made | {"description": plain(one_line(description, limits.OPTION), limits.OPTION)}


def choice(request_id: RequestId, name: str, label: str, element: Block) -> Block:
    """Return radio buttons, checkboxes or a list to choose from; nothing is sent until Submit."""
    return {
        "type": "input",
        "block_id": make_block_id(request_id, name),
        "optional": True,
        "label": plain(label, limits.INPUT_LABEL),
        "element": element,
    }


def text_input(
    request_id: RequestId, question: int, label: str, hint: str, *, on_enter: bool
) -> Block:
    """Return the field for a person's own words; on_enter: the enter key sends them."""
    element: Block = {
        "type": "plain_text_input",
        "action_id": f"{OTHER}:{question}",
        "multiline": False,
        "max_length": limits.INPUT,
        "placeholder": plain(hint, limits.PLACEHOLDER),
    }
    made = choice(request_id, f"q{question}:other", label, element)
    if on_enter:
        element["dispatch_action_config"] = {"trigger_actions_on": ["on_enter_pressed"]}
        made["dispatch_action"] = True
    return made


def actions(request_id: RequestId, name: str, *elements: Block) -> Block:
    """Return a row of buttons."""
    block_id = make_block_id(request_id, name)
    return {"type": "actions", "block_id": block_id, "elements": list(elements)}


def fallback(text: str) -> str:
    """Return the text of a notification; one that is too long is cut before it is escaped."""
    return escape(one_line(text, limits.FALLBACK // 6))
