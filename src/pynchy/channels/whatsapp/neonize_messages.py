"""From neonize's messages to what a person said; the child alone uses it.

What is no answer is nothing: status updates, edits, deletions, stickers, media without a caption.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from neonize.proto.Neonize_pb2 import JID
from neonize.proto.Neonize_pb2 import Message as MessageEv
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message
from neonize.utils.jid import Jid2String, JIDToNonAD

from pynchy.channels.whatsapp.addresses import normal
from pynchy.channels.whatsapp.inbound_message import LAST, InboundMessage, What

# Messages may be wrapped in one another: disappearing ones, those from one's other devices.
_WRAPPERS = (
    "ephemeralMessage",
    "deviceSentMessage",
    "viewOnceMessage",
    "viewOnceMessageV2",
    "documentWithCaptionMessage",
    "groupMentionedMessage",
)
_CAPTIONED = ("imageMessage", "videoMessage", "documentMessage")
_MAX_DEPTH = 6
# Neonize gives milliseconds; a number this small would be seconds.
_MAX_SECONDS = 100_000_000_000


def read_event(event: MessageEv) -> InboundMessage | None:
    """Return what was said; None if it is nothing that could be an answer."""
    info = event.Info
    source = info.MessageSource
    senders = forms(source.Sender, source.SenderAlt)
    chats = _chats(source)
    if not senders or not chats or not info.ID or event.IsEdit or info.Edit:
        return None
    said = InboundMessage(
        message_id=info.ID,
        chats=chats,
        senders=senders,
        at=seconds(info.Timestamp),
        text="",
        name=info.Pushname,
        from_me=source.IsFromMe,
        is_group=source.IsGroup,
    )
    content = _with_content(said, _unwrapped(event.Message))
    return content.bounded() if content else None


def forms(*jids: JID) -> tuple[str, ...]:
    """Return the addresses without their devices, each once; those of other kinds are left out."""
    return tuple(dict.fromkeys(filter(None, (normal(Jid2String(JIDToNonAD(j))) for j in jids))))


def _chats(source: Any) -> tuple[str, ...]:  # noqa: ANN401 - a protobuf of many versions
    chat = forms(source.Chat)
    if source.IsGroup or not chat:
        # What is said to everybody, a status or a broadcast, is said in no chat.
        return chat
    # In a direct chat the other person is the chat, and is known under two addresses.
    return forms(source.Chat, source.RecipientAlt if source.IsFromMe else source.SenderAlt)


def _unwrapped(message: Message) -> Message:
    for _ in range(_MAX_DEPTH):
        inner = next((w for w in _WRAPPERS if message.HasField(w)), None)
        if inner is None:
            break
        message = getattr(message, inner).message
    return message


def _with_content(said: InboundMessage, message: Message) -> InboundMessage | None:
    if message.HasField("reactionMessage"):
        reaction = message.reactionMessage
        # One without a text takes an earlier reaction back.
        made = replace(said, what=What.REACTION, text=reaction.text, about=reaction.key.ID)
        return made if reaction.text else None
    for text, context in _texts(message):
        if text.strip():
            return _quoting(replace(said, text=text), context)
    return None


def _quoting(said: InboundMessage, context: Any) -> InboundMessage:  # noqa: ANN401 - a protobuf, or nothing
    if context is None or not context.stanzaID:
        return said
    quoted = next((text for text, _ in _texts(context.quotedMessage) if text), "")
    return replace(
        said,
        about=context.stanzaID,
        quoted=quoted,
        quoted_by=normal(context.participant),
    )


def _texts(message: Message) -> Iterator[tuple[str, Any]]:
    yield message.conversation, None
    if message.HasField("extendedTextMessage"):
        yield message.extendedTextMessage.text, message.extendedTextMessage.contextInfo
    for name in _CAPTIONED:
        if message.HasField(name):
            media = getattr(message, name)
            yield media.caption, media.contextInfo


def seconds(timestamp: int) -> float:
    """Return a moment of the library in seconds."""
    moment = timestamp / 1000 if timestamp > _MAX_SECONDS else float(timestamp)
    return min(max(moment, 0.0), LAST)
