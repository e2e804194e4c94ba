"""Each of Slack's limits is noticed before Slack does."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.slack.cards import BROWSERS, CARD, REQUEST, YES_NO

from pynchy.channels.slack import limits
from pynchy.channels.slack.render import render

Block = dict[str, Any]
PLAIN = {"type": "plain_text", "text": "x"}


def button(**more: Any) -> Block:
    return {"type": "button", "action_id": "a", "text": PLAIN, "value": "v", **more}


def plain(length: int) -> Block:
    return {"type": "plain_text", "text": "x" * length}


def section(**more: Any) -> Block:
    return {"type": "section", "text": PLAIN, **more}


def entry(**more: Any) -> Block:
    element = {"type": "plain_text_input", "action_id": "a", **more}
    return {"type": "input", "label": PLAIN, "element": element}


def ticks(count: int, kind: str = "checkboxes", **more: Any) -> Block:
    options = [{"text": PLAIN, "value": f"o{n}", **more} for n in range(count)]
    return entry(type=kind, options=options)


def actions(*elements: Block) -> Block:
    return {"type": "actions", "elements": list(elements)}


def context(*elements: Block) -> Block:
    return {"type": "context", "elements": list(elements)}


def rich(text: str, kind: str = "rich_text_preformatted") -> Block:
    part = {"type": kind, "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [part]}


TOO_MUCH: dict[str, list[Block]] = {
    "no blocks": [],
    "51 blocks": [{"type": "divider"}] * 51,
    "12,000 characters": [section(text=plain(3_000))] * 4,
    "block_id": [section(block_id="b" * 256)],
    "block_id twice": [section(block_id="b")] * 2,
    "unknown block": [{"type": "video"}],
    "header": [{"type": "header", "text": plain(151)}],
    "header as mrkdwn": [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
    "section": [section(text=plain(3_001))],
    "empty section": [section(text=plain(0))],
    "blank section": [section(text={"type": "plain_text", "text": " \n"})],
    "section with an input": [section(accessory={"type": "plain_text_input", "action_id": "a"})],
    "context": [context(*[PLAIN] * 11)],
    "empty context": [context()],
    "actions": [actions(*[button(action_id=f"a{n}") for n in range(26)])],
    "action_id twice": [actions(button(), button())],
    "input in actions": [actions({"type": "plain_text_input", "action_id": "a"})],
    "many selects in actions": [actions({"type": "multi_static_select", "action_id": "a"})],
    "action_id": [actions(button(action_id="a" * 256))],
    "button text": [actions(button(text=plain(76)))],
    "button value": [actions(button(value="v" * 2_001))],
    "button url": [actions(button(url="u" * 3_001))],
    "button in an input": [entry(type="button", text=PLAIN)],
    "input label": [entry() | {"label": plain(2_001)}],
    "max_length": [entry(max_length=3_001)],
    "placeholder": [entry(placeholder=plain(151))],
    "11 boxes": [ticks(11)],
    "11 radio buttons": [ticks(11, "radio_buttons")],
    "101 to select": [ticks(101, "static_select")],
    "no options": [ticks(0)],
    "option text": [ticks(1, text=plain(76))],
    "option description": [ticks(1, description=plain(76))],
    "option value": [ticks(1, value="v" * 76)],
    "option value twice": [ticks(2, value="v")],
    "rich text": [rich("x" * 3_001)],
    "unknown rich text": [rich("x", "rich_text_video")],
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_slack_refuses_is_noticed(name: str) -> None:
    assert limits.violations("text", TOO_MUCH[name])


@pytest.mark.parametrize("text", ["", "  ", "x" * 4_000, "🦀" * 2_000])
def test_a_notification_is_neither_empty_nor_too_long(text: str) -> None:
    assert limits.violations(text, [section()])


def test_what_is_allowed_passes() -> None:
    good = [
        section(text=plain(3_000)),
        {"type": "header", "text": plain(150)},
        ticks(10, description=plain(75)),
        ticks(100, "static_select"),
        actions(*[button(action_id=f"a{n}") for n in range(25)]),
        context(*[PLAIN] * 10),
        rich("x"),
    ]

    for block in good:
        assert limits.violations("text", [block]) == []


@pytest.mark.parametrize("lengthen", [lambda text: text + "x" * 3_000, lambda _: ""])
def test_no_text_of_a_card_goes_unchecked(lengthen: Callable[[str], str]) -> None:
    for questions in ((YES_NO,), (YES_NO, BROWSERS)):
        blocks = render(REQUEST, questions, CARD).messages[0].blocks
        for number in range(len(blocks)):
            for path in _texts(blocks[number]):
                changed = copy.deepcopy(blocks)
                *way, last = path
                location: Any = changed[number]
                for step in way:
                    location = location[step]
                location[last] = lengthen(location[last])
                assert limits.violations("text", changed), path


def _texts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to each text that a person sees."""
    match value:
        case {"text": str()}:
            return [(*path, "text")]
        case dict():
            return [way for key, part in value.items() for way in _texts(part, (*path, key))]
        case list():
            return [way for n, part in enumerate(value) for way in _texts(part, (*path, n))]
        case _:
            return []
