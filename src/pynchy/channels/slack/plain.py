"""A message in plain words, for when Slack would refuse it as it is.

What can be read stays, in order, with its numbers; it is answered in the thread.
"""

from __future__ import annotations

from collections.abc import Iterator

from pynchy.channels.slack import blocks, limits
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.pages import Piece, Role, pack
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.text import chunks

_HOW = "This card could not be shown with buttons: please reply in the thread."


def in_plain_words(message: SlackMessage) -> SlackMessage:
    """Return what the message says, within Slack's limits."""
    told = "\n".join(text for block in message.blocks for text in _texts(block))
    sections = [blocks.section(part) for part in chunks(told, limits.SECTION)]
    how = [blocks.context(_HOW)] if any(map(_is_control, message.blocks)) else []
    first, *_ = pack(Piece(Role.ASKED, (block,)) for block in [*how, *sections])
    return SlackMessage(blocks.fallback(message.text), first.blocks(), message.question)


def _is_control(block: Block) -> bool:
    return block.get("type") in {"actions", "input"} or "accessory" in block


def _texts(value: object) -> Iterator[str]:
    """Yield the texts within a block, in order; a button's own words are no part of it."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    if not isinstance(value, dict) or value.get("type") in {"button", "plain_text_input"}:
        return
    if isinstance(text := value.get("text"), str):
        yield text
        return
    for name, item in value.items():
        if name != "placeholder":
            yield from _texts(item)
