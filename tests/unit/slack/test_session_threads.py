"""Which thread the cards of a session are in: a group's session is its own, whatever its id."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.standins.slack import SlackStandIn

from pynchy.bridge.cards import card_of
from pynchy.channels.slack.channel import Secrets, SlackChannel
from pynchy.config import SlackChannelSettings
from pynchy.model import GroupName, RequestId, SessionId
from pynchy.testing import FakeReplyHandler, make_pending

CHAT = "C1"


@asynccontextmanager
async def opened(slack: SlackStandIn) -> AsyncIterator[SlackChannel]:
    settings = SlackChannelSettings(api_url=slack.url, thread_per_session=True)
    channel = SlackChannel(settings, Secrets(slack.bot_token, slack.app_token), pace_seconds=0)
    await channel.open(FakeReplyHandler({"U1"}, CHAT))
    try:
        yield channel
    finally:
        await channel.close()


async def ask(channel: SlackChannel, slack: SlackStandIn, group: str, name: str) -> str | None:
    """Ask in the session "nightly" of the group. Return the thread that the card is in."""
    pending = replace(make_pending(name), group=GroupName(group), session_id=SessionId("nightly"))
    await channel.send_ask_user(CHAT, RequestId(name), pending.questions, card=card_of(pending))
    return slack.messages(CHAT)[-1].thread_ts


async def test_a_card_is_not_put_into_the_thread_of_another_groups_session() -> None:
    with SlackStandIn() as slack:
        slack.workspace.add_channel(CHAT)
        async with opened(slack) as channel:
            first = [await ask(channel, slack, group, f"{group}1") for group in ("victim", "evil")]
            roots = [message.ts for message in slack.messages(CHAT)]
            later = [await ask(channel, slack, group, f"{group}2") for group in ("victim", "evil")]
        # The next one knows of the threads only what Slack has kept.
        async with opened(slack) as channel:
            found = [await ask(channel, slack, group, f"{group}3") for group in ("evil", "victim")]

    assert first == [None, None]
    assert later == roots
    assert found == roots[::-1]
