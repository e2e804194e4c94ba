"""Every channel keeps the same promises; a new one joins by the fixture."""

from collections.abc import AsyncIterator

import pytest

from pynchy.bridge.cards import card_of
from pynchy.channels.base import Channel
from pynchy.channels.local import LocalChannel
from pynchy.channels.slack.channel import Secrets, SlackChannel
from pynchy.channels.web import WebChannel
from pynchy.config import SlackChannelSettings
from pynchy.errors import AskingUnsupported
from pynchy.model import Answer, Ending, OutcomeKind, State
from pynchy.testing import NOON, FakeChannel, make_pending
from pynchy.testing_slack import SlackStandIn

PENDING = make_pending()
ENDED = make_pending(
    state=State.DELIVERING,
    ending=Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), "ana", "local"),
)


CHAT = "C1"


@pytest.fixture(params=[LocalChannel, WebChannel, FakeChannel, SlackChannel])
async def channel(request: pytest.FixtureRequest) -> AsyncIterator[Channel]:
    if request.param is not SlackChannel:
        yield request.param()
        return
    with SlackStandIn() as slack:
        slack.workspace.add_channel(CHAT)
        settings = SlackChannelSettings(api_url=slack.url)
        made = SlackChannel(settings, Secrets(slack.bot_token, slack.app_token), pace_seconds=0)
        yield made
        await made.close()


async def test_showing_returns_an_id(channel: Channel) -> None:
    shown = await channel.send_ask_user(
        CHAT, PENDING.request_id, PENDING.questions, card=card_of(PENDING)
    )

    assert shown
    assert isinstance(shown, str)


async def test_a_card_may_be_shown_and_settled_again(channel: Channel) -> None:
    for _ in range(2):
        shown = await channel.send_ask_user(
            CHAT, PENDING.request_id, PENDING.questions, card=card_of(PENDING)
        )
        await channel.settle_card(
            CHAT, shown, ENDED.request_id, ENDED.questions, card=card_of(ENDED)
        )

    assert channel.problem() is None


async def test_it_closes_even_if_it_was_never_opened(channel: Channel) -> None:
    await channel.close()


async def test_a_channel_that_cannot_ask_says_so() -> None:
    with pytest.raises(AskingUnsupported):
        await Channel().send_ask_user(
            CHAT, PENDING.request_id, PENDING.questions, card=card_of(PENDING)
        )
