"""WhatsApp's events, as neonize's protobuf messages are written in JSON."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
PHONE, LID, GROUP = "s.whatsapp.net", "lid", "g.us"
_NOBODY = ""
_FLAGS = (
    "IsEphemeral",
    "IsViewOnce",
    "IsViewOnceV2",
    "IsViewOnceV2Extension",
    "IsDocumentWithCaption",
    "IsLottieSticker",
    "IsEdit",
)


def jid(address: str, device: int = 0) -> Json:
    """Return an address such as 49170…@s.whatsapp.net; empty for nobody."""
    user, _, server = address.partition("@")
    return {
        "User": user,
        "RawAgent": 0,
        "Device": device,
        "Integrator": 0,
        "Server": server,
        "IsEmpty": not address,
    }


@dataclass(frozen=True, slots=True)
class Source:
    """Who said something where; the `alt` addresses are the other form of the same people."""

    chat: str
    sender: str
    sender_alt: str = _NOBODY
    recipient_alt: str = _NOBODY
    device: int = 0
    from_me: bool = False

    def to_json(self) -> Json:
        """Return it as neonize's MessageSource."""
        return {
            "Chat": jid(self.chat),
            "Sender": jid(self.sender, self.device),
            "IsFromMe": self.from_me,
            "IsGroup": self.chat.endswith(GROUP),
            "SenderAlt": jid(self.sender_alt),
            "RecipientAlt": jid(self.recipient_alt),
            "BroadcastListOwner": jid(_NOBODY),
        }


def message(
    source: Source, message_id: str, content: Json, name: str = "", at: float | None = None
) -> Json:
    """Return the event of a message with this content, said now if not at another time."""
    info = {
        "MessageSource": source.to_json(),
        "ID": message_id,
        "ServerID": 0,
        "Type": "text",
        "Pushname": name,
        "Timestamp": int((time.time() if at is None else at) * 1000),
        "Category": "",
        "Multicast": False,
        "MediaType": "",
        "Edit": "",
    }
    event = {"Info": info, "Message": content, "UnavailableRequestID": "", "RetryCount": 0}
    return event | dict.fromkeys(_FLAGS, False)


def text(words: str, quote: str | None = None, quoted: str = "…", by: str = "") -> Json:
    """Return the content of a message; one that quotes is written in another way."""
    if quote is None:
        return {"conversation": words}
    context = {"stanzaID": quote, "quotedMessage": {"conversation": quoted}, "participant": by}
    return {"extendedTextMessage": {"text": words, "contextInfo": context}}


def wrapped(wrapper: str, content: Json) -> Json:
    """Return the content as it comes in disappearing messages, and from one's other devices."""
    return {wrapper: {"message": content}}


def reaction(emoji: str, message_id: str, by: str = "") -> Json:
    """Return the content of a reaction to a message; an empty one takes an earlier one back."""
    return {"reactionMessage": {"key": {"ID": message_id, "participant": by}, "text": emoji}}


def group(chat: str, name: str) -> Json:
    """Return what WhatsApp tells of a group."""
    return {
        "OwnerJID": jid(_NOBODY),
        "JID": jid(chat),
        "OwnerPN": jid(_NOBODY),
        "GroupName": {"Name": name, "NameSetAt": 0, "NameSetBy": jid(_NOBODY)},
        "GroupTopic": {
            "Topic": "",
            "TopicID": "",
            "TopicSetAt": 0,
            "TopicSetBy": jid(_NOBODY),
            "TopicDeleted": False,
        },
        "GroupLocked": {"isLocked": False},
        "GroupAnnounce": {"IsAnnounce": False, "AnnounceVersionID": ""},
        "GroupEphemeral": {"IsEphemeral": False, "DisappearingTimer": 0},
        "GroupIncognito": {"IsIncognito": False},
        "GroupParent": {"IsParent": False, "DefaultMembershipApprovalMode": ""},
        "GroupLinkedParent": {"LinkedParentJID": jid(_NOBODY)},
        "GroupIsDefaultSub": {"IsDefaultSubGroup": False},
        "GroupCreated": 0,
        "ParticipantVersionID": "",
    }
