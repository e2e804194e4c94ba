"""Keep what people say in the chats that pynchy asks in, and nothing of any other chat.

`keep` runs on a thread of the library and returns with the message on the disk. People may come
under a hidden id alone: then the phone number is looked up before the host hears of the message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace

from pynchy.channels.whatsapp.addresses import is_hidden
from pynchy.channels.whatsapp.inbound_message import InboundMessage
from pynchy.channels.whatsapp.inbound_queue import InboundQueue

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class InboundWriter:
    """Puts messages on the queue. `look_up` finds the phone number of a hidden id, or nothing.

    `tell` is called with the name of what the host should look at, and with trouble.
    """

    def __init__(
        self,
        queue: InboundQueue,
        chats: frozenset[str],
        look_up: Callable[[str], Awaitable[str]],
        tell: Callable[..., None],
    ) -> None:
        self._queue = queue
        self.chats = chats
        self._look_up = look_up
        self._tell = tell
        self._phones: dict[str, str] = {}

    def keep(self, said: InboundMessage) -> Coroutine[None, None, None]:
        """Put the message on the queue at once. Return what is left to do on the loop."""
        said = self._as_known(said)
        if not self._is_wanted(said):
            return self._finish(None, said)
        try:
            return self._finish(self._queue.put(said), said)
        except OSError as exc:
            return self._keep_later(said, exc)

    async def finish_all(self) -> None:
        """Look up what an earlier process could not look up any more."""
        for name in await asyncio.to_thread(self._queue.waiting):
            said = await asyncio.to_thread(self._queue.read, name)
            if said is not None and not said.whole:
                await self._finish(name, said)

    def _is_wanted(self, said: InboundMessage) -> bool:
        # A direct chat whose number is not known may be one of ours.
        return not self.chats.isdisjoint(said.chats) or (not said.whole and not said.is_group)

    async def _finish(self, name: str | None, said: InboundMessage) -> None:
        if name is None:
            return
        if not said.whole:
            said = await self._completed(said)
            if self.chats.isdisjoint(said.chats):
                await asyncio.to_thread(self._queue.forget, name)
                return
            await asyncio.to_thread(self._queue.complete, name, said)
        self._tell(event="said", name=name)

    async def _keep_later(self, said: InboundMessage, why: OSError) -> None:
        """Hold the message in memory until the disk takes it; nobody will send it again."""
        while True:
            log.error("a message cannot be kept", extra={"why": why.strerror})
            self._tell(event="trouble", text=f"messages cannot be kept: {why.strerror}")
            await asyncio.sleep(_RETRY_SECONDS)
            try:
                name = await asyncio.to_thread(self._queue.put, said)
            except OSError as exc:
                why = exc
            else:
                self._tell(event="trouble", text="")
                return await self._finish(name, said)

    async def _completed(self, said: InboundMessage) -> InboundMessage:
        for lid in filter(is_hidden, (*said.senders, *said.chats)):
            if lid not in self._phones and (found := await self._look_up(lid)):
                self._phones[lid] = found
        return replace(self._as_known(said), whole=True)

    def _as_known(self, said: InboundMessage) -> InboundMessage:
        """Return the message with every form that is known of its chat and its sender."""
        senders, chats = self._with_phone(said.senders), self._with_phone(said.chats)
        whole = not (_is_hidden_alone(senders) or _is_hidden_alone(chats))
        return replace(said, senders=senders, chats=chats, whole=whole)

    def _with_phone(self, forms: tuple[str, ...]) -> tuple[str, ...]:
        known = [self._phones[form] for form in forms if form in self._phones]
        return tuple(dict.fromkeys((*forms, *known)))


def _is_hidden_alone(forms: tuple[str, ...]) -> bool:
    return all(map(is_hidden, forms))
