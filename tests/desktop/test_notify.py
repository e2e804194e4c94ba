"""OpenFlow's tools, from `pynchy mcp --profile notify` to a click on a real popup and back.

What the plan asks of them is a table in tests/unit/agent/test_notify.py; this is the same with
nothing played.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Agent, Host, agent_of
from tests.desktop.conftest import SETTINGS, StartHost
from tests.desktop.support import Desktop
from tests.standins.notification_service import NotificationService
from tests.waiting import until

ALONE = '[channels.desktop]\n[groups.team]\nchannels = ["desktop"]\n'
MERGE = {
    "title": "Merge",
    "question": "All tests pass. Merge it?",
    "options": ["Oui, merger", "Plus tard"],
    "repo": "shop",
    "branch": "checkout",
    "agent": "Executeur",
}
WAITING = {**MERGE, "wait_for_response": True}


class NotifyAgent:
    """An agent that knows OpenFlow's tools."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(await self._agent.call(tool, arguments))
        return told

    def asking(self, **more: Any) -> Any:
        return self._agent.calling("ask_user", {**WAITING, **more})


@asynccontextmanager
async def notify_agent(host: Host) -> AsyncIterator[NotifyAgent]:
    async with agent_of(host, profile="notify") as agent:
        yield NotifyAgent(agent)


async def test_a_pressed_button_is_accepted_with_its_label(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with notify_agent(host) as agent:
        call = agent.asking()
        popup = await desktop.sees("Merge it?")
        await desktop.choose("Oui, merger")
        told = json.loads(await call)

    assert told == {"response": "accepted", "choice": "Oui, merger"}
    assert popup.title == "team · Executeur · shop @ checkout"
    await desktop.displays(0)


async def test_the_action_button_has_the_label_that_the_agent_gave_it(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with notify_agent(host) as agent:
        call = agent.asking(options=["yes", "no"], action_label="Ship it")
        await desktop.sees("Ship it: yes")
        await desktop.choose("Ship it")
        told = json.loads(await call)

    assert told == {"response": "accepted", "choice": "Ship it"}


@pytest.mark.parametrize("settings", [SETTINGS, ALONE], ids=["beside others", "alone"])
async def test_a_right_click_ends_the_call_as_dismissed(
    desktop: Desktop, start_host: StartHost, settings: str
) -> None:
    host = await start_host(desktop, settings)
    async with notify_agent(host) as agent:
        call = agent.asking(timeout=600)
        await desktop.sees("Merge it?")
        desktop.click(3)
        told = json.loads(await call)

        assert (told["response"], told["choice"]) == ("dismissed", None)
        assert "implied_choice" not in told
        if settings == ALONE:
            await until(host.history, "its end")
            assert host.history()[0]["ending"]["outcome"] == "declined"
            return
        assert [one["state"] for one in host.pending()] == ["open"]
        host.answer(told["request_id"], "Plus tard")
        late = await agent.call("check_answer", request_id=told["request_id"], timeout=600)

    assert late == {"response": "accepted", "choice": "Plus tard"}


async def test_nobody_reacts_and_the_answer_can_be_had_later(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    desktop.pause(on=True)
    async with notify_agent(host) as agent:
        told = json.loads(await agent.asking(timeout=0.5))
        desktop.pause(on=False)
        await desktop.sees("Merge it?")
        await desktop.choose("Plus tard")
        late = await agent.call("check_answer", request_id=told["request_id"], timeout=600)

    assert (told["response"], told["choice"]) == ("timeout", None)
    assert late == {"response": "accepted", "choice": "Plus tard"}


async def test_without_waiting_it_is_sent_at_once_and_the_answer_comes_with_the_next_result(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with notify_agent(host) as agent:
        told = await agent.call("ask_user", **MERGE)
        await desktop.sees("Merge it?")
        await desktop.choose("Oui, merger")
        response = host.group("team") / "responses" / f"{told['request_id']}.json"
        await until(response.exists, "the answer")
        after = await agent.call("notify_commit", branch="main", message="Fix it")

    assert (told["sent"], told["message"]) == (True, "⚠️ Question sent [Executeur]: Merge")
    answered = {"response": "accepted", "choice": "Oui, merger"}
    assert after["earlier"] == [{"request_id": told["request_id"], **answered}]


async def test_several_at_once_are_each_their_own(desktop: Desktop, start_host: StartHost) -> None:
    host = await start_host(desktop)
    async with notify_agent(host) as agent:
        first = agent.asking(question="The first?", task="one")
        await desktop.sees("The first?")
        second = agent.asking(question="The second?", task="two")
        await desktop.sees("The second?")
        desktop.choose_of_all("Plus tard (team · Executeur · shop @ checkout · two)")
        assert json.loads(await second)["choice"] == "Plus tard"
        await desktop.displays(1)
        desktop.click(3)

        assert json.loads(await first)["response"] == "dismissed"


async def test_a_forged_closing_dismisses_nothing(desktop: Desktop, start_host: StartHost) -> None:
    host = await start_host(desktop)
    async with notify_agent(host) as agent:
        call = agent.asking(timeout=600)
        popup = await desktop.sees("Merge it?")
        for to in (None, *desktop.clients()):
            desktop.forge("NotificationClosed", "uu", (popup.number, 2), to)
        await desktop.choose("Oui, merger")

        assert json.loads(await call) == {"response": "accepted", "choice": "Oui, merger"}


async def test_a_service_that_closes_what_was_pressed_dismisses_nothing(
    tmp_path: Path, start_host: StartHost
) -> None:
    bare = Desktop(tmp_path / "desktop")
    try:
        await bare.start(service=False)
        with NotificationService(bare.address, "actions") as service:
            host = await start_host(bare)
            async with notify_agent(host) as agent:
                call = agent.asking(timeout=600)
                [shown] = await until(lambda: service.shown, "the popup")
                service.press(shown.number, "choice-0")
                service.dismiss(shown.number)

                assert json.loads(await call) == {"response": "accepted", "choice": "Oui, merger"}
    finally:
        bare.close()


async def test_an_announcement_pops_up_without_a_button(
    desktop: Desktop, start_host: StartHost
) -> None:
    host = await start_host(desktop)
    async with notify_agent(host) as agent:
        told = await agent.call("notify_merge", source_branch="fix", repo="shop", commits_count=3)
        merge = await desktop.sees("fix → main")
        await agent.call("notify_sync", worktrees=["a", "b"], conflicts=["app.py"])
        sync = await desktop.sees("Conflicts: app.py")

    assert told == {"sent": True, "message": "Merge notified: fix → main"}
    assert merge.body == "Merged\nfix → main\n3 commits"
    assert merge.title.startswith("team · ")
    assert merge.title.endswith(" · shop")
    assert (merge.urgency, sync.urgency) == ("NORMAL", "NORMAL")
    assert host.pending() == []
    assert [e["title"] for e in host.events() if e["type"] == "announced"] == [
        "Merged",
        "Worktrees synchronised",
    ]
