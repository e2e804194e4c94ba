"""What wants no answer: a few popups of each group, whatever comes at once and whatever fails."""

import asyncio
from dataclasses import replace

import pytest
from tests.standins.notifications import NotificationStandIn, StandInBackend

from pynchy.desktop import announcement_popups
from pynchy.desktop.announcement_popups import MAX_ANNOUNCEMENTS_OF_GROUP, AnnouncementPopups
from pynchy.desktop.popup import Popup
from pynchy.errors import NotShown
from pynchy.events import Announcement
from pynchy.model import GroupName, Urgency

TOLD = Announcement(GroupName("evil"), "Look!", urgency=Urgency.HIGH)


class SlowBackend(StandInBackend):
    """Takes a moment for each popup, as every service does; `fails` are those it does not take."""

    def __init__(self, service: NotificationStandIn) -> None:
        super().__init__(service)
        self.fails: set[str] = set()

    async def show(self, popup: Popup, replaces: str = "") -> str:
        await asyncio.sleep(0)
        if popup.body.split("\n")[-1] in self.fails:
            raise NotShown("it does not answer")
        return await super().show(popup, replaces)


@pytest.fixture
def service() -> NotificationStandIn:
    return NotificationStandIn()


def bodies(service: NotificationStandIn) -> list[str]:
    return [popup.body.split("\n")[-1] for popup in service.screen.values()]


@pytest.fixture
def _many_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcement_popups, "_BURST", 1_000)


@pytest.mark.usefixtures("_many_are_read")
async def test_announcements_of_one_group_filled_the_screen(service: NotificationStandIn) -> None:
    popups = AnnouncementPopups(SlowBackend(service))
    for number in range(50):
        await popups.show(replace(TOLD, text=str(number)))
    await popups.show(replace(TOLD, group=GroupName("good"), text="Merged"))

    assert bodies(service) == ["48", "49", "Merged"]
    assert {popup.urgency for popup in service.screen.values()} == {Urgency.NORMAL}


@pytest.mark.usefixtures("_many_are_read")
async def test_two_announcements_at_once_ended_the_limit(service: NotificationStandIn) -> None:
    popups = AnnouncementPopups(SlowBackend(service))
    for number in range(3):
        await popups.show(replace(TOLD, text=str(number)))
    await asyncio.gather(*(popups.show(replace(TOLD, text=str(n))) for n in range(3, 9)))
    for number in range(9, 60):
        await popups.show(replace(TOLD, text=str(number)))

    assert len(service.screen) == MAX_ANNOUNCEMENTS_OF_GROUP
    assert bodies(service) == ["59", "58"] or bodies(service) == ["58", "59"]


@pytest.mark.usefixtures("_many_are_read")
async def test_an_announcement_that_failed_left_its_place_taken(
    service: NotificationStandIn,
) -> None:
    backend = SlowBackend(service)
    popups = AnnouncementPopups(backend)
    for number in range(2):
        await popups.show(replace(TOLD, text=str(number)))
    backend.fails = {"2", "3", "4"}
    for number in range(2, 5):
        with pytest.raises(NotShown):
            await popups.show(replace(TOLD, text=str(number)))
    for number in range(5, 9):
        await popups.show(replace(TOLD, text=str(number)))

    assert sorted(bodies(service)) == ["7", "8"]


async def test_one_group_announces_no_more_than_is_read(service: NotificationStandIn) -> None:
    popups = AnnouncementPopups(SlowBackend(service))
    told = await asyncio.gather(
        *(popups.show(replace(TOLD, text=str(n))) for n in range(60)), return_exceptions=True
    )
    await popups.show(replace(TOLD, group=GroupName("good"), text="Merged"))

    assert sum(isinstance(one, NotShown) for one in told) >= 45
    assert bodies(service)[-1] == "Merged"
