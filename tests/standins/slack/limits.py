"""What Slack refuses in a message: sizes, counts, shapes, and which element may stand where.

Stricter than Slack where its rules are not published: what passes here should pass there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]

MAX_TEXT = 4_000
MAX_BLOCKS = 50
# Slack's own limit is unpublished: reports put it near 13.2k characters, containers included.
MAX_BLOCKS_CHARACTERS = 13_200
MAX_METADATA_CHARACTERS = 8_000
MAX_ID = 255
MAX_ACTIONS = 25
MAX_CONTEXT = 10
MAX_FIELDS = 10
MAX_TICKS = 10
MAX_SELECT = 100
MAX_BUTTON_TEXT = 75
MAX_OPTION = 75
MAX_HEADER = 150
MAX_PLACEHOLDER = 150
MAX_SECTION = 3_000
MAX_FIELD = 2_000
MAX_VALUE = 2_000
MAX_INPUT = 3_000
MAX_URL = 3_000

SELECTS = {"static_select", "multi_static_select"}
TICKS = {"radio_buttons", "checkboxes"}
IN_SECTION = {"button", "image", *SELECTS, *TICKS}
IN_ACTIONS = {"button", "static_select", *TICKS}
IN_INPUT = {"plain_text_input", *SELECTS, *TICKS}

_MAX_OPTIONS = dict.fromkeys(SELECTS, MAX_SELECT) | dict.fromkeys(TICKS, MAX_TICKS)


class Refusal(Exception):
    """Slack does not take it: the error's name, and in words what is wrong."""

    def __init__(self, error: str, *messages: str) -> None:
        super().__init__(f"{error}: {'; '.join(messages)}" if messages else error)
        self.error = error
        self.messages = messages


def check_text(text: object) -> str:
    """Return the message's fallback text. Raise Refusal if it is none or too long."""
    if text is None:
        return ""
    if not isinstance(text, str):
        raise Refusal("invalid_arguments", "text is not a string")
    if len(text) > MAX_TEXT:
        raise Refusal("msg_too_long", f"text has {len(text)} characters, more than {MAX_TEXT}")
    return text


def check_metadata(metadata: object) -> Json | None:
    """Return the message's metadata, None for none. Raise Refusal if its shape is wrong."""
    if metadata is None or metadata == {}:
        return None
    if not isinstance(metadata, dict) or set(metadata) - {"event_type", "event_payload"}:
        raise Refusal("invalid_metadata_format", "event_type and event_payload, and nothing else")
    kind, payload = metadata.get("event_type"), metadata.get("event_payload")
    if not isinstance(kind, str) or not 0 < len(kind) <= MAX_ID:
        raise Refusal("invalid_metadata_format", "event_type is not a short string")
    if not isinstance(payload, dict):
        raise Refusal("invalid_metadata_format", "event_payload is not an object")
    if len(_compact(metadata)) > MAX_METADATA_CHARACTERS:
        raise Refusal("metadata_too_large")
    return metadata


def check_blocks(blocks: object) -> list[Json]:
    """Return the blocks. Raise Refusal with everything that is wrong with them."""
    if not isinstance(blocks, list):
        raise Refusal("invalid_blocks_format", "blocks is not a list")
    found = list(_wrong_in_message(blocks))
    if found:
        raise Refusal("invalid_blocks", *found)
    size = len(_compact(blocks))
    if size > MAX_BLOCKS_CHARACTERS:
        raise Refusal("msg_blocks_too_long", f"{size} characters in all blocks")
    return blocks


def elements_of(block: Json) -> list[Json]:
    """Return the interactive elements of a block."""
    match block.get("type"):
        case "section":
            found = [block["accessory"]] if "accessory" in block else []
        case "actions":
            found = list(block["elements"])
        case "input":
            found = [block["element"]]
        case _:
            found = []
    return [element for element in found if element.get("type") != "image"]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _wrong_in_message(blocks: list[Any]) -> Iterator[str]:
    if len(blocks) > MAX_BLOCKS:
        yield f"no more than {MAX_BLOCKS} items allowed [json-pointer:/blocks]"
    seen: set[str] = set()
    for number, block in enumerate(blocks):
        at = f"/blocks/{number}"
        if not isinstance(block, dict):
            yield f"not an object [json-pointer:{at}]"
            continue
        yield from (f"{wrong} [json-pointer:{at}]" for wrong in _wrong_in_block(block))
        if (name := block.get("block_id")) is not None:
            if name in seen:
                yield f"block_id {name!r} is used twice [json-pointer:{at}]"
            seen.add(name)


