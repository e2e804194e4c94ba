"""What is written into a card and its id, so that a restarted host finds the question again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pynchy.model import RequestId

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


def block_id(request_id: RequestId, name: str) -> str:
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
