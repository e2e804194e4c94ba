"""macOS and Windows: the notification centre of the system, by desktop-notifier.

Nobody has run this on a real machine: tests play the library's own classes. What the library does
not tell is not guessed: a popup that it did not take counts as not shown, and a button that the
popup does not have is not pressed.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass

from desktop_notifier import Button, Capability, DesktopNotifier, Notification, ReplyField
from desktop_notifier import Urgency as Level

from pynchy.desktop import MACOS
from pynchy.desktop.backend import (
    Backend,
    Happening,
    PopupDismissed,
    Pressed,
    ServiceReady,
    TextWritten,
)
from pynchy.desktop.popup import BODY, USUAL_BUTTONS, Abilities, Popup
from pynchy.errors import NotShown
from pynchy.model import Urgency

log = logging.getLogger(__name__)

NO_BUNDLE = "macOS shows notifications of signed app bundles alone, and this Python is in none"
NO_CENTRE = "this system has no notification centre that the library can use"
NOT_ALLOWED = "the system does not let pynchy show notifications"
_FIXES = {
    NO_BUNDLE: "run pynchy with the Python of python.org's installer, which is a signed bundle, or "
    "from an app bundle of your own; else answer in the inbox (pynchy inbox --open)",
    NOT_ALLOWED: "allow it in the system's settings, under Notifications",
}
_NOT_YET = "it is not known yet whether notifications can be shown"
_PREFIX = "pynchy-"
_ASK_AGAIN_SECONDS = 30.0
_PUMP_SECONDS = 0.1
_LEVELS = {Urgency.LOW: Level.Low, Urgency.NORMAL: Level.Normal, Urgency.HIGH: Level.Critical}
_CORE_FOUNDATION = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"


@dataclass(frozen=True, slots=True)
class SystemTraits:
    """What is known of a system beside what the library tells."""

    name: str
    most_buttons: int
    has_field: bool
    without_centre: str
    wants_pump: bool = False


TRAITS = {
    # One action button beside Close: more hide in a menu, and so would the text field.
    MACOS: SystemTraits("macOS", 1, has_field=False, without_centre=NO_BUNDLE, wants_pump=True),
    "win32": SystemTraits("Windows", USUAL_BUTTONS, has_field=True, without_centre=NO_CENTRE),
}


class SystemBackend(Backend):
    """The notification centre of macOS or Windows, which keeps popups over our restart."""

    def __init__(
        self,
        system: str = sys.platform,
        make_notifier: Callable[[], DesktopNotifier] = lambda: DesktopNotifier("pynchy"),
    ) -> None:
        super().__init__()
        self._traits = TRAITS[system]
        self._make_notifier = make_notifier
        self._notifier: DesktopNotifier | None = None
        self._problem: str | None = _NOT_YET
        self._abilities = Abilities(actions=False)
        self._popups: dict[str, Popup] = {}
        self.service_name = self._traits.name

    @property
    def abilities(self) -> Abilities:
        """See Backend."""
        return self._abilities

    def problem(self) -> str | None:
        """See Backend."""
        return self._problem

    def fix(self) -> str:
        """See Backend."""
        return _FIXES.get(self._problem or "", super().fix())

    def is_current(self, popup_id: str) -> bool:
        """See Backend."""
        return self._problem is None and popup_id.startswith(_PREFIX)

    async def run(self) -> None:
        """See Backend."""
        try:
            notifier = self._make_notifier()
        except (RuntimeError, OSError) as exc:
            await self._stay_away(f"{NO_CENTRE}: {exc}")
            return
        can_do = await notifier.get_capabilities()
        if (
            Capability.MESSAGE not in can_do
        ):  # the library's stand-in for a centre that is not there
            await self._stay_away(self._traits.without_centre)
            return
        self._listen(notifier)
        async with asyncio.TaskGroup() as tasks:
            if self._traits.wants_pump:
                tasks.create_task(_pump())
            await self._get_leave(notifier)
            self._begin(notifier, can_do)
            await asyncio.Event().wait()

    async def show(self, popup: Popup, replaces: str = "") -> str:
        """See Backend."""
        notifier = self._ready()
        popup_id = replaces if self.is_current(replaces) else f"{_PREFIX}{secrets.token_hex(8)}"
        taken: list[bool] = []
        self._popups[popup_id] = popup
        # The library tells of no failure, only of what the system took.
        notification = _notification(popup, popup_id, lambda: taken.append(True))
        await notifier.send_notification(notification)
        if not taken:
            del self._popups[popup_id]
            raise NotShown(f"{self.service_name} did not take the notification")
        return popup_id

    async def close(self, popup_id: str) -> None:
        """See Backend."""
        await self._ready().clear(popup_id)
        self._popups.pop(popup_id, None)

    def _ready(self) -> DesktopNotifier:
        if self._notifier is None or self._problem is not None:
            raise NotShown(self._problem or _NOT_YET)
        return self._notifier

    async def _stay_away(self, problem: str) -> None:
        self._problem = problem
        self.tried.set()
        await asyncio.Event().wait()

    async def _get_leave(self, notifier: DesktopNotifier) -> None:
        """Return when the person lets us show notifications; the system asks them once."""
        while not await notifier.request_authorisation():
            self._problem = NOT_ALLOWED
            self.tried.set()
            # Nothing tells that the settings were changed.
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    def _begin(self, notifier: DesktopNotifier, can_do: frozenset[Capability]) -> None:
        self._abilities = Abilities(
            actions=Capability.BUTTONS in can_do,
            most_buttons=self._traits.most_buttons,
            text_field=self._traits.has_field and Capability.REPLY_FIELD in can_do,
        )
        self._notifier, self._problem = notifier, None
        self.happenings.put_nowait(ServiceReady())
        self.tried.set()

    def _listen(self, notifier: DesktopNotifier) -> None:
        """Take what happens to popups, in whatever thread the library tells it."""
        loop = asyncio.get_running_loop()

        def tell(happening: Happening) -> None:
            loop.call_soon_threadsafe(self._take, happening)

        notifier.on_clicked = lambda popup_id: tell(Pressed(popup_id, BODY))
        notifier.on_button_pressed = lambda popup_id, key: tell(Pressed(popup_id, key))
        notifier.on_replied = lambda popup_id, text: tell(TextWritten(popup_id, text))
        notifier.on_dismissed = lambda popup_id: tell(PopupDismissed(popup_id))

    def _take(self, happening: Happening) -> None:
        """Pass on what can happen to the popup.

        On macOS the library keeps keys by the labels of buttons: another popup's may come.
        """
        if isinstance(happening, Pressed):
            popup = self._popups.get(happening.popup_id)
            keys = {button.key for button in popup.buttons} if popup else set()
            if happening.key not in keys | {BODY}:
                log.warning("desktop.unknown_button")
                return
        self.happenings.put_nowait(happening)


def _notification(popup: Popup, popup_id: str, taken: Callable[[], None]) -> Notification:
    return Notification(
        popup.title,
        popup.body,
        urgency=_LEVELS[popup.urgency],
        buttons=tuple(Button(one.label, identifier=one.key) for one in popup.buttons),
        reply_field=ReplyField(popup.text_field) if popup.text_field else None,
        on_dispatched=taken,
        identifier=popup_id,
    )


async def _pump() -> None:
    """Let macOS deliver what it has for our main thread, whose loop is not its own."""
    library = ctypes.CDLL(_CORE_FOUNDATION)
    run, mode = library.CFRunLoopRunInMode, ctypes.c_void_p.in_dll(library, "kCFRunLoopDefaultMode")
    run.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_bool]
    while True:
        run(mode, 0.0, True)  # noqa: FBT003 - C knows no names
        await asyncio.sleep(_PUMP_SECONDS)