def _wrong_in_block(block: Json) -> Iterator[str]:
    check = _BLOCKS.get(block.get("type", ""))
    if check is None:
        yield f"unsupported type: {block.get('type')!r}"
        return
    yield from _id(block, "block_id")
    yield from check(block)


def _section(block: Json) -> Iterator[str]:
    yield from _keys(block, "text", "fields", "accessory", "expand")
    if "text" not in block and "fields" not in block:
        yield "a section needs text or fields"
    if "text" in block:
        yield from _text(block["text"], MAX_SECTION)
    if "fields" in block:
        yield from _count(block["fields"], MAX_FIELDS, "fields")
        for field in block["fields"]:
            yield from _text(field, MAX_FIELD)
    if "accessory" in block:
        yield from _element(block["accessory"], IN_SECTION, "section")


def _header(block: Json) -> Iterator[str]:
    yield from _keys(block, "text", "level")
    yield from _text(block.get("text"), MAX_HEADER, plain=True)


def _context(block: Json) -> Iterator[str]:
    yield from _keys(block, "elements")
    yield from _count(block.get("elements"), MAX_CONTEXT, "elements")
    for element in block.get("elements") or ():
        if element.get("type") != "image":
            yield from _text(element, MAX_SECTION)


def _actions(block: Json) -> Iterator[str]:
    yield from _keys(block, "elements")
    elements = block.get("elements") or ()
    yield from _count(elements, MAX_ACTIONS, "elements")
    ids = [e.get("action_id") for e in elements if e.get("action_id") is not None]
    if len(set(ids)) < len(ids):
        yield "action_id is not unique in its block"
    for element in elements:
        yield from _element(element, IN_ACTIONS, "actions")


def _input(block: Json) -> Iterator[str]:
    yield from _keys(block, "label", "element", "dispatch_action", "hint", "optional")
    yield from _text(block.get("label"), MAX_FIELD, plain=True)
    if "hint" in block:
        yield from _text(block["hint"], MAX_FIELD, plain=True)
    yield from _booleans(block, "dispatch_action", "optional")
    yield from _element(block.get("element"), IN_INPUT, "input")


def _divider(block: Json) -> Iterator[str]:
    yield from _keys(block)


def _markdown(block: Json) -> Iterator[str]:
    yield from _keys(block, "text")
    if not isinstance(block.get("text"), str) or not 0 < len(block["text"]) <= 12_000:
        yield "text is not a string of 1 to 12000 characters"


def _rich_text(block: Json) -> Iterator[str]:
    yield from _keys(block, "elements")
    yield from _count(block.get("elements"), MAX_BLOCKS, "elements")
    for element in block.get("elements") or ():
        if element.get("type") not in _RICH:
            yield f"unsupported rich text: {element.get('type')!r}"
        for part in element.get("elements", ()):
            if part.get("type") == "text":
                yield from _string(part.get("text"), MAX_SECTION, "rich text")


def _image(block: Json) -> Iterator[str]:
    yield from _keys(block, "image_url", "alt_text", "title", "slack_file")


_RICH = {"rich_text_section", "rich_text_preformatted", "rich_text_quote", "rich_text_list"}
_BLOCKS: dict[str, Callable[[Json], Iterator[str]]] = {
    "section": _section,
    "header": _header,
    "context": _context,
    "actions": _actions,
    "input": _input,
    "divider": _divider,
    "markdown": _markdown,
    "rich_text": _rich_text,
    "image": _image,
}


def _element(element: object, allowed: set[str], where: str) -> Iterator[str]:
    if not isinstance(element, dict):
        yield f"an element of {where} is missing"
        return
    kind = element.get("type")
    if kind not in allowed:
        yield f"unsupported element in {where}: {kind!r}"
        return
    if kind == "image":
        return
    yield from _id(element, "action_id")
    if kind == "button":
        yield from _button(element)
    elif kind == "plain_text_input":
        yield from _plain_text_input(element)
    else:
        yield from _choices(element)
    if "placeholder" in element:
        yield from _text(element["placeholder"], MAX_PLACEHOLDER, plain=True)


