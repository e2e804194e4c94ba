"""A notification service in memory, for tests of what is above the bus.

It is strict: nobody presses what is not shown, and an id of another service names nothing here.
"""

import asyncio
import re

from pynchy.desktop.backend import Backend, PopupDismissed, Pressed, ServiceReady, TextWritten
from pynchy.desktop.popup import BODY, Abilities, Popup
from pynchy.errors import NotShown


class NotificationStandIn:
    """The service: what is on the screen, and what was ever there."""

    def __init__(self, abilities: Abilities | None = None) -> None:
        self.abilities = abilities or Abilities(text_field=True)
        self.owner = 1
        self.is_down = False
        self.screen: dict[str, Popup] = {}
        self.shown: list[tuple[str, Popup]] = []
        self._count = 0

    def put(self, popup: Popup, replaces: str) -> str:
        self._count += not self.knows(replaces)
        popup_id = replaces if self.knows(replaces) else f"{self.owner}/{self._count}"
        self.screen[popup_id] = popup
        self.shown.append((popup_id, popup))
        return popup_id

    def knows(self, popup_id: str) -> bool:
        return popup_id.partition("/")[0] == str(self.owner)

    def restart(self) -> None:
        """End, with all popups, and begin anew under another name."""
        self.owner += 1
        self.screen.clear()

    def text(self, popup: Popup) -> str:
        """Return all that is to be read on a popup."""
        labels = [button.label for button in popup.buttons]
        return "\n".join([popup.title, popup.body, *labels])


class StandInBackend(Backend):
    """One program's connection to it."""

    def __init__(self, service: NotificationStandIn) -> None:
        super().__init__()
        self._service = service
        self._came = asyncio.Event()

    async def run(self) -> None:
        self.tried.set()
        while True:
            self.happenings.put_nowait(ServiceReady())
            self._came.clear()
            await self._came.wait()

    def come_back(self) -> None:
        self._came.set()

    def problem(self) -> str | None:
        return "no notification service is running" if self._service.is_down else None

    @property
    def abilities(self) -> Abilities:
        return self._service.abilities

    async def show(self, popup: Popup, replaces: str = "") -> str:
        self._check()
        return self._service.put(popup, replaces)

    async def close(self, popup_id: str) -> None:
        self._check()
        self._service.screen.pop(popup_id, None)

    def is_current(self, popup_id: str) -> bool:
        return self.tried.is_set() and self._service.knows(popup_id)

    def press(self, popup_id: str, label: str) -> None:
        """Press a button, as a person does who sees the popup."""
        [key] = [b.key for b in self._service.screen[popup_id].buttons if b.label == label]
        self.happenings.put_nowait(Pressed(popup_id, key))

    def click(self, popup_id: str) -> None:
        """Click the body."""
        assert self._service.screen[popup_id].opens
        self.happenings.put_nowait(Pressed(popup_id, BODY))

    def write(self, popup_id: str, text: str) -> None:
        assert self._service.screen[popup_id].text_field
        self.happenings.put_nowait(TextWritten(popup_id, text))

    def dismiss(self, popup_id: str) -> None:
        del self._service.screen[popup_id]
        self.happenings.put_nowait(PopupDismissed(popup_id))

    def _check(self) -> None:
        if self._service.is_down:
            raise NotShown("no notification service is running")


def markup_in(text: str) -> tuple[str, ...]:
    """Return what a service that renders markup would make of a text that is not escaped."""
    return tuple(re.findall(r"<(?:a|img)\b[^>]*>", text))
