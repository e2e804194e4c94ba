"""Where inbound messages lie from the moment they arrive until they are handled.

The child writes what people say in the chats that pynchy asks in, and nothing of any other chat.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from pynchy.channels.whatsapp.addresses import is_hidden
from pynchy.safe_folder import Folder, UnsafeFile

MAX_TEXT = 70_000
# In the year 2096: no clock that stamps messages is right after that.
LAST = 4_000_000_000.0
_MAX_NAME = 200
_MAX_FORMS = 4
_MAX_PARTS = 20

log = logging.getLogger(__name__)

# What is remembered of messages that were handled, to know them again.
_MAX_HANDLED = 2_000
# So often what was handled long ago is forgotten.
_TIDY_EVERY = 500
# A text and what it quotes, where each sign is written as two escapes; and room.
_CAP = 24 * MAX_TEXT + 10_000
_ENDING = ".json"

_RETRY_SECONDS = 1.0


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


class InboundQueue:
    """The child puts messages on it, the host takes them away."""

    def __init__(self, home: Path) -> None:
        self._waiting = Folder(home, "inbox")
        self._handled = Folder(home, "handled")
        self._done = 0

    def make(self) -> None:
        """Create what is missing."""
        self._waiting.make()
        self._handled.make()

    def put(self, said: InboundMessage) -> str | None:
        """Keep a message durably. Return its name; None if it is known already."""
        name = name_of(said)
        if self._handled.has(name):
            return None
        return name if self._waiting.create(name + _ENDING, said.to_json()) else None

    def complete(self, name: str, said: InboundMessage) -> None:
        """Put what is known by now in place of what was known at first."""
        self._waiting.replace(name + _ENDING, said.to_json())

    def waiting(self) -> list[str]:
        """Return the names of what nobody has handled yet, the oldest first."""
        found = [n.removesuffix(_ENDING) for n in self._waiting.names() if n.endswith(_ENDING)]
        return sorted(found, key=self._age)

    def read(self, name: str) -> InboundMessage | None:
        """Return the message; None if it is not there, or damaged."""
        try:
            said = read_message(self._waiting.read(name + _ENDING, _CAP, one_link=False))
        except FileNotFoundError:
            return None
        except UnsafeFile:
            said = None
        if said is None:
            log.error("whatsapp.message_damaged", extra={"file": name})
        return said

    def done(self, name: str) -> None:
        """Remember that the message was handled, and take it away."""
        self._handled.create(name, b"")
        self._waiting.remove(name + _ENDING)
        self._done += 1
        if self._done % _TIDY_EVERY == 0:
            self._forget_oldest()

    def forget(self, name: str) -> None:
        """Take away a message that was never meant for us, and keep nothing of it."""
        self._waiting.remove(name + _ENDING)

    def tidy(self) -> None:
        """Finish what a crash has left half done, and forget what was handled long ago."""
        for folder in (self._waiting, self._handled):
            folder.clear_temporary()
        for name in self.waiting():
            if self._handled.has(name):
                self._waiting.remove(name + _ENDING)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        for name in self._oldest_handled():
            self._handled.remove(name)

    def _oldest_handled(self) -> Iterator[str]:
        names = self._handled.names()
        if len(names) > _MAX_HANDLED:
            by_age = sorted(names, key=lambda name: self._handled.stat(name).st_mtime)
            yield from by_age[: len(names) - _MAX_HANDLED]

    def _age(self, name: str) -> tuple[float, str]:
        try:
            return self._waiting.stat(name + _ENDING).st_mtime, name
        except FileNotFoundError:
            return 0.0, name


def name_of(said: InboundMessage) -> str:
    """Return what the message is known by, in letters and digits alone."""
    parts = (_lasting(said.chats), _lasting(said.senders), said.message_id, said.what)
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:40]


def _lasting(forms: tuple[str, ...]) -> str:
    """Return the form by which it is known however it comes: the other is found only later."""
    return next(filter(is_hidden, forms), forms[0])


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
            log.error("whatsapp.message_unsaved", extra={"why": why.strerror})
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
