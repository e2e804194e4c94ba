"""The neonize client, and what its messages say; the child alone imports this."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from neonize.aioze import events
from neonize.aioze.client import NewAClient
from neonize.exc import NeonizeError
from neonize.proto.Neonize_pb2 import JID, ConnectFailureReason
from neonize.proto.Neonize_pb2 import Message as MessageEv
from neonize.proto.waCompanionReg.WAWebProtobufsCompanionReg_pb2 import DeviceProps
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import ContextInfo, ExtendedTextMessage, Message
from neonize.utils.jid import Jid2String, JIDToNonAD, build_jid
from neonize.utils.log import log as neonize_log

from pynchy.channels.whatsapp.addresses import PHONE, Account, normal, phone
from pynchy.channels.whatsapp.connection_status import ConnectionStatus
from pynchy.channels.whatsapp.inbound_queue import LAST, InboundMessage, What

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

log = logging.getLogger(__name__)

# A ban is told in nanoseconds or in seconds, depending on the version; no ban is that long.
_NANOSECONDS = 1_000_000_000
_BANNED_SECONDS = 3_600.0
_DEVICE = "pynchy"
_LOGGED_OUT = ("LOGGED_OUT", "MAIN_DEVICE_GONE", "UNKNOWN_LOGOUT")
_OUTDATED = ("CLIENT_OUTDATED", "BAD_USER_AGENT")

Nothing = Coroutine[None, None, None]


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
        if not reaction.text:
            return None
        # Whose message it is about: the sender's own, or a participant's of a group.
        own = said.senders[0] if reaction.key.fromMe and said.senders else ""
        return replace(
            said,
            what=What.REACTION,
            text=reaction.text,
            about=reaction.key.ID,
            quoted_by=normal(reaction.key.participant) or own,
        )
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


class ClientListener(Protocol):
    """Who hears what WhatsApp says."""

    def said(self, said: InboundMessage) -> Nothing:
        """Keep it at once, on the thread that calls; return what is to be done on the loop."""

    def stands(self, status: ConnectionStatus, detail: str, until: float) -> None:
        """Hear how the connection stands; on the loop."""

    def shows_qr(self, code: str) -> None:
        """Hear that a phone must be paired; on the loop."""

    def paired(self, error: str) -> None:
        """Hear that a phone was paired, or why not; on the loop."""


class Client:
    """One session with WhatsApp."""

    def __init__(self, store: Path, listener: ClientListener) -> None:
        # Below this level whole messages are written.
        neonize_log.setLevel(logging.WARNING)
        props = DeviceProps(os=_DEVICE, platformType=DeviceProps.DESKTOP)
        self._client = NewAClient(str(store), props=props)
        self._listener = listener
        self._register()

    async def connect(self) -> asyncio.Task[None]:
        """Begin; the task ends, with NeonizeError, when it cannot go on."""
        # The library keeps the first loop that it ever saw.
        events.event_global_loop = asyncio.get_running_loop()
        task: asyncio.Task[None] = await self._client.connect()
        return task

    async def send(self, to: str, text: str, quote: dict[str, str] | None) -> tuple[str, float]:
        """Send a text; return the message's id and moment. Raise NeonizeError if it did not go."""
        sent = await self._client.send_message(_jid(to), _message(text, quote))
        return str(sent.ID), seconds(sent.Timestamp)

    async def account(self) -> Account:
        """Return whose session this is."""
        me = await self._client.get_me()
        jid, lid = (next(iter(forms(j)), "") for j in (me.JID, me.LID))
        return Account(jid, lid, str(me.PushName))

    async def phone_of(self, lid: str) -> str:
        """Return the phone number's form of a hidden id; empty if it is not known."""
        try:
            found = await self._client.get_pn_from_lid(_jid(lid))
        except NeonizeError:
            return ""
        return next(iter(forms(found)), "")

    async def groups(self) -> dict[str, str]:
        """Return the names of the groups that the account is in, by their addresses."""
        found = await self._client.get_joined_groups()
        return {jid: g.GroupName.Name for g in found for jid in forms(g.JID)}

    async def pair_phone(self, number: str) -> str:
        """Return the code to type into the phone."""
        digits = phone(number).removeprefix("+")
        return str(await self._client.PairPhone(digits, show_push_notification=True))

    async def logout(self) -> None:
        """Take this device off the account."""
        await self._client.logout()

    async def stop(self) -> None:
        """End the connection; the session is kept."""
        await self._client.stop()

    def _register(self) -> None:
        """Register every handler; there is one for each kind of event, and the last one wins."""
        listener = self._listener

        def on(kind: Any, hear: Callable[[Any], None]) -> None:  # noqa: ANN401 - protobuf types
            self._client.event(kind)(_on_loop(hear))

        self._client.event(events.MessageEv)(_at_once(listener))
        self._client.qr(_on_loop(lambda code: listener.shows_qr(code.decode())))
        on(events.ConnectedEv, lambda _: listener.stands(ConnectionStatus.CONNECTED, "", 0.0))
        on(
            events.KeepAliveRestoredEv,
            lambda _: listener.stands(ConnectionStatus.CONNECTED, "", 0.0),
        )
        on(events.DisconnectedEv, lambda _: listener.stands(ConnectionStatus.DISCONNECTED, "", 0.0))
        on(events.KeepAliveTimeoutEv, lambda _: listener.stands(*_no_keep_alive()))
        on(
            events.StreamErrorEv,
            lambda e: listener.stands(ConnectionStatus.DISCONNECTED, e.Code, 0.0),
        )
        on(events.StreamReplacedEv, lambda _: listener.stands(ConnectionStatus.REPLACED, "", 0.0))
        on(events.ClientOutdatedEv, lambda _: listener.stands(ConnectionStatus.OUTDATED, "", 0.0))
        on(events.LoggedOutEv, lambda e: listener.stands(*_logged_out(e)))
        on(events.TemporaryBanEv, lambda e: listener.stands(*_banned(e)))
        on(events.ConnectFailureEv, lambda e: listener.stands(*_failed(e)))
        on(events.PairStatusEv, lambda e: listener.paired(e.Error))


