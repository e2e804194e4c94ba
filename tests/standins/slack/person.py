"""A person in front of Slack: sees messages, presses, chooses, types and replies.

What is chosen and typed stays in the person's own client until something is pressed, and then
goes along with it whole, as Slack sends it.
"""

from __future__ import annotations

import copy
import re
import secrets
import time
from collections.abc import Callable

from tests.standins.slack.limits import Json
from tests.standins.slack.sockets import Delivery, Sockets
from tests.standins.slack.workspace import (
    APP,
    BOT,
    BOT_USER,
    TEAM,
    Ephemeral,
    Message,
    User,
    Workspace,
    text_of,
)

_MANY = {"checkboxes", "multi_static_select"}
_ONE = {"radio_buttons", "static_select"}
_ADDRESS = re.compile(
    r"(?P<url>https?://[^\s<>|]+)"
    r"|(?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})"
    r"|(?<![\w./@-])(?P<host>[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|example))(?![\w-])"
)


class NothingThere(LookupError):
    """The message shows no such control."""


class Person:
    """One user of the workspace with a client of their own."""

    def __init__(self, user: User, workspace: Workspace, sockets: Sockets) -> None:
        self.user = user
        self._workspace = workspace
        self._sockets = sockets
        self._values: dict[tuple[str, str, str, str], Json] = {}

    @property
    def told(self) -> list[Ephemeral]:
        """What only this person was told."""
        return [e for e in self._workspace.ephemerals if e.user == self.user.id]

    def press(self, message: Message | Ephemeral, button: str) -> Delivery:
        """Press the button with this text or action_id, or the one beside such a text."""
        block, element = _button(message, button)
        action = {"type": "button", "text": element["text"]}
        if "value" in element:
            action["value"] = element["value"]
        return self._act(message, block, element, action)

    def choose(self, message: Message, *labels: str, question: int | None = None) -> list[Delivery]:
        """Tick these options. Where they stand in several controls, `question` counts from 0."""
        return [self._choose(message, label, question) for label in labels]

    def type(
        self, message: Message, text: str, *, number: int = 0, enter: bool = False
    ) -> Delivery | None:
        """Fill in the text input of that number; enter sends it where the input says so."""
        inputs = [pair for pair in message.elements if pair[1]["type"] == "plain_text_input"]
        if number >= len(inputs):
            raise NothingThere(f"there is no text input {number}")
        block, element = inputs[number]
        self._values[self._place(message, block, element)] = {"value": text or None}
        config = element.get("dispatch_action_config", {})
        triggers = config.get("trigger_actions_on", ["on_enter_pressed"])
        if not enter or not block.get("dispatch_action") or "on_enter_pressed" not in triggers:
            return None
        action = {"type": "plain_text_input", "value": text}
        return self._act(message, block, element, action)

    def reply(self, message: Message, text: str) -> Delivery:
        """Write into the message's thread."""
        return self.say(message.channel, text, thread_ts=message.thread_ts or message.ts)

    def say(self, channel: str, text: str, thread_ts: str | None = None) -> Delivery:
        """Write into a channel or thread; Slack escapes what was typed, and makes links of it."""
        written = Message(
            channel,
            self._workspace.new_ts(),
            self.user.id,
            as_sent(text),
            thread_ts=thread_ts,
            team=self.user.team,
        )
        self._workspace.post(written)
        return self._sockets.send("events_api", event_of(self._workspace, written, self.user))

    def _choose(self, message: Message, label: str, question: int | None) -> Delivery:
        block, element, option = _option(message, label, question)
        place = self._place(message, block, element)
        if element["type"] in _MANY:
            chosen = self._value(message, block, element)["selected_options"]
            chosen = [o for o in chosen if o != option] if option in chosen else [*chosen, option]
            value: Json = {"selected_options": chosen}
        else:
            value = {"selected_option": option}
        self._values[place] = value
        if block["type"] == "input" and not block.get("dispatch_action"):
            return Delivery({"envelope_id": "", "type": "none"})
        return self._act(message, block, element, {"type": element["type"], **value})

    def _act(
        self, message: Message | Ephemeral, block: Json, element: Json, action: Json
    ) -> Delivery:
        ids = {"action_id": element["action_id"], "block_id": block["block_id"]}
        stamp = {"action_ts": f"{time.time():.6f}"}
        payload = self._payload(message) | {"actions": [ids | action | stamp]}
        return self._sockets.send("interactive", payload, accepts_response=True)

    def _payload(self, message: Message | Ephemeral) -> Json:
        channel = self._workspace.channels[message.channel]
        container: Json = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": isinstance(message, Ephemeral),
        }
        if message.thread_ts:
            container["thread_ts"] = message.thread_ts
        name, team = self.user.name, self.user.team
        return {
            "type": "block_actions",
            "user": {"id": self.user.id, "username": name, "name": name}
            | ({"team_id": team} if team else {}),
            "api_app_id": APP,
            "token": "verification",
            "container": container,
            "trigger_id": f"{secrets.randbelow(10**12)}.{secrets.token_hex(8)}",
            "team": {"id": TEAM, "domain": "stand-in"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel.id, "name": channel.name or "directmessage"},
            "response_url": f"https://hooks.slack.com/actions/{TEAM}/{secrets.token_hex(8)}",
            **self._contents(message),
        }

    def _contents(self, message: Message | Ephemeral) -> Json:
        """Return what the message says and holds; of what only one person sees Slack sends none."""
        if isinstance(message, Ephemeral):
            return {}
        return {"message": message.to_json(), "state": {"values": self._state(message)}}

    def _state(self, message: Message) -> Json:
        state: dict[str, Json] = {}
        for block, element in message.elements:
            if element["type"] != "button":
                value = {"type": element["type"], **self._value(message, block, element)}
                state.setdefault(block["block_id"], {})[element["action_id"]] = value
        return state

    def _value(self, message: Message, block: Json, element: Json) -> Json:
        known = self._values.get(self._place(message, block, element))
        if known is not None:
            return copy.deepcopy(known)
        if element["type"] in _MANY:
            return {"selected_options": list(element.get("initial_options", ()))}
        if element["type"] in _ONE:
            return {"selected_option": element.get("initial_option")}
        return {"value": element.get("initial_value")}

    def _place(self, message: Message, block: Json, element: Json) -> tuple[str, str, str, str]:
        return (message.channel, message.ts, block["block_id"], element["action_id"])


