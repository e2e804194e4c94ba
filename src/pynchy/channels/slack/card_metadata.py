"""What each message of a card says of it, unseen: Slack keeps it with the message (metadata).

That is how a card is found again that no record names: one whose posting got no reply, or one of
an earlier host.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from pynchy.channels.slack.payloads import Payload, dict_in, is_ts
from pynchy.model import Card, GroupName, RequestId, SessionId, ShortId

METADATA_EVENT = "pynchy_question"
# The numbers of messages in the thread, which show nothing that can be answered, begin here.
DETAILS = 1_000
_NAMES = ("request_id", "group", "chat", "short_id", "session")


@dataclass(slots=True)
class Identity:
    """Who we are in Slack; nothing is known before the token was checked."""

    team_id: str = ""
    bot_user_id: str = ""
    bot_id: str = ""

    @property
    def is_known(self) -> bool:
        """True once the token was checked."""
        return bool(self.team_id and self.bot_user_id)

    def wrote(self, message: Payload) -> bool:
        """True for a message of our own; other apps could put the same marks on theirs."""
        by_user = bool(self.bot_user_id) and message.get("user") == self.bot_user_id
        return by_user or (bool(self.bot_id) and message.get("bot_id") == self.bot_id)


@dataclass(frozen=True, slots=True)
class CardMetadata:
    """Which card a message belongs to, and as which part; `session` is a digest of its id."""

    request_id: RequestId
    group: GroupName
    chat: str
    short_id: ShortId
    session: str
    part: int

    def metadata(self) -> dict[str, Any]:
        """Return the mark as it is posted."""
        return {"event_type": METADATA_EVENT, "event_payload": asdict(self)}


@dataclass(frozen=True, slots=True)
class TaggedMessage:
    """A message of ours; `thread` is the one that it was posted into."""

    mark: CardMetadata
    ts: str
    thread: str | None = None

    @property
    def is_card(self) -> bool:
        """True if there is, or was, something to click in it."""
        return self.mark.part < DETAILS


def make_metadata(jid: str, request_id: RequestId, card: Card, part: int) -> CardMetadata:
    """Return the mark of a card's message."""
    session = digest(card.session_id)
    return CardMetadata(request_id, card.group, jid, card.short_id, session, part)


def digest(session_id: SessionId) -> str:
    """Return what tells the session from others; Slack need not know the id itself."""
    return hashlib.sha256(session_id.encode()).hexdigest()[:16] if session_id else ""


def read_tagged(message: Payload, identity: Identity) -> TaggedMessage | None:
    """Return the message with its mark; None if it has none, or is not ours."""
    metadata = dict_in(message, "metadata")
    payload = dict_in(metadata, "event_payload")
    ts, thread, part = message.get("ts"), message.get("thread_ts"), payload.get("part")
    said: dict[str, Any] = {name: payload.get(name) for name in _NAMES}
    if metadata.get("event_type") != METADATA_EVENT or not identity.wrote(message):
        return None
    if not (
        is_ts(ts) and isinstance(part, int) and all(isinstance(text, str) for text in said.values())
    ):
        return None
    mark = CardMetadata(**said, part=part)
    return TaggedMessage(mark, str(ts), str(thread) if is_ts(thread) and thread != ts else None)
