"""Popups when the bus, the service or the host is not there, goes away, or lies."""

import asyncio
from pathlib import Path

import pytest
from tests.acceptance.support import agent_of
from tests.desktop.conftest import StartHost
from tests.desktop.support import Desktop
from tests.standins.notification_service import NotificationService
from tests.waiting import until

from pynchy.desktop import dbus

ALONE = '[channels.desktop]\n[groups.team]\nchannels = ["desktop"]\n'


@pytest.fixture
async def bare(tmp_path: Path) -> object:
    """A desktop with a bus, and without a notification service."""
    desktop = Desktop(tmp_path / "desktop")
    try:
        yield await desktop.start(service=False)
    finally:
        desktop.close()


async def test_a_service_that_was_killed_and_comes_back_shows_the_question_again_once(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        await desktop.end_service()
        await desktop.start_service()
        await desktop.sees("Deploy?", count=2)
        await desktop.displays(1)
        await desktop.choose("Yes")

        assert "Yes" in await call
    assert len(desktop.seen("Deploy?")) == 2


async def test_a_host_that_was_killed_and_comes_back_doubles_no_popup(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        await host.restart()
        await desktop.sees("Deploy?", count=2)
        assert desktop.displayed() == 1
        await desktop.choose("Yes")

        assert "Yes" in await call


async def test_a_host_that_comes_back_after_a_restart_of_the_service_doubles_no_popup(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        await desktop.end_service()
        await desktop.start_service()
        await desktop.sees("Deploy?", count=2)
        await host.restart()
        await desktop.sees("Deploy?", count=3)
        assert desktop.displayed() == 1
        await desktop.choose("No")

        assert "No" in await call


async def test_a_signal_of_another_program_presses_no_button(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        popup = await desktop.sees("Deploy?")
        for to in (None, *desktop.clients()):
            desktop.forge("ActionInvoked", "us", (popup.number, "choice-0"), to)
            desktop.forge("NotificationReplied", "us", (popup.number, "forged"), to)
            desktop.forge(
                "NameOwnerChanged", "sss", ("org.freedesktop.Notifications", "", ":1.99"), to
            )
        await desktop.choose("No")

        assert "No" in await call
    assert len(desktop.seen("Deploy?")) == 1


async def test_without_a_bus_the_next_channel_is_used_and_doctor_says_why(
    tmp_path: Path, start_host: StartHost
) -> None:
    desktop = Desktop(tmp_path / "desktop")
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        [question] = await host.listed()
        states = host.card_states(question["request_id"])
        host.answer(question["request_id"], "Yes")
        await call
    _, told, _ = await host.cli("doctor", "--config", str(host.config))

    assert states == {"desktop": "failed", "local": "shown"}
    assert "no session bus" in told


async def test_a_question_pops_up_when_the_service_comes_late(
    bare: Desktop, start_host: StartHost
) -> None:
    host = await start_host(bare, ALONE)
    async with agent_of(host) as agent:
        call = agent.asking()
        await until(host.pending, "the question")
        await bare.start_service()
        await bare.sees("Deploy?")
        await bare.choose("Yes")

        assert "Yes" in await call


async def test_a_bus_that_ends_and_comes_back_is_used_again(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        desktop.end("dunst")
        desktop.end("bus")
        (desktop.folder / "bus").unlink()
        await desktop.start_bus()
        await desktop.start_service()
        await desktop.sees("Deploy?", count=2)
        await desktop.choose("Yes")

        assert "Yes" in await call


async def test_a_service_without_buttons_gets_a_hint_which_does_not_count_as_shown(
    bare: Desktop, start_host: StartHost
) -> None:
    with NotificationService(bare.address, "body") as service:
        host = await start_host(bare, ALONE)
        async with agent_of(host) as agent:
            result = await agent.asking("Deploy <now>?")
        [hint] = service.shown
        await until(lambda: service.closed, "the hint to go away")
        _, told, _ = await host.cli("doctor", "--config", str(host.config))

    assert "shows no buttons" in result
    assert hint.actions == ()
    assert "Deploy <now>?" in hint.body
    assert "Answer it elsewhere: pynchy show" in hint.body
    assert "shows no buttons" in told


async def test_a_service_without_buttons_gets_a_hint_beside_a_channel_that_asks(
    bare: Desktop, start_host: StartHost
) -> None:
    with NotificationService(bare.address, "body") as service:
        host = await start_host(bare)
        async with agent_of(host) as agent:
            call = agent.asking()
            [question] = await host.listed()
            await until(lambda: service.shown, "the hint")
            await until(
                lambda: host.card_states(question["request_id"])["desktop"] == "failed", "its card"
            )
            states = host.card_states(question["request_id"])
            host.answer(question["request_id"], "Yes")

            assert "Yes" in await call

    assert states == {"desktop": "failed", "local": "shown"}


async def test_a_service_that_was_slow_once_was_lost_for_the_session(
    bare: Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dbus, "_CALL_SECONDS", 0.3)
    monkeypatch.setattr(dbus, "_RECONNECT_SECONDS", 0.1)
    service = NotificationService(bare.address, "actions")
    service.busy = 2
    with service:
        backend = dbus.DBusBackend(bare.address)
        job = asyncio.create_task(backend.run())
        await until(backend.tried.is_set, "the first look")
        first = backend.problem()
        await until(lambda: backend.problem() is None, "the service to answer")
        job.cancel()
        await asyncio.wait([job])

    assert first is not None
    assert service.busy == 0


async def test_own_words_are_written_where_the_service_has_a_text_field(
    bare: Desktop, start_host: StartHost
) -> None:
    with NotificationService(bare.address, "actions", "inline-reply") as service:
        host = await start_host(bare)
        async with agent_of(host) as agent:
            call = agent.calling("ask_user", {"questions": [{"question": "Why?"}]})
            [shown] = await until(lambda: service.shown, "the popup")
            service.reply(shown.number, "It <is> ready & waits")

            assert "It <is> ready & waits" in await call
    assert "inline-reply" in shown.actions


async def test_a_service_that_shows_three_buttons_leads_to_the_page_for_more(
    bare: Desktop, start_host: StartHost
) -> None:
    with NotificationService(bare.address, "actions") as service:
        host = await start_host(bare)
        async with agent_of(host) as agent:
            question = {"question": "Where?", "options": ["N", "E", "S", "W"]}
            call = agent.calling("ask_user", {"questions": [question]})
            [shown] = await until(lambda: service.shown, "the popup")
            service.press(shown.number, "open")
            [page] = await until(bare.opened, "a page")
            host.answer(host.pending()[0]["request_id"], "S")
            await call

    assert shown.actions == ("default", "Open", "open", "Open")
    assert page.startswith(host.url)


async def test_doctor_names_the_service(desktop: Desktop, start_host: StartHost) -> None:
    host = await start_host(desktop)
    _, told, _ = await host.cli("doctor", "--config", str(host.config))

    assert "questions pop up, by dunst" in told