def _at_once(listener: ClientListener) -> Callable[[object, Any], Nothing]:
    """Return a handler that keeps a message on the thread on which it came."""

    def handle(_client: object, event: Any) -> Nothing:  # noqa: ANN401 - a protobuf
        try:
            said = read_event(event)
            return nothing() if said is None else _guarded(listener.said(said))
        except Exception:
            log.exception("whatsapp.message_unreadable")
            return nothing()

    return handle


async def _guarded(work: Nothing) -> None:
    try:
        await work
    except Exception:
        log.exception("whatsapp.message_not_passed_on")


def _on_loop(hear: Callable[[Any], None]) -> Callable[[object, Any], Nothing]:
    async def handle(_client: object, event: Any) -> None:  # noqa: ANN401 - a protobuf
        try:
            hear(event)
        except Exception:
            log.exception("whatsapp.event_failed")

    return handle


async def nothing() -> None:
    """Do nothing."""


def _no_keep_alive() -> tuple[ConnectionStatus, str, float]:
    return ConnectionStatus.DISCONNECTED, "WhatsApp does not answer", 0.0


def _logged_out(event: Any) -> tuple[ConnectionStatus, str, float]:  # noqa: ANN401 - a protobuf
    return ConnectionStatus.LOGGED_OUT, _reason(event.Reason), 0.0


def _banned(event: Any) -> tuple[ConnectionStatus, str, float]:  # noqa: ANN401 - a protobuf
    expire = event.Expire
    seconds = expire / _NANOSECONDS if expire > _NANOSECONDS else float(expire)
    why = type(event).TempBanReason.Name(event.Code).lower().replace("_", " ")
    return ConnectionStatus.BANNED, why, time.time() + (seconds or _BANNED_SECONDS)


def _failed(event: Any) -> tuple[ConnectionStatus, str, float]:  # noqa: ANN401 - a protobuf
    name = ConnectFailureReason.Name(event.Reason)
    detail = event.Message or _reason(event.Reason)
    if name in _LOGGED_OUT:
        return ConnectionStatus.LOGGED_OUT, detail, 0.0
    if name in _OUTDATED:
        return ConnectionStatus.OUTDATED, detail, 0.0
    if name == "TEMP_BANNED":
        return ConnectionStatus.BANNED, detail, time.time() + _BANNED_SECONDS
    return ConnectionStatus.DISCONNECTED, detail, 0.0


def _reason(number: int) -> str:
    name: str = ConnectFailureReason.Name(number)
    return name.lower().replace("_", " ")


def _jid(address: str) -> Any:  # noqa: ANN401 - a protobuf
    user, _, server = address.partition("@")
    return build_jid(user, server or PHONE)


def _message(text: str, quote: dict[str, str] | None) -> Message:
    """Return a message of its own: of a plain text the library makes mentions."""
    if quote is None:
        return Message(conversation=text)
    quoted = ContextInfo(
        stanzaID=quote["id"],
        participant=quote["by"],
        quotedMessage=Message(conversation=quote["text"]),
    )
    return Message(extendedTextMessage=ExtendedTextMessage(text=text, contextInfo=quoted))