def as_sent(text: str) -> str:
    """Return what Slack makes of a typed text: addresses and host names become links."""
    made, end = "", 0
    for found in _ADDRESS.finditer(text):
        typed = _escaped(found[0])
        scheme = "mailto:" if found["mail"] else "http://" if found["host"] else ""
        link = f"<{scheme}{typed}|{typed}>" if scheme else f"<{typed}>"
        made, end = made + _escaped(text[end : found.start()]) + link, found.end()
    return made + _escaped(text[end:])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def event_of(workspace: Workspace, message: Message, user: User | None = None) -> Json:
    """Return the events_api payload for a message, of a person or of the bot itself."""
    channel = workspace.channels[message.channel]
    kinds = {"channels": "channel", "groups": "group", "im": "im"}
    event = message.to_json() | {
        "channel": channel.id,
        "channel_type": kinds[channel.kind],
        "event_ts": message.ts,
    }
    if user is not None:
        event["client_msg_id"] = secrets.token_hex(16)
    return enveloped(event)


def changed_event_of(workspace: Workspace, message: Message) -> Json:
    """Return the events_api payload for an update of the bot's message."""
    channel = workspace.channels[message.channel]
    ts = workspace.new_ts()
    event = {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "message": message.to_json(),
        "previous_message": message.versions[-1],
        "channel": channel.id,
        "ts": ts,
        "event_ts": ts,
        "channel_type": {"channels": "channel", "groups": "group", "im": "im"}[channel.kind],
    }
    return enveloped(event)


def enveloped(event: Json) -> Json:
    """Return the event as the Events API wraps it."""
    return {
        "token": "verification",
        "team_id": TEAM,
        "api_app_id": APP,
        "event": event,
        "type": "event_callback",
        "event_id": f"Ev{secrets.token_hex(5).upper()}",
        "event_time": int(time.time()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": TEAM,
                "user_id": BOT_USER,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": f"{BOT}-{secrets.token_hex(4)}",
    }


def _button(message: Message | Ephemeral, wanted: str) -> tuple[Json, Json]:
    buttons = [pair for pair in message.elements if pair[1]["type"] == "button"]
    ways: list[Callable[[Json, Json], bool]] = [
        lambda _, element: wanted in {element["action_id"], text_of(element["text"])},
        lambda block, _: _beside(block) == wanted,
        lambda block, _: _beside(block).startswith(wanted),
        lambda block, _: wanted in _beside(block),
    ]
    for fits in ways:
        for block, element in buttons:
            if fits(block, element):
                return block, element
    shown = [text_of(element["text"]) for _, element in buttons]
    raise NothingThere(f"no button {wanted!r} among {shown}")


def _beside(block: Json) -> str:
    return text_of(block["text"]) if block["type"] == "section" and "text" in block else ""


def _option(message: Message, label: str, question: int | None) -> tuple[Json, Json, Json]:
    """Return the first option with this text (or that begins so) among the controls."""
    controls = [pair for pair in message.elements if pair[1]["type"] in _MANY | _ONE]
    if question is not None:
        controls = [controls[question]]
    for exactly in (True, False):
        for block, element in controls:
            for option in element["options"]:
                shown = text_of(option["text"])
                if shown == label or (not exactly and label in shown):
                    return block, element, option
    raise NothingThere(f"no option {label!r}")
