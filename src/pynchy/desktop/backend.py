"""What a notification service must do, whatever the system: show, close, and tell what happens.

An id that a backend gives names the service that gave it. Whoever else speaks in the service's
name is not heard.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass

from pynchy.desktop.popup import Abilities, Popup

_EXAMINE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Pressed:
    """A person pressed a button, or clicked the body."""

    popup_id: str
    key: str


@dataclass(frozen=True, slots=True)
class TextWritten:
    """A person wrote into the text field and sent it."""

    popup_id: str
    text: str


@dataclass(frozen=True, slots=True)
class PopupDismissed:
    """A person closed the popup or swiped it away; what expires is not told."""

    popup_id: str


@dataclass(frozen=True, slots=True)
class ServiceReady:
    """A service is there which shows nothing of ours yet: at the start, or after its restart."""


Happening = Pressed | TextWritten | PopupDismissed | ServiceReady


class Backend(ABC):
    """A notification service; `happenings` has what happens there, in order.

    `tried` is set once it is known whether there is a service, and `service_name` is what that is
    called.
    """

    def __init__(self) -> None:
        self.happenings: asyncio.Queue[Happening] = asyncio.Queue()
        self.tried = asyncio.Event()
        self.service_name = ""

    @abstractmethod
    async def run(self) -> None:
        """Stay connected until cancelled."""

    @abstractmethod
    def problem(self) -> str | None:
        """Say why nothing can be shown now; None if it can."""

    def fix(self) -> str:
        """Say what a person can do about the problem."""
        return "answer in another channel"

    @property
    @abstractmethod
    def abilities(self) -> Abilities:
        """What the service can do, as far as that is known."""

    @abstractmethod
    async def show(self, popup: Popup, replaces: str = "") -> str:
        """Show a popup, in place of an earlier one if that is this service's; return its id.

        Raise ChannelUnavailable, and NotShown where it surely is not shown.
        """

    @abstractmethod
    async def close(self, popup_id: str) -> None:
        """Take a popup away; one that is gone does no harm. Raise ChannelUnavailable."""

    @abstractmethod
    def is_current(self, popup_id: str) -> bool:
        """True if the service that runs now gave this id."""


@dataclass(frozen=True, slots=True)
class FoundService:
    """What there is to show popups: its name and abilities, or why there is nothing."""

    problem: str | None
    fix: str
    name: str
    abilities: Abilities


async def examine(backend: Backend) -> FoundService:
    """Look for a notification service, and return what there is."""
    running = asyncio.create_task(backend.run())
    try:
        # A system may ask the person first whether notifications may be shown.
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXAMINE_SECONDS):
                await backend.tried.wait()
        problem, fix = backend.problem(), backend.fix()
        return FoundService(problem, fix, backend.service_name, backend.abilities)
    finally:
        running.cancel()
        await asyncio.wait([running])
