"""Somebody in front of the screen: presses keys, looks, and never looks inside."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.cli.support import Host
from textual._compositor import LayoutUpdate
from textual.pilot import Pilot

from pynchy.cli.screen.inbox import InboxApp
from pynchy.cli.screen.keys import Clock

WAIT_SECONDS = 40.0
DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}
COLOURS = {"question": "Colours?", "options": ["Red", "Green", "Blue"], "multiSelect": True}


class HandClock:
    """A clock that only a test moves on."""

    def __init__(self) -> None:
        self._passed = 1_000.0
        self._ahead = timedelta()

    def pass_seconds(self, seconds: float) -> None:
        self._passed += seconds
        self._ahead += timedelta(seconds=seconds)

    def made(self) -> Clock:
        return Clock(lambda: datetime.now(UTC) + self._ahead, lambda: self._passed)


class NotDrawnYetError(Exception):
    """A part of the screen is being put up, and cannot be drawn before that is done."""


class Person:
    """What somebody sees and does."""

    def __init__(self, pilot: Pilot[None], clock: HandClock) -> None:
        self.pilot = pilot
        self.clock = clock

    @property
    def screen(self) -> str:
        """What is on the screen, without colours."""
        # As app.export_screenshot does it, which makes a drawing of it: slow, and not to be read.
        app = self.pilot.app
        behind = app._background_screens  # noqa: SLF001
        try:
            drawn = app.screen._compositor.render_update(full=True, screen_stack=behind)  # noqa: SLF001
        except KeyError as exc:
            if "COMPONENT_CLASSES" not in str(exc):
                raise
            raise NotDrawnYetError from exc
        assert isinstance(drawn, LayoutUpdate)
        return "\n".join("".join(strip.text for strip in line) for line in drawn.strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        names = {" ": "space", "/": "slash", "?": "question_mark", ".": "full_stop", ",": "comma"}
        await self.pilot.press(*(names.get(letter, letter) for letter in text))

    async def see(self, *texts: str) -> str:
        """Wait until all of it is to be seen, and return the screen."""

        def look() -> str | None:
            screen = self.screen
            return screen if all(text in screen for text in texts) else None

        screen: str = await self.until(look, texts)
        return screen

    async def see_no_more(self, text: str) -> None:
        await self.until(lambda: text not in self.screen, text)

    async def until(self, look: Callable[[], Any], what: object = "") -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            with suppress(NotDrawnYetError):
                if found := look():
                    return found
                assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.screen}"
            await self.pilot.pause(0.05)

    async def wait_out_deafness(self) -> None:
        self.clock.pass_seconds(0.5)
        await self.pilot.pause()

    async def mark(self, key: str, marked: str) -> None:
        """Choose an option; what changes under one's hands takes no key for a moment."""

        def look() -> bool:
            return marked in self.screen

        deadline = time.monotonic() + WAIT_SECONDS
        while not await self._is_drawn(look):
            assert time.monotonic() < deadline, f"{key} does not give {marked}:\n{self.screen}"
            await self.wait_out_deafness()
            await self.pilot.press(key)

    async def _is_drawn(self, look: Callable[[], bool]) -> bool:
        while True:
            with suppress(NotDrawnYetError):
                return look()
            await self.pilot.pause(0.05)

    async def look_at(self, *texts: str) -> None:
        """See it, and take the time that a person takes."""
        await self.see(*texts)
        await self.wait_out_deafness()


class Desk:
    """The host, and a screen in front of it."""

    def __init__(self, host: Host, clock: HandClock) -> None:
        self.host = host
        self.clock = clock

    @asynccontextmanager
    async def sit_down(self, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Person]:
        app = InboxApp(self.host.data, "ana", self.clock.made())
        async with app.run_test(size=size) as pilot:
            yield Person(pilot, self.clock)

    async def ask(self, *questions: Any, **fields: Any) -> str:
        return await asyncio.to_thread(self.host.ask, *questions, **fields)

    async def question(self, short_id: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.host.client.question, short_id)

    async def ended(self, person: Person, short_id: str) -> dict[str, Any]:
        """Wait until the host has an ending, and return it."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not (view := await self.question(short_id))["ending"]:
            assert time.monotonic() < deadline, f"{short_id} never ended:\n{person.screen}"
            await person.pilot.pause(0.05)
        ending: dict[str, Any] = view["ending"]
        return ending
