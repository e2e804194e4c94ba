"""`pynchy desktop`: popups in a session, for a host that has no desktop itself."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.acceptance.support import PYNCHY, Host, agent_of
from tests.desktop.support import Desktop
from tests.waiting import until

StartSession = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    """A host without any desktop."""
    host = Host(tmp_path / "data")
    yield await host.start()
    host.kill()


@pytest.fixture
def start_session(desktop: Desktop, tmp_path: Path) -> Iterator[StartSession]:
    """Return what starts `pynchy desktop` in the session of the desktop."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        own = {"XDG_STATE_HOME": str(tmp_path / "state")}
        environ = {**os.environ, **desktop.environ, **own}
        with (tmp_path / "session.log").open("ab") as log:
            process = subprocess.Popen(
                [PYNCHY, "desktop", *words], env=environ, stdout=log, stderr=log
            )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


def link_of(host: Host) -> str:
    return str(host.http("POST", "/api/inbox/link", {}).body["url"])


async def test_a_link_signs_the_session_in_and_a_button_answers_the_call(
    desktop: Desktop, host: Host, start_session: StartSession
) -> None:
    start_session("--url", link_of(host))
    async with agent_of(host, PYNCHY_AGENT="claude") as agent:
        call = agent.asking()
        popup = await desktop.sees("Deploy?")
        await desktop.choose("No")

        assert "No" in await call
    assert popup.title == "team · claude"
    await desktop.displays(0)


async def test_it_goes_on_after_a_restart_of_the_host_and_of_itself(
    desktop: Desktop, host: Host, start_session: StartSession
) -> None:
    session = start_session("--url", link_of(host))
    async with agent_of(host) as agent:
        call = agent.asking("The first?")
        await desktop.sees("The first?")
        host.kill()
        await host.start("--port", str(urlsplit(host.url).port))
        await desktop.choose("Yes")
        # The host may come back a moment after the click: then the popup says so, and stays.
        while not call.done():
            if desktop.displayed():
                await desktop.choose("Yes")
            await until(lambda: call.done() or desktop.displayed(), "the popup or its end")
        assert "Yes" in await call
        call = agent.asking("The second?")
        await desktop.sees("The second?")
        session.send_signal(signal.SIGTERM)
        assert session.wait(30) == 0
        start_session("--url", host.url)
        await desktop.sees("The second?", count=2)
        assert desktop.displayed() == 1
        await desktop.choose("No")

        assert "No" in await call


async def test_without_a_link_it_is_the_host_of_this_machine_also_at_another_port(
    desktop: Desktop, host: Host, start_session: StartSession
) -> None:
    start_session("--data-dir", str(host.data))
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        await host.restart()
        await desktop.sees("Deploy?", count=2)
        assert desktop.displayed() == 1
        await desktop.choose("Yes")

        assert "Yes" in await call


async def test_what_is_answered_elsewhere_goes_away(
    desktop: Desktop, host: Host, start_session: StartSession
) -> None:
    start_session("--url", link_of(host))
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        host.answer(host.pending()[0]["request_id"], "Yes")
        await call

    await desktop.displays(0)


async def test_a_click_opens_the_page_at_the_address_that_was_signed_in_to(
    desktop: Desktop, host: Host, start_session: StartSession
) -> None:
    start_session("--url", link_of(host))
    async with agent_of(host) as agent:
        call = agent.asking()
        await desktop.sees("Deploy?")
        request_id = host.pending()[0]["request_id"]
        desktop.click()
        [page] = await until(desktop.opened, "the page")
        host.answer(request_id, "Yes")
        await call

    assert page == f"{host.url}/q/team/{request_id}"


async def test_closing_a_popup_ends_the_call_of_openflows_tool_and_the_inbox_keeps_the_question(
    desktop: Desktop, host: Host, start_session: StartSession
) -> None:
    start_session("--url", link_of(host))
    async with agent_of(host, profile="notify") as agent:
        asked = {"title": "Merge", "question": "Merge it?", "options": ["Yes", "No"]}
        call = agent.calling("ask_user", {**asked, "wait_for_response": True, "timeout": 600})
        await desktop.sees("Merge it?")
        desktop.click(3)
        told = json.loads(await call)

    assert (told["response"], told["choice"]) == ("dismissed", None)
    assert [one["request_id"] for one in host.pending()] == [told["request_id"]]


async def test_what_an_agent_announces_pops_up(
    desktop: Desktop, host: Host, start_session: StartSession, tmp_path: Path
) -> None:
    start_session("--url", link_of(host))
    log = tmp_path / "session.log"
    await until(lambda: "pops up here" in log.read_text(), "the sign-in")
    async with agent_of(host, profile="notify") as agent:
        # What is announced before anybody follows is not shown: a question shows that one does.
        call = agent.calling("ask_user", {"title": "Hello", "question": "There?"})
        await desktop.sees("There?")
        await call
        commit = {"branch": "fix", "message": "Mend <b>it</b>", "agent": "Executeur"}
        await agent.call("notify_commit", commit)
        popup = await desktop.sees("Commit")

    assert popup.title == "team · Executeur · fix"
    assert popup.body == "Commit\nMend &lt;b&gt;it&lt;/b&gt;"
    assert popup.urgency == "LOW"


async def test_a_second_one_for_the_same_host_leaves(
    desktop: Desktop, host: Host, start_session: StartSession, tmp_path: Path
) -> None:
    del desktop
    start_session("--url", link_of(host))
    told = tmp_path / "session.log"
    await until(lambda: "pops up here" in told.read_text(), "the first")

    assert start_session("--url", host.url).wait(30) == 0
    assert "runs already" in told.read_text()


async def test_a_link_that_was_used_and_an_address_without_a_sign_in_are_refused(
    desktop: Desktop, host: Host, start_session: StartSession, tmp_path: Path
) -> None:
    del desktop
    told = tmp_path / "session.log"
    assert start_session("--url", host.url).wait(30) == 1
    assert "not signed in" in told.read_text()
    assert start_session("--url", f"{host.url}/sign-in?key=used").wait(30) == 1
    assert "this link does not work" in told.read_text()


async def test_signed_out_it_ends_and_says_how_to_sign_in_again(
    desktop: Desktop, host: Host, start_session: StartSession, tmp_path: Path
) -> None:
    del desktop
    session = start_session("--url", link_of(host))
    told = tmp_path / "session.log"
    await until(lambda: "pops up here" in told.read_text(), "the sign-in")
    host.http("POST", "/api/inbox/sign-out-all", {})
    async with agent_of(host) as agent:
        call = agent.asking()
        await until(lambda: session.poll() is not None, "its end")
        [question] = await host.listed()
        host.answer(question["request_id"], "Yes")
        await call

    assert session.returncode == 1
    assert "desktop --url LINK" in told.read_text()


async def test_without_a_desktop_it_says_so_and_how_to_fix_it(
    host: Host, start_session: StartSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Desktop, "environ", {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"})

    start_session("--data-dir", str(host.data))

    log = tmp_path / "session.log"
    await until(lambda: "Nothing pops up yet" in log.read_text(), "the reason")
    assert "there is no session bus" in log.read_text()
