"""Everything that Slack refuses in a message, and how a card is packed so that it is taken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pynchy.channels.text import length

Block = dict[str, Any]

BLOCKS = 50
# Slack does not say how much all blocks together may hold; it has refused 13,200 characters.
BUDGET = 12_000
SECTION = 3_000
HEADER = 150
BUTTON = 75
BUTTON_VALUE = 2_000
CONFIRM_TITLE = 100
CONFIRM = 300
CONFIRM_BUTTON = 30
IDENTIFIER = 255
OPTION = 75
OPTION_VALUE = 75
CHOICES = 10
SELECT = 100
INPUT = 3_000
INPUT_LABEL = 2_000
PLACEHOLDER = 150
URL = 3_000
FALLBACK = 3_999
CONTEXT_ELEMENTS = 10
ACTION_ELEMENTS = 25

_CHOICE_TYPES = {"radio_buttons", "checkboxes"}
_IN_ACTIONS = {"button", "static_select", "overflow", "datepicker", *_CHOICE_TYPES}
_IN_INPUT = {"plain_text_input", "static_select", *_CHOICE_TYPES}
_RICH = {"rich_text_section", "rich_text_preformatted"}

# Room for a line on top of a message that was not known when it was packed.
_RESERVED_BLOCKS = 2
_RESERVED_SIZE = 900


def block_size(block: Block) -> int:
    """Return what the block takes of the budget."""
    return length(json.dumps(block, ensure_ascii=False, separators=(",", ":"))) + 1


def violations(text: str, blocks: list[Block]) -> list[str]:
    """Return every reason for which Slack would refuse the message."""
    return [*_message(text, blocks), *(why for block in blocks for why in _block(block))]


def _message(text: str, blocks: list[Block]) -> Iterator[str]:
    yield from _text_between("the fallback text", text, FALLBACK)
    if not 0 < len(blocks) <= BLOCKS:
        yield f"{len(blocks)} blocks"
    if (total := sum(map(block_size, blocks))) > BUDGET:
        yield f"{total} characters in all blocks"
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(set(ids)) < len(ids):
        yield "a block_id is used twice"


def _block(block: Block) -> Iterator[str]:
    yield from _text_between("block_id", block.get("block_id", "-"), IDENTIFIER)
    match block["type"]:
        case "header":
            yield from _text_object("header", block["text"], HEADER, plain=True)
        case "section":
            yield from _text_object("section", block["text"], SECTION)
            if "accessory" in block:
                yield from _element(block["accessory"], {"button"})
        case "context":
            yield from _count("context elements", block["elements"], CONTEXT_ELEMENTS)
            for element in block["elements"]:
                yield from _text_object("context", element, SECTION)
        case "actions":
            yield from _actions(block)
        case "input":
            yield from _text_object("input label", block["label"], INPUT_LABEL, plain=True)
            yield from _element(block["element"], _IN_INPUT)
        case "rich_text":
            yield from _rich_text(block)
        case "divider":
            return
        case other:
            yield f"a block of the unknown type {other}"


def _actions(block: Block) -> Iterator[str]:
    yield from _count("actions elements", block["elements"], ACTION_ELEMENTS)
    ids = [element["action_id"] for element in block["elements"]]
    if len(set(ids)) < len(ids):
        yield "an action_id is used twice in its block"
    for element in block["elements"]:
        yield from _element(element, _IN_ACTIONS)


def _rich_text(block: Block) -> Iterator[str]:
    for part in block["elements"]:
        if part["type"] not in _RICH:
            yield f"a rich text part of the unknown type {part['type']}"
        for element in part["elements"]:
            yield from _text_between("rich text", element["text"], SECTION)


def _element(element: Block, allowed: set[str]) -> Iterator[str]:
    kind = element["type"]
    if kind not in allowed:
        yield f"{kind} is not allowed here"
    yield from _text_between("action_id", element["action_id"], IDENTIFIER)
    if "placeholder" in element:
        yield from _text_object("placeholder", element["placeholder"], PLACEHOLDER, plain=True)
    match kind:
        case "button":
            yield from _text_object("button", element["text"], BUTTON, plain=True)
            yield from _text_between("button value", element.get("value", "-"), BUTTON_VALUE)
            yield from _text_between("button url", element.get("url", "-"), URL)
            yield from _confirm(element.get("confirm"))
        case "plain_text_input":
            if not 0 < element.get("max_length", 1) <= INPUT:
                yield "max_length of an input"
        case "radio_buttons" | "checkboxes":
            yield from _options(element["options"], CHOICES)
        case "static_select":
            yield from _options(element["options"], SELECT)


def _confirm(asked: Block | None) -> Iterator[str]:
    if asked is None:
        return
    yield from _text_object("confirm title", asked["title"], CONFIRM_TITLE, plain=True)
    yield from _text_object("confirm text", asked["text"], CONFIRM)
    for name in ("confirm", "deny"):
        yield from _text_object(f"confirm {name}", asked[name], CONFIRM_BUTTON, plain=True)


def _options(options: list[Block], most: int) -> Iterator[str]:
    yield from _count("options", options, most)
    values = [option["value"] for option in options]
    if len(set(values)) < len(values):
        yield "an option value is used twice"
    for option in options:
        yield from _text_object("option", option["text"], OPTION)
        yield from _text_between("option value", option["value"], OPTION_VALUE)
        if "description" in option:
            yield from _text_object("option description", option["description"], OPTION)


def _count(what: str, found: list[Block], most: int) -> Iterator[str]:
    if not 0 < len(found) <= most:
        yield f"{len(found)} {what}"


def _text_object(what: str, obj: Block, most: int, *, plain: bool = False) -> Iterator[str]:
    if obj["type"] not in ({"plain_text"} if plain else {"plain_text", "mrkdwn"}):
        yield f"{what} as {obj['type']}"
    yield from _text_between(what, obj["text"], most)


def _text_between(what: str, text: str, most: int) -> Iterator[str]:
    if not text.strip():
        yield f"{what} is empty"
    if length(text) > most:
        yield f"{what} has {length(text)} of at most {most} characters"


class Role(StrEnum):
    """What becomes of a piece when the question is over: only what was asked stays."""

    FRAME = "frame"
    ASKED = "asked"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Piece:
    """Blocks that stay together."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One message of a card; `question` counts from 1 where it is about that one alone."""

    pieces: tuple[Piece, ...]
    question: int | None = None

    def blocks(self, *roles: Role) -> list[Block]:
        """Return the blocks of those roles, in order; of all roles without any."""
        wanted = roles or tuple(Role)
        return [block for piece in self.pieces if piece.role in wanted for block in piece.blocks]


def fits(pieces: Iterable[Piece]) -> bool:
    """True if the pieces can be one message, with room to spare."""
    sizes = [block_size(block) for piece in pieces for block in piece.blocks]
    return _have_room(sum(sizes), len(sizes))


def pack(pieces: Iterable[Piece], question: int | None = None) -> list[Page]:
    """Return the pieces on as few pages as it takes, in order."""
    pages: list[list[Piece]] = [[]]
    size = count = 0
    for piece in pieces:
        added = sum(map(block_size, piece.blocks))
        if pages[-1] and not _have_room(size + added, count + len(piece.blocks)):
            pages.append([])
            size = count = 0
        pages[-1].append(piece)
        size, count = size + added, count + len(piece.blocks)
    return [Page(tuple(page), question) for page in pages if page]


def _have_room(size: int, count: int) -> bool:
    small = size <= BUDGET - _RESERVED_SIZE
    return small and count <= BLOCKS - _RESERVED_BLOCKS
