"""Names are known ahead; none that is slow to come holds up an answer; teams fail closed."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.standins.slack import OTHER_TEAM, TEAM, Fault, SlackStandIn
from tests.waiting import until

from pynchy.channels.slack.payloads import SlackUser, read_click, read_thread_reply
from pynchy.channels.slack.people import People
from pynchy.channels.slack.web import Web

ANA = SlackUser("U1", frozenset(), "ana")
NAMELESS = SlackUser("U1", frozenset())


@pytest.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    with SlackStandIn() as slack:
        slack.workspace.add_user("U1", "Ana Maria")
        slack.workspace.add_user("U2", "Guest", OTHER_TEAM)
        yield slack


def people(slack: SlackStandIn, *ahead: str) -> People:
    return People(Web(slack.bot_token, slack.url, pace_seconds=0), ahead)


async def test_a_name_that_came_along_is_taken_without_asking(slack: SlackStandIn) -> None:
    assert await people(slack).name(ANA) == "ana"
    assert slack.calls("users.info") == []


async def test_who_may_answer_is_looked_up_ahead_and_once(slack: SlackStandIn) -> None:
    known = people(slack, "U1")
    running = asyncio.create_task(known.run())
    known.look_ahead()
    known.look_ahead()
    await until(lambda: slack.calls("users.info"), "the look")

    async def name() -> bool:
        return await known.name(ANA) == "Ana Maria"

    await until(name, "the name")
    assert await known.name(NAMELESS) == "Ana Maria"
    running.cancel()
    assert len(slack.calls("users.info")) == 1


async def test_a_failure_is_not_repeated_for_every_reply(slack: SlackStandIn) -> None:
    slack.fail("users.info", Fault(error="user_not_found"))
    known = people(slack)

    assert [await known.name(NAMELESS) for _ in range(3)] == ["U1"] * 3
    assert await known.name(ANA) == "ana"
    assert len(slack.calls("users.info", "user_not_found")) == 1
    assert slack.calls("users.info") == []


async def test_the_team_is_asked_for_where_slack_does_not_name_it(slack: SlackStandIn) -> None:
    known = people(slack)

    assert await known.team(NAMELESS) == TEAM
    assert await known.team(SlackUser("U2", frozenset())) == OTHER_TEAM
    assert await known.team(SlackUser("U404", frozenset())) == ""


def test_the_workspace_of_the_app_is_not_taken_for_the_persons() -> None:
    click = read_click(
        {
            "user": {"id": "U1"},
            "team": {"id": TEAM},
            "container": {"channel_id": "C1", "message_ts": "1.0"},
            "actions": [{"action_id": "pynchy:pick:0:0"}],
        }
    )
    said = read_thread_reply({"user": "U1", "channel": "C1", "ts": "2.0", "thread_ts": "1.0"})

    assert click is not None
    assert said is not None
    assert click.person.teams == said.person.teams == frozenset()
