"""What people do in WhatsApp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.standins.whatsapp import events
from tests.standins.whatsapp.events import Json, Source

if TYPE_CHECKING:
    from tests.standins.whatsapp.server import SentText, WhatsAppStandIn


class Person:
    """Somebody with a phone. `lid` is the hidden id; `seen_as` chooses what WhatsApp tells."""

    def __init__(
        self,
        whatsapp: WhatsAppStandIn,
        number: str,
        name: str,
        lid: str = "",
        *,
        from_me: bool = False,
    ) -> None:
        self._whatsapp = whatsapp
        self.name = name
        self.jid = f"{number}@{events.PHONE}"
        self.lid = f"{lid}@{events.LID}" if lid else ""
        self.from_me = from_me
        self.device = 0
        # "phone", "lid" (with the phone beside it) or "lid alone".
        self.seen_as = "phone"

    def say(
        self,
        chat: str,
        words: str,
        quote: SentText | str | None = None,
        at: float | None = None,
    ) -> str:
        """Say something in the chat, and return the message's id."""
        if quote is None or isinstance(quote, str):
            return self.send(chat, events.text(words, quote), at=at)
        content = events.text(words, quote.message_id, quote.text, self._whatsapp.account)
        return self.send(chat, content, at=at)

    def react(self, chat: str, emoji: str, to: SentText | str) -> str:
        """React to a message."""
        target = to if isinstance(to, str) else to.message_id
        by = "" if isinstance(to, str) else self._whatsapp.account
        return self.send(chat, events.reaction(emoji, target, by))

    def send(
        self, chat: str, content: Json, *, message_id: str = "", at: float | None = None
    ) -> str:
        """Send any content; the same id twice is the same message twice."""
        message_id = message_id or self._whatsapp.new_id()
        self._whatsapp.say_message(self.event(chat, content, message_id, at=at))
        return message_id

    def event(self, chat: str, content: Json, message_id: str, *, at: float | None = None) -> Json:
        """Return the event of a message of this person."""
        return events.message(self._source(chat), message_id, content, self.name, at)

    def _source(self, chat: str) -> Source:
        shown, other = (self.jid, self.lid) if self.seen_as == "phone" else (self.lid, self.jid)
        if self.seen_as == "lid alone":
            other = ""
        direct = not chat.endswith(events.GROUP)
        # A direct chat has the address of the other side: for us, that of who writes.
        place = shown if direct and not self.from_me else chat
        return Source(place, shown, other, device=self.device, from_me=self.from_me)
