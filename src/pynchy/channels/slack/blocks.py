"""The parts of a card. Agent text goes into plain text alone, where nothing is interpreted."""

from __future__ import annotations

from datetime import datetime

from pynchy.channels.slack import ids, limits
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.text import clip, escape, one_line
from pynchy.model import RequestId


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


def button(label: str, action_id: str, value: str, style: str | None = None) -> Block:
    """Return a button."""
    made: Block = {
        "type": "button",
        "action_id": action_id,
        "text": plain(one_line(label, limits.BUTTON), limits.BUTTON),
        "value": value,
    }
    return made | ({"style": style} if style else {})


def link_button(url: str) -> Block:
    """Return a button that opens the question's page."""
    made = button("Open in the browser", ids.LINK, "link")
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
        "block_id": ids.block_id(request_id, name),
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
        "action_id": f"{ids.OTHER}:{question}",
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
    block_id = ids.block_id(request_id, name)
    return {"type": "actions", "block_id": block_id, "elements": list(elements)}


def fallback(text: str) -> str:
    """Return the text of a notification; one that is too long is cut before it is escaped."""
    return escape(one_line(text, limits.FALLBACK // 6))
