"""What a person did in a chat, as the child tells it to the host, and as it lies on the queue.

It is read as carefully as what a stranger sends: what does not fit is nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Self

MAX_TEXT = 70_000
# In the year 2096: no clock that stamps messages is right after that.
LAST = 4_000_000_000.0
_MAX_NAME = 200
_MAX_FORMS = 4
_MAX_PARTS = 20


class What(StrEnum):
    """What it was."""

    TEXT = "text"
    REACTION = "reaction"


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message or a reaction; `about` is the id of what it quotes, or of what was reacted to.

    `quoted` is the text that it quotes, `quoted_by` whose that was, in the words of its sender.

    `chats` and `senders` are the same chat and person in every form that is known of them. It is
    not `whole` while a form may still be found; until then nobody judges it.

    `taken_for` is the request that it was read as an answer to, and `taken_as` the questions of it:
    whoever judges it again after a crash must not take it for the next question.
    """

    message_id: str
    chats: tuple[str, ...]
    senders: tuple[str, ...]
    at: float
    text: str
    what: What = What.TEXT
    about: str = ""
    quoted: str = ""
    quoted_by: str = ""
    name: str = ""
    from_me: bool = False
    is_group: bool = False
    whole: bool = True
    taken_for: str = ""
    taken_as: tuple[int, ...] = ()

    def bounded(self) -> Self:
        """Return it with no text longer than the queue takes; a stranger chose their lengths."""
        return replace(
            self,
            message_id=self.message_id[:_MAX_NAME],
            text=self.text[:MAX_TEXT],
            about=self.about[:_MAX_NAME],
            quoted=self.quoted[:MAX_TEXT],
            quoted_by=self.quoted_by[:_MAX_NAME],
            name=self.name[:_MAX_NAME],
            taken_for=self.taken_for[:_MAX_NAME],
        )

    def to_json(self) -> bytes:
        """Return it for the queue."""
        return json.dumps(asdict(self)).encode()


def read_message(content: bytes) -> InboundMessage | None:
    """Return what lies on the queue; None if it is damaged."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return _from_body(body) if isinstance(body, dict) else None


def _from_body(body: Mapping[str, object]) -> InboundMessage | None:
    chats, senders = _forms(body.get("chats")), _forms(body.get("senders"))
    message_id, at = body.get("message_id"), body.get("at")
    text, what = body.get("text"), body.get("what")
    if not (isinstance(message_id, str) and message_id and isinstance(text, str)):
        return None
    if not (chats and senders and isinstance(at, int | float) and what in set(What)):
        return None
    if not 0 <= at <= LAST:
        return None
    said = InboundMessage(
        message_id,
        chats,
        senders,
        float(at),
        text,
        What(str(what)),
        str(body.get("about") or ""),
        str(body.get("quoted") or ""),
        str(body.get("quoted_by") or ""),
        str(body.get("name") or ""),
        body.get("from_me") is True,
        body.get("is_group") is True,
        body.get("whole") is not False,
        str(body.get("taken_for") or ""),
        _numbers(body.get("taken_as")),
    )
    return said.bounded()


def _forms(written: object) -> tuple[str, ...]:
    if not isinstance(written, list):
        return ()
    return tuple(form for form in written[:_MAX_FORMS] if isinstance(form, str) and form)


def _numbers(written: object) -> tuple[int, ...]:
    if not isinstance(written, list):
        return ()
    return tuple(number for number in written[:_MAX_PARTS] if isinstance(number, int))
