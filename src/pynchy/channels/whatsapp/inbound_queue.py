"""Where inbound messages lie from the moment they arrive until they are handled.

WhatsApp has been thanked by then and sends nothing again, so a message is on the disk before
anything else happens. It is known by chat, sender and id: the same one twice is one.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path

from pynchy.channels.whatsapp.addresses import is_hidden
from pynchy.channels.whatsapp.inbound_message import MAX_TEXT, InboundMessage, read_message
from pynchy.safe_folder import Folder, UnsafeFile

log = logging.getLogger(__name__)

# What is remembered of messages that were handled, to know them again.
_MAX_HANDLED = 2_000
# So often what was handled long ago is forgotten.
_TIDY_EVERY = 500
# A text and what it quotes, where each sign is written as two escapes; and room.
_CAP = 24 * MAX_TEXT + 10_000
_ENDING = ".json"


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
            log.error("a message on the queue is damaged", extra={"file": name})
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
