"""macOS and Windows as far as the library's own classes go: its centre is played, the rest is real.

Nothing here has run on a real machine of either.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import desktop_notifier
import pytest
from desktop_notifier import Capability, DesktopNotifier, Notification
from desktop_notifier.backends.base import DesktopNotifierBackend
from desktop_notifier.backends.dummy import DummyNotificationCenter
from tests.waiting import until

from pynchy.bridge.cards import card_of
from pynchy.channels.base import ChannelContext
from pynchy.channels.desktop import plugin
from pynchy.channels.desktop.plugin import PLUGIN
from pynchy.config import DesktopChannelSettings, Settings
from pynchy.desktop import make_backend, missing_library, other_systems
from pynchy.desktop.backend import Happening, PopupDismissed, Pressed, ServiceReady, TextWritten
from pynchy.desktop.other_systems import NO_BUNDLE, NOT_ALLOWED, SystemBackend
from pynchy.desktop.popup import BODY, Button, Popup, PopupQuestion, implied_choice, popup_of
from pynchy.errors import NotShown
from pynchy.findings import Status
from pynchy.model import Option, Question, Urgency
from pynchy.testing import make_pending

YES_NO = Popup("claude · team", "Deploy?", (Button("choice-0", "Yes"), Button("choice-1", "No")))


class Centre(DesktopNotifierBackend):
    """A notification centre, as the library's own backends are made."""

    def __init__(self) -> None:
        super().__init__("pynchy")
        self.screen: dict[str, Notification] = {}
        self.allowed = True
        self.is_full = False

    async def request_authorisation(self) -> bool:
        return self.allowed

    async def has_authorisation(self) -> bool:
        return self.allowed

    async def _send(self, notification: Notification) -> None:
        if self.is_full:
            raise OSError("no room")
        self.screen[notification.identifier] = notification

    async def _clear(self, identifier: str) -> None:
        self.screen.pop(identifier, None)

    async def _clear_all(self) -> None:
        self.screen.clear()

    async def _get_capabilities(self) -> frozenset[Capability]:
        return frozenset(Capability)

    def press(self, identifier: str, title: str) -> None:
        """Press a button, as the library's backends tell of it."""
        notification = self.screen[identifier]
        [key] = [button.identifier for button in notification.buttons if button.title == title]
        self.handle_button(identifier, key, notification)


@pytest.fixture
def centre(monkeypatch: pytest.MonkeyPatch) -> Centre:
    centre = Centre()
    put_in_place(monkeypatch, centre)
    return centre


def put_in_place(monkeypatch: pytest.MonkeyPatch, centre: DesktopNotifierBackend) -> None:
    """Let the library find this centre, on whatever system the test runs."""
    monkeypatch.setattr(
        desktop_notifier.main, "get_backend_class", lambda: lambda _name, _icon: centre
    )
    monkeypatch.setattr(other_systems, "_pump", lambda: asyncio.sleep(0))


@asynccontextmanager
async def running(system: str = "win32") -> AsyncIterator[SystemBackend]:
    backend = SystemBackend(system)
    task = asyncio.create_task(backend.run())
    await until(backend.tried.is_set, "it to be known")
    try:
        yield backend
    finally:
        task.cancel()
        await asyncio.wait([task])


async def heard(backend: SystemBackend) -> Happening:
    return await backend.happenings.get()


async def test_a_popup_is_shown_with_its_buttons_its_field_and_its_urgency(centre: Centre) -> None:
    async with running() as backend:
        popup = Popup("t", "<b>", YES_NO.buttons, Urgency.HIGH, text_field="Reply")
        shown = await backend.show(popup)

    [(identifier, seen)] = centre.screen.items()
    assert identifier == shown
    assert (seen.title, seen.message, seen.urgency.value) == ("t", "<b>", "critical")
    assert [button.title for button in seen.buttons] == ["Yes", "No"]
    assert seen.reply_field is not None
    assert seen.reply_field.title == "Reply"


async def test_what_people_do_is_told_of_the_popup_that_they_did_it_to(centre: Centre) -> None:
    async with running() as backend:
        first, second = await backend.show(YES_NO), await backend.show(YES_NO)
        assert await heard(backend) == ServiceReady()
        centre.press(second, "No")
        centre.handle_clicked(first, centre.screen[first])
        centre.handle_replied(first, "because", centre.screen[first])
        centre.handle_dismissed(first, centre.screen[first])
        told = [await heard(backend) for _ in range(4)]

    assert told == [
        Pressed(second, "choice-1"),
        Pressed(first, BODY),
        TextWritten(first, "because"),
        PopupDismissed(first),
    ]


