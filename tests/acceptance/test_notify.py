"""OpenFlow's tools with a host that has no desktop: what they look like, and what still works."""

import json
from typing import Any

import pytest
from tests.acceptance.support import ERAS, Host, agent_of
from tests.waiting import until

MERGE = {"title": "Merge", "question": "Merge it?", "options": ["Oui, merger", "Plus tard"]}
SHAPES = {
    "ask_user": (
        ["title", "question"],
        (
            "title question options urgency repo branch agent task action_label"
            " wait_for_response timeout"
        ),
    ),
    "notify_commit": (["branch", "message"], "branch message files hash agent"),
    "notify_merge": (
        ["source_branch"],
        "source_branch commits_count files_count version repo agent",
    ),
    "notify_sync": (["worktrees"], "worktrees source repo conflicts"),
    "check_answer": (["request_id"], "request_id timeout"),
}


@pytest.mark.parametrize("era", ERAS)
async def test_the_tools_have_openflows_names_and_arguments(host: Host, era: str) -> None:
    async with agent_of(host, era=era, profile="notify") as agent:
        tools = (await agent.client.list_tools()).tools

    seen = {
        tool.name: (tool.input_schema["required"], " ".join(tool.input_schema["properties"]))
        for tool in tools
    }
    assert seen == SHAPES
    asked = next(t for t in tools if t.name == "ask_user").input_schema["properties"]
    assert asked["wait_for_response"]["default"] is False
    assert asked["timeout"]["default"] == 60


async def test_another_channel_answers_the_call_that_waits(host: Host) -> None:
    async with agent_of(host, profile="notify") as agent:
        call = agent.calling("ask_user", {**MERGE, "wait_for_response": True, "timeout": 600})
        [question] = await host.listed()
        words = host.answer(question["request_id"], "neither of them")
        host.answer(question["request_id"], "Plus tard")

        assert json.loads(await call) == {"response": "accepted", "choice": "Plus tard"}
    assert words.status >= 400


async def test_declining_elsewhere_is_a_dismissal(host: Host) -> None:
    async with agent_of(host, profile="notify") as agent:
        call = agent.calling("ask_user", {**MERGE, "wait_for_response": True, "timeout": 600})
        [question] = await host.listed()
        host.decline(question["request_id"])

        assert json.loads(await call) == {"response": "dismissed", "choice": None}


async def test_what_is_announced_is_in_the_event_log(host: Host) -> None:
    async with agent_of(host, profile="notify", PYNCHY_AGENT="opencode") as agent:
        told = await agent.call("notify_commit", {"branch": "fix", "message": "Mend it"})

        def announced() -> list[dict[str, Any]]:
            return [event for event in host.events() if event["type"] == "announced"]

        [event] = await until(announced, "the announcement")
    _, listed, _ = await host.cli("events")

    assert json.loads(told)["sent"] is True
    assert (event["title"], event["detail"], event["task"]) == ("Commit", "Mend it", "fix")
    assert (event["agent"], event["urgency"]) == ("opencode", "low")
    [line] = [line for line in listed.splitlines() if "announced" in line]
    assert "Commit" in line
    assert "Mend it" in line
    assert host.pending() == []


async def test_the_popup_route_is_for_questions_that_are_there(host: Host) -> None:
    async with agent_of(host, profile="notify") as agent:
        call = agent.calling("ask_user", {**MERGE, "wait_for_response": True, "timeout": 600})
        [question] = await host.listed()
        path = f"/api/questions/{question['request_id']}/close-popup"
        closed = host.http("POST", path, {"by": "ana", "implied_choice": "Plus tard"})
        told = json.loads(await call)

    assert closed.status == 200
    assert (told["response"], told["choice"]) == ("dismissed", None)
    assert told["implied_choice"] == "Plus tard"
    assert [one["state"] for one in host.pending()] == ["open"]
    assert host.http("POST", "/api/questions/none/close-popup", {"by": "ana"}).status == 404
    assert host.http("POST", path, {"by": "ana"}, headers={}).status == 401
