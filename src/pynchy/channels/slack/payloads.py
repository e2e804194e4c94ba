"""What Slack tells of clicks and replies, read with care: nearly every field may be missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pynchy.channels.slack import blocks
from pynchy.channels.slack.blocks import as_typed

Payload = dict[str, Any]

# A reply that is also sent to the channel, and one with a file, are replies; an edit is not.
_SPOKEN = ("thread_broadcast", "file_share")
_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}\Z")
_OPTION = re.compile(r"o([0-9]{1,4})\Z")


@dataclass(frozen=True, slots=True)
class SlackUser:
    """Who did it. `teams` are the workspaces that Slack names for the person, if it does."""

    user_id: str
    teams: frozenset[str]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Click:
    """One action on a card, with everything that the card's fields held at that moment."""

    person: SlackUser
    channel: str
    ts: str
    thread: str | None
    action_id: str
    block_id: str
    value: str
    happened: str
    state: tuple[tuple[str, Payload], ...]

    def ticked(self, number: int) -> tuple[int, ...]:
        """Return the options that are ticked for the question, by index."""
        found: list[int] = []
        for action_id, field in self.state:
            if action_id.startswith(f"{blocks.CHOICE}:{number}:"):
                found += _indices(field)
        return tuple(found)

    def written(self, number: int) -> str | None:
        """Return what is in the question's field for words; None if it is empty."""
        for action_id, field in self.state:
            if action_id == f"{blocks.OTHER}:{number}":
                text = field.get("value")
                return text.strip() or None if isinstance(text, str) else None
        return None


@dataclass(frozen=True, slots=True)
class ThreadReply:
    """A reply in a thread."""

    person: SlackUser
    channel: str
    ts: str
    thread: str
    text: str
    seen_by: frozenset[str] = frozenset()
    # Who wrote the message that the thread is about.
    parent: str = ""


def read_click(payload: Payload) -> Click | None:
    """Return the click; None if there is no telling what it was on."""
    action = next(iter(_dicts(payload.get("actions"))), {})
    container, user = _dict(payload.get("container")), _dict(payload.get("user"))
    message = _dict(payload.get("message"))
    channel = container.get("channel_id") or _dict(payload.get("channel")).get("id")
    ts = container.get("message_ts") or message.get("ts")
    if not (channel and is_ts(ts) and user.get("id") and action.get("action_id")):
        return None
    thread = container.get("thread_ts") or message.get("thread_ts")
    person = SlackUser(
        str(user["id"]),
        _teams(user.get("team_id")),
        str(user.get("name") or ""),
    )
    return Click(
        person,
        str(channel),
        str(ts),
        str(thread) if is_ts(thread) else None,
        str(action["action_id"]),
        str(action.get("block_id") or ""),
        str(action.get("value") or ""),
        str(action.get("action_ts") or ""),
        tuple(_state(payload)),
    )


def read_thread_reply(event: Payload) -> ThreadReply | None:
    """Return the reply; None for anything that is no person's reply in a thread."""
    thread, ts, subtype = event.get("thread_ts"), event.get("ts"), event.get("subtype")
    if event.get("bot_id") or not (subtype is None or subtype in _SPOKEN) or thread == ts:
        return None
    if not (is_ts(ts) and is_ts(thread) and event.get("user") and event.get("channel")):
        return None
    named = [event.get(name) for name in ("user_team", "source_team", "team")]
    teams = _teams(*named)
    reactions = [_list(reaction.get("users")) for reaction in _dicts(event.get("reactions"))]
    return ThreadReply(
        SlackUser(str(event["user"]), teams),
        str(event["channel"]),
        str(ts),
        str(thread),
        as_typed(str(event.get("text") or "")),
        frozenset(str(user) for users in reactions for user in users),
        str(event.get("parent_user_id") or ""),
    )


def _teams(*named: object) -> frozenset[str]:
    return frozenset(str(team) for team in named if team)


def _state(payload: Payload) -> Iterator[tuple[str, Payload]]:
    values = _dict(_dict(payload.get("state")).get("values"))
    for fields in values.values():
        for action_id, field in _dict(fields).items():
            yield action_id, _dict(field)


def _indices(field: Payload) -> Iterator[int]:
    chosen = _list(field.get("selected_options")) or [field.get("selected_option")]
    for option in _dicts(chosen):
        if found := _OPTION.match(str(option.get("value") or "")):
            yield int(found.group(1))


def is_ts(value: object) -> bool:
    """True for what can be the id of a message."""
    return isinstance(value, str) and bool(_TS.match(value))


def dict_in(payload: Payload, name: str) -> Payload:
    """Return the object of that name; an empty one if there is none."""
    return _dict(payload.get(name))


def dicts_in(payload: Payload, name: str) -> list[Payload]:
    """Return the objects in the list of that name, and nothing else of it."""
    return _dicts(payload.get(name))


def _dict(value: object) -> Payload:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: object) -> list[Payload]:
    return [each for each in _list(value) if isinstance(each, dict)]