def _button(element: Json) -> Iterator[str]:
    allowed = ("action_id", "text", "value", "url", "style", "confirm", "accessibility_label")
    yield from _keys(element, *allowed)
    yield from _text(element.get("text"), MAX_BUTTON_TEXT, plain=True)
    if "value" in element:
        yield from _string(element["value"], MAX_VALUE, "value")
    if "url" in element:
        yield from _string(element["url"], MAX_URL, "url")
        if not str(element["url"]).startswith(("http://", "https://")):
            yield "url is not an address"
    if element.get("style", "primary") not in {"primary", "danger"}:
        yield "style is neither primary nor danger"
    if "accessibility_label" in element:
        yield from _string(element["accessibility_label"], MAX_BUTTON_TEXT, "accessibility_label")


def _plain_text_input(element: Json) -> Iterator[str]:
    allowed = ("initial_value", "multiline", "min_length", "max_length", "focus_on_load")
    yield from _keys(element, "action_id", "placeholder", "dispatch_action_config", *allowed)
    yield from _booleans(element, "multiline", "focus_on_load")
    for name, least in (("min_length", 0), ("max_length", 1)):
        if name in element and not least <= element[name] <= MAX_INPUT:
            yield f"{name} is not from {least} to {MAX_INPUT}"
    config = element.get("dispatch_action_config", {})
    triggers = set(config.get("trigger_actions_on", ["on_enter_pressed"]))
    if not triggers or triggers - {"on_enter_pressed", "on_character_entered"}:
        yield "trigger_actions_on names no known trigger"


def _choices(element: Json) -> Iterator[str]:
    kind = element["type"]
    own = {
        "radio_buttons": ("initial_option",),
        "checkboxes": ("initial_options",),
        "static_select": ("initial_option", "placeholder"),
        "multi_static_select": ("initial_options", "placeholder", "max_selected_items"),
    }[kind]
    yield from _keys(element, "action_id", "options", "confirm", "focus_on_load", *own)
    options = element.get("options") or []
    yield from _count(options, _MAX_OPTIONS[kind], "options")
    for option in options:
        yield from _option(option, plain=kind in SELECTS)
    values = [option.get("value") for option in options]
    if len(set(values)) < len(values):
        yield "two options have the same value"
    initial = [element["initial_option"]] if "initial_option" in element else []
    if any(one not in options for one in [*initial, *element.get("initial_options", ())]):
        yield "an initial option is none of the options"


def _option(option: Json, *, plain: bool) -> Iterator[str]:
    yield from _keys(option, "text", "value", "description", "url", without_type=True)
    yield from _text(option.get("text"), MAX_OPTION, plain=plain)
    yield from _string(option.get("value"), MAX_OPTION, "value")
    if "description" in option:
        yield from _text(option["description"], MAX_OPTION, plain=plain)


def _text(text: object, most: int, *, plain: bool = False) -> Iterator[str]:
    if not isinstance(text, dict):
        yield "a text object is missing"
        return
    kind = text.get("type")
    if kind not in ({"plain_text"} if plain else {"plain_text", "mrkdwn"}):
        yield f"unsupported text: {kind!r}"
        return
    yield from _keys(text, "text", "emoji" if kind == "plain_text" else "verbatim")
    yield from _booleans(text, "emoji", "verbatim")
    yield from _string(text.get("text"), most, "text")


def _string(value: object, most: int, name: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{name} is not a string"
    elif not value.strip():
        yield f"{name}: must be more than 0 characters"
    elif len(value) > most:
        yield f"{name}: must be less than {most + 1} characters, has {len(value)}"


def _id(holder: Json, name: str) -> Iterator[str]:
    if name in holder:
        yield from _string(holder[name], MAX_ID, name)


def _count(items: object, most: int, name: str) -> Iterator[str]:
    if not isinstance(items, list) or not items:
        yield f"{name}: no fewer than 1 item allowed"
    elif len(items) > most:
        yield f"{name}: no more than {most} items allowed, there are {len(items)}"


def _booleans(holder: Json, *names: str) -> Iterator[str]:
    for name in names:
        if name in holder and not isinstance(holder[name], bool):
            yield f"{name} is not a boolean"


def _keys(holder: Json, *allowed: str, without_type: bool = False) -> Iterator[str]:
    always = () if without_type else ("type", "block_id")
    for name in sorted(set(holder) - {*allowed, *always}):
        yield f"invalid additional property: {name}"
