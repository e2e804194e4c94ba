"""Which question has which popup, however often the service or the host restarts."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.standins.notifications import NotificationStandIn, StandInBackend
from tests.waiting import until

from pynchy.bridge.cards import card_of
from pynchy.desktop import popups
from pynchy.desktop.backend import Pressed
from pynchy.desktop.places import MAX_POPUPS_OF_GROUP
from pynchy.desktop.popup import BODY, Abilities, Popup, PopupKey, PopupQuestion
from pynchy.desktop.popup_ids import PopupIds
from pynchy.desktop.popups import OnlyHint, PopupNotice, Popups
from pynchy.errors import ChannelUnavailable, NotShown
from pynchy.model import Answer, GroupName, Option, Question, Urgency
from pynchy.safe_folder import Folder
from pynchy.testing import make_pending


def question(number: int = 1, group: str = "g1") -> PopupQuestion:
    asked = Question(f"Deploy {number}?", options=(Option("Yes"), Option("No")))
    pending = replace(make_pending(f"request-{number}", questions=(asked,)), group=GroupName(group))
    return PopupQuestion(pending.request_id, pending.questions, card_of(pending))


class Session:
    """Popups in a service, and what was passed on."""

    def __init__(self, folder: Path, service: NotificationStandIn, **more: float) -> None:
        self.service = service
        self.backend = StandInBackend(service)
        self.popups = Popups(self.backend, self, PopupIds(Folder(folder, "desktop")), **more)
        self.answers: list[tuple[str, Answer]] = []
        self.dismissed: list[tuple[str, str]] = []
        self.opened: list[str] = []
        self.told: PopupNotice | None = None
        self.wait = asyncio.Event()
        self.wait.set()

    async def answer(self, asked: PopupQuestion, answer: Answer) -> PopupNotice | None:
        self.answers.append((asked.request_id, answer))
        await self.wait.wait()
        return self.told

    async def dismiss(self, asked: PopupQuestion, implied: str) -> None:
        self.dismissed.append((asked.request_id, implied))

    async def open_page(self, asked: PopupQuestion) -> None:
        self.opened.append(asked.request_id)

    @asynccontextmanager
    async def running(self, *asked: PopupQuestion) -> AsyncIterator[None]:
        await self.popups.restore(asked)
        jobs = [asyncio.create_task(job()) for job in (self.backend.run, self.popups.run)]
        await until(self.backend.tried.is_set)
        try:
            yield
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.wait(jobs)

    @property
    def bodies(self) -> list[str]:
        return [popup.body for popup in self.service.screen.values()]


async def test_two_popups_are_answered_out_of_order_each_its_own(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        first, second = [await session.popups.show(question(n)) for n in (1, 2)]
        session.backend.press(second, "No")
        session.backend.press(first, "Yes")
        await until(lambda: not session.service.screen, "both to go away")

    assert session.answers == [("request-2", Answer(("No",))), ("request-1", Answer(("Yes",)))]


async def test_a_double_click_is_one_answer(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        shown = await session.popups.show(question())
        session.wait.clear()
        session.backend.press(shown, "Yes")
        session.backend.press(shown, "No")
        session.backend.click(shown)
        await until(lambda: session.opened, "what came last")
        session.wait.set()
        await until(lambda: not session.service.screen, "it to go away")

    assert session.answers == [("request-1", Answer(("Yes",)))]


async def test_a_press_that_was_told_again_while_its_popup_closed_was_a_second_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, NotificationStandIn())
    closing, may_close = asyncio.Event(), asyncio.Event()
    close = session.popups.close

    async def slowly(key: PopupKey) -> None:
        closing.set()
        await may_close.wait()
        await close(key)

    monkeypatch.setattr(session.popups, "close", slowly)
    async with session.running():
        shown = await session.popups.show(question())
        session.backend.press(shown, "Yes")
        await closing.wait()
        session.backend.press(shown, "Yes")
        session.backend.click(shown)
        await until(lambda: session.opened, "what came last")
        may_close.set()
        await until(lambda: not session.service.screen, "it to go away")

    assert session.answers == [("request-1", Answer(("Yes",)))]


async def test_a_closed_popup_is_no_answer_and_counts_when_it_is_taken_from_the_centre(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        shown = await session.popups.show(question())
        popup = session.service.screen[shown]
        session.backend.dismiss(shown)
        await until(lambda: session.dismissed, "the dismissal")
        session.service.screen[shown] = popup
        session.backend.press(shown, "Yes")
        await until(lambda: session.answers, "the answer")

    assert session.dismissed == [("request-1", "")]


async def test_a_service_that_closes_what_was_pressed_dismisses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        for number in (1, 2):
            await session.popups.show(question(number))
        first, second = session.service.screen
        session.backend.click(first)
        session.backend.dismiss(first)
        session.wait.clear()
        session.backend.press(second, "Yes")
        session.backend.dismiss(second)
        await until(lambda: session.answers, "the answer")
        assert session.dismissed == []
        session.wait.set()

        monkeypatch.setattr(popups, "_CLOSES_ITSELF_SECONDS", 0)
        session.service.screen[first] = Popup("t", "b")
        session.backend.dismiss(first)
        await until(lambda: session.dismissed, "a closing that nothing came before")

    assert session.dismissed == [("request-1", "")]


async def test_closing_a_hint_dismisses_nothing(tmp_path: Path) -> None:
    service = NotificationStandIn(Abilities(actions=False))
    session = Session(tmp_path, service)
    async with session.running():
        with pytest.raises(OnlyHint):
            await session.popups.show(question())
        [hint] = service.screen
        session.backend.dismiss(hint)
        session.backend.happenings.put_nowait(Pressed(hint, BODY))
        await until(lambda: session.opened, "what came after it")

    assert session.dismissed == []


async def test_a_service_that_restarts_shows_each_open_question_again_once(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        for number in (1, 2, 3):
            await session.popups.show(question(number))
        await session.popups.close(question(2).key)
        session.service.restart()
        session.backend.come_back()
        await until(lambda: len(session.service.screen) == 2, "the open ones")
        [first, _] = session.service.screen
        session.backend.press(first, "Yes")
        await until(lambda: session.answers, "an answer")

    assert [a for a, _ in session.answers] == ["request-1"]
    assert len(session.service.shown) == 5


async def test_a_host_that_restarts_replaces_its_popups_and_doubles_none(tmp_path: Path) -> None:
    service = NotificationStandIn()
    old = Session(tmp_path, service)
    async with old.running():
        for number in (1, 2):
            await old.popups.show(question(number))
        service.restart()
        old.backend.come_back()
        await until(lambda: len(service.screen) == 2, "both again")
    new = Session(tmp_path, service)
    # The second was answered while no host ran.
    async with new.running(question(1)):
        await until(lambda: len(service.shown) == 5, "the open one")
        await until(lambda: len(service.screen) == 1, "the answered one to go away")

    assert "Deploy 1?" in new.bodies[0]


async def test_a_reply_that_is_not_taken_is_told_and_the_buttons_stay(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    session.told = PopupNotice("Not taken: only before noon")
    async with session.running():
        shown = await session.popups.show(question())
        session.backend.press(shown, "Yes")
        await until(lambda: "only before noon" in session.bodies[0], "the refusal")

    assert [b.label for b in session.service.screen[shown].buttons] == ["Yes", "No"]


async def test_a_reply_to_what_is_over_is_told_without_buttons(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    session.told = PopupNotice("This question is over already", is_over=True)
    async with session.running():
        shown = await session.popups.show(question())
        session.backend.press(shown, "Yes")
        await until(lambda: "over already" in session.bodies[0], "the refusal")

    assert session.service.screen[shown].buttons == ()


async def test_a_service_without_buttons_gets_one_plain_hint_which_goes_away(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, NotificationStandIn(Abilities(actions=False)))
    async with session.running():
        for _ in range(2):
            with pytest.raises(OnlyHint, match="no buttons"):
                await session.popups.show(question())
        [hint] = session.service.screen.values()
        await session.popups.close(question().key)

    assert hint.buttons == ()
    assert session.service.screen == {}
    assert len(session.service.shown) == 1


async def test_a_better_service_shows_the_popup_and_shows_it_again_after_its_restart(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, NotificationStandIn(Abilities(actions=False)))
    async with session.running():
        with pytest.raises(OnlyHint):
            await session.popups.show(question())
        session.service.abilities = Abilities()
        await session.popups.show(question())
        session.service.restart()
        session.backend.come_back()
        await until(lambda: session.service.screen, "the popup again")

    assert [b.label for p in session.service.screen.values() for b in p.buttons] == ["Yes", "No"]


async def test_a_popup_that_the_service_refuses_keeps_no_other_from_being_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, NotificationStandIn())
    put = session.service.put

    def refuse_first(popup: Popup, replaces: str) -> str:
        if "Deploy 1?" in popup.body:
            raise ChannelUnavailable("the notification service does not answer")
        return put(popup, replaces)

    async with session.running():
        for number in (1, 2):
            await session.popups.show(question(number))
        monkeypatch.setattr(session.service, "put", refuse_first)
        session.service.restart()
        session.backend.come_back()
        await until(lambda: session.service.screen, "the second again")

    assert "Deploy 2?" in session.bodies[0]


async def test_without_a_service_nothing_is_shown(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    session.service.is_down = True
    async with session.running():
        with pytest.raises(NotShown, match="no notification service"):
            await session.popups.show(question())


async def test_there_is_one_reminder(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn(), remind_seconds=0.001)
    async with session.running():
        shown = await session.popups.show(question())
        await until(lambda: len(session.service.shown) == 2, "the reminder")
        await session.popups.close(question().key)

    (_, first), (reminder_id, reminder) = session.service.shown
    assert reminder_id == shown
    assert (first.title, reminder.title) == ("g1", "Still waiting: g1")


async def test_there_is_no_reminder_of_what_is_over(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn(), remind_seconds=0.001)
    async with session.running():
        await session.popups.show(question(1))
        await session.popups.close(question(1).key)
        await session.popups.show(question(2))
        await until(lambda: len(session.service.shown) == 3, "the reminder of the second")

    assert "Deploy 2?" in session.service.shown[-1][1].body


async def test_a_disk_that_is_full_keeps_no_question_from_being_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    session = Session(tmp_path, NotificationStandIn())
    monkeypatch.setattr(Folder, "replace", full)
    async with session.running():
        assert await session.popups.show(question())


async def test_one_group_filled_the_screen_with_popups(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        await asyncio.gather(*(session.popups.show(question(n, "evil")) for n in range(1, 41)))
        of_evil = len(session.service.screen)
        other = await session.popups.show(question(99, "good"))

        titles = [popup.title for popup in session.service.screen.values()]
        assert of_evil == MAX_POPUPS_OF_GROUP + 1
        assert other in session.service.screen
        assert titles.count("35 more questions wait") == 1


async def test_what_waited_for_a_place_is_shown_when_there_is_one(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        shown = [await session.popups.show(question(n)) for n in range(1, 8)]
        summary = shown[-1]
        assert "2 more questions wait" in session.service.screen[summary].title
        session.backend.press(summary, "Open")
        await until(lambda: session.opened == ["request-6"], "the page of the first that waits")

        session.backend.press(shown[0], "Yes")
        await until(lambda: "Deploy 6?" in "".join(session.bodies), "the next")
        assert session.service.screen[summary].title == "1 more question waits"
        session.backend.dismiss(shown[1])
        await until(lambda: "Deploy 7?" in "".join(session.bodies), "the last")
        await until(lambda: summary not in session.service.screen, "the end of the summary")


async def test_a_service_that_comes_back_is_not_flooded_either(tmp_path: Path) -> None:
    service = NotificationStandIn()
    session = Session(tmp_path, service)
    async with session.running(*(question(n) for n in range(1, 41))):
        await until(lambda: len(service.screen) == MAX_POPUPS_OF_GROUP + 1, "the popups")
        service.screen.clear()
        session.backend.come_back()
        await until(lambda: len(service.screen) == MAX_POPUPS_OF_GROUP + 1, "them again")

        await session.popups.close(question(1).key)
        await until(lambda: "34 more" in "".join(p.title for p in service.screen.values()))


async def test_one_that_the_service_did_not_take_once_never_popped_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(popups, "_RETRY_SECONDS", 0.01)
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        shown = [await session.popups.show(question(n)) for n in range(1, 7)]
        takes, show = iter([False, True]), session.backend.show

        async def show_second_time(popup: Popup, replaces: str = "") -> str:
            if "Deploy 6?" in popup.body and not next(takes):
                raise NotShown("it does not answer")
            return await show(popup, replaces)

        monkeypatch.setattr(session.backend, "show", show_second_time)
        session.backend.press(shown[0], "Yes")

        await until(lambda: "Deploy 6?" in "".join(session.bodies), "the one that waited")


async def test_a_popup_that_is_closed_while_its_answer_is_on_the_way_is_no_dismissal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(popups, "_CLOSES_ITSELF_SECONDS", 0.0)
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        shown, other = [await session.popups.show(question(n)) for n in (1, 2)]
        session.wait.clear()
        session.backend.press(shown, "Yes")
        await until(lambda: session.answers, "the answer on its way")
        session.backend.dismiss(shown)
        session.backend.dismiss(other)
        await until(lambda: session.dismissed, "what was closed last")
        session.wait.set()

    assert session.dismissed == [("request-2", "")]


async def test_closing_a_hint_of_a_restarted_session_was_a_dismissal(tmp_path: Path) -> None:
    service = NotificationStandIn(Abilities(actions=False))
    session = Session(tmp_path, service)
    async with session.running(question(1)):
        await until(lambda: service.screen, "the hint")
        [hint] = service.screen
        session.backend.dismiss(hint)
        service.abilities = Abilities()
        service.restart()
        session.backend.come_back()
        await until(lambda: service.screen, "the popup")
        [popup] = service.screen.values()

    assert session.dismissed == []
    assert [button.label for button in popup.buttons] == ["Yes", "No"]


async def test_a_question_that_was_over_came_back_with_the_service(tmp_path: Path) -> None:
    service = NotificationStandIn()
    session = Session(tmp_path, service)
    async with session.running():
        await session.popups.show(question(1))
        service.is_down = True
        with pytest.raises(ChannelUnavailable):
            await session.popups.close(question(1).key)
        service.is_down = False
        session.backend.come_back()
        await until(lambda: not service.screen, "the popup to go away")


async def test_a_summary_was_left_behind_by_a_restart(tmp_path: Path) -> None:
    service, asked = NotificationStandIn(), [question(n) for n in range(1, 8)]
    first = Session(tmp_path, service)
    async with first.running():
        for one in asked:
            await first.popups.show(one)

    second = Session(tmp_path, service)
    async with second.running(*asked):
        titles = [popup.title for popup in service.screen.values()]
        assert titles.count("2 more questions wait") == 1
        for one in asked[:2]:
            await second.popups.close(one.key)
        await until(lambda: len(service.screen) == 5, "the end of the summary")


async def test_a_host_that_stopped_right_after_a_popup_came_up_doubled_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, keep = NotificationStandIn(), PopupIds.keep
    is_writing, may_write = threading.Event(), threading.Event()

    def keep_slowly(ids: PopupIds, key: PopupKey, popup_id: str) -> None:
        is_writing.set()
        may_write.wait()
        keep(ids, key, popup_id)

    monkeypatch.setattr(PopupIds, "keep", keep_slowly)
    old = Session(tmp_path, service)
    await old.popups.restore([question(1)])
    jobs = [asyncio.create_task(job()) for job in (old.backend.run, old.popups.run)]
    await until(is_writing.is_set, "the id to be written")
    for job in jobs:
        job.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    stopped_early = all(job.done() for job in jobs)
    may_write.set()
    await asyncio.wait(jobs)

    assert not stopped_early
    async with Session(tmp_path, service).running(question(1)):
        await until(lambda: len(service.shown) == 2, "the popup")
    assert len(service.screen) == 1


async def calls_to_close(folder: Path, waiting: int, closed: int = 20) -> int:
    """Return how many functions are called while some of those that wait are withdrawn."""
    folder.mkdir()
    session = Session(folder, NotificationStandIn())
    async with session.running():
        for number in range(waiting):
            await session.popups.show(question(number))
        calls = 0

        def count(_frame: object, event: str, _arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            for number in range(waiting - closed, waiting):
                await session.popups.close(question(number).key)
        finally:
            sys.setprofile(None)
    return calls


async def test_each_withdrawn_question_looked_at_all_that_wait(tmp_path: Path) -> None:
    few = await calls_to_close(tmp_path / "few", 50)
    many = await calls_to_close(tmp_path / "many", 400)

    assert many < 2 * few


async def test_a_hundred_that_are_withdrawn_at_once_are_one_change_of_the_summary(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, NotificationStandIn())
    async with session.running():
        await asyncio.gather(*(session.popups.show(question(n)) for n in range(120)))
        before = len(session.service.shown)
        await asyncio.gather(*(session.popups.close(question(n).key) for n in range(20, 120)))
        await until(
            lambda: (
                "15 more questions wait"
                in {popup.title for popup in session.service.screen.values()}
            ),
            "the last count",
        )

    assert len(session.service.shown) - before < 50


async def test_the_most_urgent_that_waits_is_shown_first(tmp_path: Path) -> None:
    session = Session(tmp_path, NotificationStandIn())
    urgent = question(9)
    urgent = replace(urgent, card=replace(urgent.card, urgency=Urgency.HIGH))
    async with session.running():
        for one in [*(question(n) for n in range(1, 9)), urgent]:
            await session.popups.show(one)
        await session.popups.close(question(1).key)

        assert "Deploy 9?" in "".join(session.bodies)
        assert "Deploy 6?" not in "".join(session.bodies)
