"""Send texts: written down first, one after another in each chat, and never silently twice.

Where it is not known whether a message arrived, it is sent once more in words that say so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pynchy.channels.rate_limit import RateLimiter, backlog_of
from pynchy.channels.whatsapp.outbox import Outbox, Record
from pynchy.channels.whatsapp.process import Body
from pynchy.channels.whatsapp.supervisor import CannotSend, MaybeSent, NotSent, Supervisor
from pynchy.errors import ChannelUnavailable
from pynchy.model import GroupName, Urgency

log = logging.getLogger(__name__)

# WhatsApp confirms within a second or two; its library would wait for more than a minute.
CONFIRM_SECONDS = 20.0
# Long enough for a child that was just started to connect.
READY_SECONDS = 8.0
_MAX_QUOTED = 300
_QUIET_SECONDS = 5.0
# What the host itself says has turns of its own, whatever agents ask meanwhile.
_NO_GROUP = GroupName("")

MakeText = Callable[[bool], str]


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that another one answers; `by` is who wrote it."""

    message_id: str
    by: str
    text: str


class Sender:
    """Sends over the supervisor's child."""

    def __init__(self, supervisor: Supervisor, outbox: Outbox, pace_seconds: float) -> None:
        self._supervisor = supervisor
        self._outbox = outbox
        self._pace_seconds = pace_seconds
        self._limiters: dict[str, RateLimiter] = {}

    async def send(
        self,
        record: Record,
        part: str,
        make_text: MakeText,
        quote: Quote | None = None,
        *,
        urgency: Urgency = Urgency.NORMAL,
    ) -> str:
        """Send a part of a record, unless it was. Return the message's id.

        `make_text` is told whether this may be a repeat. Raise ChannelUnavailable if WhatsApp does
        not have it, MaybeSent if that is not known.
        """
        async with self._limiter(record.address).turn(record.group, urgency):
            try:
                return await self._send(record, part, make_text, quote)
            except MaybeSent:
                # The child may be back in a moment; once more, as a repeat.
                log.warning("whatsapp.send_unconfirmed", extra={"id": record.request_id})
                return await self._send(record, part, make_text, quote)

    async def say(self, address: str, text: str, quote: Quote | None = None) -> str:
        """Say something that is no loss if it does not arrive. Return its id, or nothing."""
        self._outbox.note(text)
        try:
            async with self._limiter(address).turn(_NO_GROUP):
                await self._supervisor.ready(READY_SECONDS)
                told = await self._confirmed(self._ask(address, text, quote))
        except ChannelUnavailable as exc:
            log.warning("whatsapp.say_failed", extra={"why": str(exc)})
            return ""
        self._outbox.note(text, told["sent"])
        return str(told["sent"])

    def backlog(self) -> str | None:
        """Say that messages wait long for their turn; None if they do not."""
        return backlog_of(self._limiters.items())

    async def quiet(self, addresses: Iterable[str]) -> None:
        """Return when nothing is being sent there: a reply may be quicker than a receipt."""
        for limiter in filter(None, (self._limiters.get(address) for address in addresses)):
            with suppress(TimeoutError):
                async with asyncio.timeout(_QUIET_SECONDS):
                    await limiter.free()

    async def _send(
        self, record: Record, part: str, make_text: MakeText, quote: Quote | None
    ) -> str:
        known = record.parts.get(part)
        if known is not None and known.message_id:
            return known.message_id
        await self._supervisor.ready(READY_SECONDS)
        text = make_text(known is not None and known.begun > 0)
        await asyncio.to_thread(self._outbox.begin, record, part, text)
        try:
            asked = self._ask(record.address, text, quote)
            asked.add_done_callback(lambda done: self._late(record, part, done))
            told = await self._confirmed(asked)
        except NotSent:
            await asyncio.to_thread(self._outbox.withdraw, record, part)
            raise
        await asyncio.to_thread(self._outbox.sent, record, part, told["sent"], told["at"])
        return str(told["sent"])

    def _ask(self, address: str, text: str, quote: Quote | None) -> asyncio.Future[Body]:
        quoted = None if quote is None else {"id": quote.message_id, "by": quote.by}
        if quote is not None and quoted is not None:
            quoted["text"] = quote.text[:_MAX_QUOTED]
        return self._supervisor.ask("send", to=address, text=text, quote=quoted)

    async def _confirmed(self, asked: asyncio.Future[Body]) -> Body:
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                told = await asyncio.shield(asked)
        except TimeoutError as exc:
            raise MaybeSent(f"WhatsApp did not confirm within {CONFIRM_SECONDS:g} s") from exc
        if "error" in told:
            kind = MaybeSent if told.get("doubtful") else CannotSend
            raise kind(f"WhatsApp refuses: {told['error']}")
        return told

    def _late(self, record: Record, part: str, done: asyncio.Future[Any]) -> None:
        """Note the id of a message that was confirmed after everybody had stopped waiting."""
        if done.cancelled() or done.exception() is not None or "sent" not in done.result():
            return
        attempt = record.parts[part]
        if not attempt.message_id:
            attempt.message_id, attempt.at = done.result()["sent"], done.result()["at"]

    def _limiter(self, address: str) -> RateLimiter:
        return self._limiters.setdefault(
            address, RateLimiter("WhatsApp", self._pace_seconds, MaybeSent)
        )
