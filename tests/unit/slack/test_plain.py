"""A card that Slack would refuse is shown in plain words rather than not at all."""

import pytest
from tests.standins.slack import SlackStandIn, look
from tests.unit.slack.cards import SAMPLES, Sample

from pynchy.channels.slack import blocks
from pynchy.channels.slack.limits import violations
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.web import Web, in_plain_words
from pynchy.model import GroupName


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_in_plain_words_every_card_fits(sample: Sample) -> None:
    for message in (*sample.rendering().messages, *sample.settled()):
        assert violations(message.text, message.blocks * 60) != []
        plain = in_plain_words(SlackMessage(message.text, message.blocks * 60))
        assert violations(plain.text, plain.blocks) == []


async def test_a_card_that_does_not_fit_is_posted_in_plain_words() -> None:
    question = blocks.section("Deploy?")
    option = blocks.section("1. Yes") | {"accessory": blocks.button("Yes" * 40, "pynchy:x", "v")}
    option["accessory"]["text"]["text"] = "far too long " * 20
    message = SlackMessage("Deploy?", [question, option])

    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1")
        web = Web(slack.bot_token, slack.url, pace_seconds=0)
        _, ts = await web.post("C1", None, message, group=GroupName("g1"))
        await web.update("C1", ts, message)

        [posted] = slack.messages("C1")
        assert slack.refused() == []
        for word in ("Deploy?", "1. Yes", "reply in the thread"):
            assert word in look(posted).text
        assert {call.arguments["parse"] for call in slack.calls("chat.update")} == {"none"}
