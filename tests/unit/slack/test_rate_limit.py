"""Slack's own limits are kept: it is waited for as it says, and then gone on more slowly."""

import asyncio

import pytest
from slack_sdk.http_retry.response import HttpResponse
from tests.standins.slack import Fault, SlackStandIn

from pynchy.channels.slack import blocks
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.web import ReplyLost, Web, wait_seconds
from pynchy.errors import ChannelUnavailable
from pynchy.model import GroupName

MESSAGES = 5
GROUP = GroupName("g1")
TEST = SlackMessage("a test", [blocks.section("a test")])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("1", 1), ("0", 1), ("", 1), ("soon", 1), ("-3", 1), ("²", 1), ("9" * 400, 600)],
)
def test_slack_is_waited_for_as_long_as_it_says(header: str, seconds: float) -> None:
    response = HttpResponse(status_code=429, headers={"retry-After": header})

    assert wait_seconds(response) == seconds


def test_a_slack_that_does_not_say_how_long_is_waited_for_a_second() -> None:
    assert wait_seconds(HttpResponse(status_code=429, headers={})) == 1
    assert wait_seconds(None) == 1


async def test_after_a_refusal_messages_go_out_more_slowly() -> None:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1")
        slack.limit_rate(2.2)
        web = Web(slack.bot_token, slack.url, pace_seconds=0.4)
        web.open()

        for _ in range(MESSAGES):
            await web.post("C1", None, TEST, group=GROUP)
        await web.close()

        assert len(slack.messages("C1")) == MESSAGES
        # At the usual pace every message but the first would be refused once.
        assert len(slack.calls("chat.postMessage", "429")) <= 1


async def test_who_waits_behind_a_slack_that_does_not_answer_is_told_soon() -> None:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1")
        slack.fail("chat.postMessage", Fault(before=True), times=1_000)
        web = Web(slack.bot_token, slack.url, pace_seconds=0.01)
        web.open()

        sent = await asyncio.gather(
            *(web.post("C1", None, TEST, group=GROUP) for _ in range(20)), return_exceptions=True
        )
        slack.faults.clear()
        await web.post("C1", None, TEST, group=GROUP)
        await web.close()

    assert all(isinstance(each, ChannelUnavailable) for each in sent)
    # The others were not even tried, so none of them can be there.
    assert sum(isinstance(each, ReplyLost) for each in sent) == 3
    assert len(slack.messages("C1")) == 1
