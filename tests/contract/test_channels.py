"""Every channel keeps the same promises; a new one joins by the fixture."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.waiting import until
from tests.whatsapp.support import STAND_IN, pair

from pynchy.bridge.cards import card_of
from pynchy.channels.base import Channel, ReplyHandler
from pynchy.channels.slack.channel import Secrets, SlackChannel
from pynchy.channels.token import LocalChannel, WebChannel
from pynchy.channels.whatsapp.channel import WhatsAppChannel
from pynchy.channels.whatsapp.inbound import WhatsAppGroups
from pynchy.config import SlackChannelSettings
from pynchy.errors import AskingUnsupported
from pynchy.model import Answer, Ending, OutcomeKind, ShownCard, State
from pynchy.testing import NOON, FakeChannel, make_pending
from pynchy.testing_slack import SlackStandIn
from pynchy.testing_whatsapp import WhatsAppStandIn

PENDING = make_pending()
ENDED = make_pending(
    state=State.DELIVERING,
    ending=Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), "ana", "local"),
)


CHATS = {"slack": "C1", "whatsapp": "+49 170 1111111"}


@asynccontextmanager
async def slack_channel(_: Path) -> AsyncIterator[Channel]:
    with SlackStandIn() as slack:
        slack.workspace.add_channel(CHATS["slack"])
        settings = SlackChannelSettings(api_url=slack.url)
        made = SlackChannel(settings, Secrets(slack.bot_token, slack.app_token), pace_seconds=0)
        yield made
        await made.close()


@asynccontextmanager
async def whatsapp_channel(folder: Path) -> AsyncIterator[Channel]:
    pair(folder)
    home = folder / "whatsapp"
    with WhatsAppStandIn() as whatsapp, pytest.MonkeyPatch.context() as patch:
        patch.setenv(STAND_IN, whatsapp.address)
        made = WhatsAppChannel(home, home / "session.db", WhatsAppGroups(), pace_seconds=0)
        await made.open(NoCards())
        await until(lambda: made.problem() is None, "the connection")
        yield made
        await made.close()


class NoCards(ReplyHandler):
    """A desk that nobody has come to."""

    def open_cards(self, channel: str) -> list[ShownCard]:
        del channel
        return []


@pytest.fixture(params=[LocalChannel, WebChannel, FakeChannel, slack_channel, whatsapp_channel])
async def channel(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Channel]:
    if isinstance(request.param, type):
        yield request.param()
        return
    async with request.param(tmp_path) as made:
        yield made


async def test_showing_returns_an_id(channel: Channel) -> None:
    shown = await channel.send_ask_user(
        CHATS.get(channel.name, ""), PENDING.request_id, PENDING.questions, card=card_of(PENDING)
    )

    assert shown
    assert isinstance(shown, str)


async def test_a_card_may_be_shown_and_settled_again(channel: Channel) -> None:
    for _ in range(2):
        shown = await channel.send_ask_user(
            CHATS.get(channel.name, ""),
            PENDING.request_id,
            PENDING.questions,
            card=card_of(PENDING),
        )
        await channel.settle_card(
            CHATS.get(channel.name, ""),
            shown,
            ENDED.request_id,
            ENDED.questions,
            card=card_of(ENDED),
        )

    assert channel.problem() is None


async def test_it_closes_even_if_it_was_never_opened(channel: Channel) -> None:
    await channel.close()


async def test_a_channel_that_cannot_ask_says_so() -> None:
    with pytest.raises(AskingUnsupported):
        await Channel().send_ask_user(
            "", PENDING.request_id, PENDING.questions, card=card_of(PENDING)
        )