async def test_a_popup_is_replaced_and_taken_away(centre: Centre) -> None:
    async with running() as backend:
        shown = await backend.show(YES_NO)
        again = await backend.show(Popup("t", "Still waiting"), replaces=shown)
        other = await backend.show(YES_NO, replaces="bus/:1.5/7")
        await backend.close(again)

    assert shown == again
    assert list(centre.screen) == [other]


async def test_a_button_that_the_popup_does_not_have_is_not_pressed(centre: Centre) -> None:
    async with running() as backend:
        shown = await backend.show(Popup("t", "b", (Button("open", "Open"),)))
        centre.handle_button(shown, "choice-0", centre.screen[shown])
        centre.handle_button("pynchy-of-long-ago", "choice-0")
        centre.press(shown, "Open")
        told = [await heard(backend) for _ in range(2)]

    assert told == [ServiceReady(), Pressed(shown, "open")]


async def test_what_the_system_did_not_take_is_not_shown(centre: Centre) -> None:
    centre.is_full = True
    async with running() as backend:
        with pytest.raises(NotShown, match="did not take"):
            await backend.show(YES_NO)


async def test_macos_has_one_button_and_closing_stands_for_the_second_of_two(
    centre: Centre,
) -> None:
    two = Question("Merge?", options=(Option("Merge"), Option("Later")))
    pending = make_pending(questions=(two,), hears_dismissal=True)
    asked = PopupQuestion(pending.request_id, pending.questions, card_of(pending))
    async with running("darwin") as backend:
        shown = await backend.show(popup_of(asked, backend.abilities))

    assert [button.title for button in centre.screen[shown].buttons] == ["Merge"]
    assert centre.screen[shown].reply_field is None
    assert implied_choice(asked, backend.abilities) == "Later"


async def test_without_leave_nothing_is_shown_until_the_person_gives_it(
    centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_systems, "_ASK_AGAIN_SECONDS", 0.01)
    centre.allowed = False
    async with running() as backend:
        assert backend.problem() == NOT_ALLOWED
        assert "Notifications" in backend.fix()
        with pytest.raises(NotShown, match="does not let"):
            await backend.show(YES_NO)
        centre.allowed = True
        await until(lambda: backend.problem() is None, "the leave")
        assert await heard(backend) == ServiceReady()

        assert backend.is_current(await backend.show(YES_NO))


async def test_a_plain_interpreter_of_macos_is_told_that_it_needs_a_bundle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_in_place(monkeypatch, DummyNotificationCenter("pynchy"))
    async with running("darwin") as backend:
        assert backend.problem() == NO_BUNDLE
        assert "python.org" in backend.fix()
        with pytest.raises(NotShown, match="bundles"):
            await backend.show(YES_NO)


async def test_a_library_that_cannot_start_is_no_crash() -> None:
    def fail() -> DesktopNotifier:
        raise RuntimeError("Could not get ToastNotificationManagerForUser")

    backend = SystemBackend("win32", fail)
    task = asyncio.create_task(backend.run())
    await until(backend.tried.is_set, "it to be known")
    task.cancel()

    assert "Could not get Toast" in (backend.problem() or "")


def test_doctor_says_what_a_plain_interpreter_of_macos_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_in_place(monkeypatch, DummyNotificationCenter("pynchy"))
    monkeypatch.setattr(plugin, "make_backend", lambda environ: make_backend(environ, "darwin"))
    settings = Settings(channels={"desktop": DesktopChannelSettings()})
    [finding] = PLUGIN.examine(ChannelContext(settings, {}, tmp_path, name="desktop"))

    assert (finding.status, finding.detail) == (Status.PROBLEM, NO_BUNDLE)
    assert "python.org" in finding.fix


@pytest.mark.parametrize(
    ("system", "library"),
    [("darwin", "desktop_notifier"), ("win32", "desktop_notifier"), ("linux", "jeepney")],
)
def test_each_system_needs_its_own_library(
    monkeypatch: pytest.MonkeyPatch, system: str, library: str
) -> None:
    assert missing_library(system) == ""
    monkeypatch.setattr("pynchy.desktop.find_spec", lambda _: None)
    assert missing_library(system) == library
