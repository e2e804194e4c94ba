"""Questions of real agents, shown by a real notification service, and answered by real clicks."""

from pathlib import Path

import pytest
from tests.acceptance.support import Host, agent_of
from tests.desktop.conftest import StartHost
from tests.desktop.support import Desktop
from tests.waiting import until


async def asked(host: Host, count: int = 1) -> list[str]:
    """Return the ids of the questions, once the desktop has shown them."""
    listed = await host.listed(count)
    ids = [str(one["request_id"]) for one in listed]
    for one in ids:
        await until(lambda one=one: host.card_states(one)["desktop"] == "shown", "a popup")
    return ids


async def test_a_button_answers_the_call_that_waits(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host, PYNCHY_AGENT="claude", PYNCHY_TASK="shop @ main") as agent:
        call = agent.asking("Deploy <b>now</b>?")
        popup = await desktop.sees("Deploy")
        await desktop.choose("No")
        result = await call

    assert popup.title == "team · claude · shop @ main"
    assert popup.body.startswith("Deploy &lt;b&gt;now&lt;/b&gt;?\n#")
    assert "No" in result
    await desktop.displays(0)


async def test_a_left_click_on_the_popup_opens_the_page_and_answers_nothing(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        [request_id] = await asked(host)
        await desktop.sees("Deploy?")
        desktop.click()
        [page] = await until(desktop.opened, "a page")
        still_open = host.pending()
        host.answer(request_id, "Yes")
        await call

    assert page == f"{host.url}/q/team/{request_id}"
    assert [one["request_id"] for one in still_open] == [request_id]


async def test_a_right_click_closes_the_popup_and_the_question_stays_open(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        [request_id] = await asked(host)
        await desktop.sees("Deploy?")
        desktop.click(3)
        await desktop.displays(0)
        assert [one["state"] for one in host.pending()] == ["open"]
        host.answer(request_id, "Yes")

        assert "Yes" in await call


async def test_a_question_with_more_than_three_options_has_a_button_for_each(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    options = ["North", "East", "South", "West"]
    async with agent_of(host) as agent:
        question = {"question": "Where to?", "options": options}
        call = agent.calling("ask_user", {"questions": [question]})
        await desktop.sees("Where to?")
        await desktop.choose("South")

        assert "South" in await call


async def test_a_popup_that_expired_is_no_answer_and_there_is_one_reminder(
    tmp_path: Path, start_host: StartHost
) -> None:
    desktop = Desktop(tmp_path / "desktop", timeout="3")
    settings = '[channels.desktop]\nremind_after = "4s"\n[groups.team]\nchannels = ["desktop"]\n'
    try:
        await desktop.start()
        host = await start_host(desktop, settings)
        async with agent_of(host) as agent:
            call = agent.asking()
            await asked(host)
            await until(lambda: desktop.seen("Deploy?"), "the popup")
            await desktop.displays(0)
            assert [one["state"] for one in host.pending()] == ["open"]
            await desktop.sees("Still waiting: ")
            await desktop.choose("Yes")

            assert "Yes" in await call
    finally:
        desktop.close()


async def test_a_popup_of_high_urgency_stays_while_others_expire(
    tmp_path: Path, start_host: StartHost
) -> None:
    desktop = Desktop(tmp_path / "desktop", timeout="1")
    try:
        await desktop.start()
        host = await start_host(desktop)
        async with agent_of(host) as agent:
            urgent = agent.asking("Stop it?", urgency="high")
            usual = agent.asking("Go on?")
            ids = await asked(host, 2)
            await until(lambda: desktop.seen("Go on?"), "the usual one")
            await desktop.displays(1)
            assert desktop.seen("Stop it?")[-1].urgency == "CRITICAL"
            await desktop.choose("Yes")

            assert "Yes" in await urgent
            [left] = [one for one in ids if one in {p["request_id"] for p in host.pending()}]
            host.answer(left, "No")
            await usual
    finally:
        desktop.close()


async def test_do_not_disturb_shows_nothing_and_the_deadline_is_ours(
    desktop: Desktop, start_host: StartHost
) -> None:
    settings = '[channels.desktop]\n[groups.team]\nchannels = ["desktop"]\n'
    host = await start_host(desktop, settings)
    desktop.pause(on=True)
    async with agent_of(host) as agent:
        question = {"question": "Deploy?", "options": ["Yes", "No"], "default": "No"}
        result = await agent.call("ask_user", {"questions": [question], "timeout": 2})

    assert "No" in result
    assert desktop.seen() == []
    desktop.pause(on=False)
    await desktop.displays(0)


async def test_two_popups_are_answered_out_of_order(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with (
        agent_of(host, PYNCHY_TASK="first") as one,
        agent_of(host, PYNCHY_TASK="second") as two,
    ):
        first = one.asking("The first?")
        await desktop.sees("The first?")
        second = two.asking("The second?")
        await desktop.sees("The second?")
        desktop.choose_of_all("No (team · mcp · second)")
        assert "No" in await second
        await desktop.displays(1)
        desktop.choose_of_all("Yes (team · mcp · first)")

        assert "Yes" in await first


async def test_what_is_answered_elsewhere_goes_away(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking()
        [request_id] = await asked(host)
        await desktop.displays(1)
        host.answer(request_id, "Yes")
        await call

    await desktop.displays(0)


async def test_what_is_withdrawn_goes_away(desktop: Desktop, start_host: StartHost) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        await agent.asking(wait_for_response=False)
        [request_id] = await asked(host)
        await desktop.displays(1)
        await agent.call("withdraw_question", {"request_id": request_id})

        await desktop.displays(0)


async def test_what_has_expired_goes_away(desktop: Desktop, start_host: StartHost) -> None:
    settings = '[channels.desktop]\n[groups.team]\nchannels = ["desktop"]\n'
    host = await start_host(desktop, f'wait_timeout = "3s"\nanswer_ttl = "3s"\n{settings}')
    async with agent_of(host) as agent:
        await agent.asking(wait_for_response=False)
        await desktop.sees("Deploy?")
        await until(host.history, "its end")

    await desktop.displays(0)
    assert [one["ending"]["outcome"] for one in host.history()] == ["expired"]


@pytest.mark.parametrize("urgency", ["low", "normal"])
async def test_urgency_is_the_services(
    desktop: Desktop, start_host: StartHost, urgency: str
) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.asking(urgency=urgency)
        popup = await desktop.sees("Deploy?")
        await desktop.choose("Yes")
        await call

    assert popup.urgency == urgency.upper()


async def test_a_button_pressed_by_key_answers(desktop: Desktop, start_host: StartHost) -> None:
    host = await start_host(desktop)
    async with agent_of(host) as agent:
        call = agent.calling("ask_user", {"questions": [{"question": "Go?", "options": ["OK"]}]})
        await desktop.sees("Go?")
        await desktop.choose("OK")

        assert "OK" in await call
