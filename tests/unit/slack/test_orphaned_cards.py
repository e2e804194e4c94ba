"""Cards that count as not shown are removed, but none that is posted again meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.standins.slack import BOT_USER, TEAM, SlackStandIn
from tests.waiting import until

from pynchy.bridge.cards import card_of
from pynchy.channels.slack import blocks
from pynchy.channels.slack.blocks import CardLocation
from pynchy.channels.slack.card_history import CardHistory, Posting
from pynchy.channels.slack.card_index import CardIndex, Identity, PostedCard, make_metadata
from pynchy.channels.slack.posting import OrphanedCards
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.web import Web
from pynchy.errors import ChannelUnavailable
from pynchy.testing import make_pending

LOST = SlackMessage("a card", [blocks.section("a card")])


class Scene:
    """A channel with cards that Slack did not tell of."""

    def __init__(self, slack: SlackStandIn) -> None:
        self.slack = slack
        self.web = Web(slack.bot_token, slack.url, pace_seconds=0)
        self.web.open()
        index, identity = CardIndex(), Identity(TEAM, BOT_USER)
        history = CardHistory(self.web, index, identity, self._identify, frozenset())
        self.orphans = OrphanedCards(self.web, index, history)

    async def _identify(self) -> None:
        raise AssertionError("it is known who we are")

    async def lose(self, name: str) -> tuple[Posting, str]:
        """Post a card, and let it count as not shown. Return it as it is posted again."""
        pending = make_pending(name)
        card = replace(card_of(pending), repeated=True)
        posting = Posting("C1", pending.request_id, pending.questions, card)
        mark = make_metadata("C1", pending.request_id, card, 0)
        _, ts = await self.web.post("C1", None, LOST, group=mark.group, metadata=mark.metadata())
        location = CardLocation("C1", ())
        posted = PostedCard.of("C1", pending.request_id, pending.questions, card, location)
        self.orphans.add(posting, posted)
        return posting, ts

    def there(self) -> list[str]:
        return [message.ts for message in self.slack.messages("C1")]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1")
        scene = Scene(slack)
        yield scene
        await scene.web.close()


async def test_a_card_that_is_posted_again_is_not_removed(scene: Scene) -> None:
    posting, kept = await scene.lose("first")
    _, lost = await scene.lose("second")

    async with scene.orphans.kept(posting):
        assert scene.there() == [kept, lost]
    running = asyncio.create_task(scene.orphans.run())

    # It would have come first.
    await until(lambda: lost not in scene.there(), "the other card to be removed")
    assert scene.there() == [kept]
    running.cancel()


async def test_a_card_that_could_not_be_posted_again_is_removed_after_all(scene: Scene) -> None:
    posting, _ = await scene.lose("first")

    with pytest.raises(ChannelUnavailable):
        async with scene.orphans.kept(posting):
            raise ChannelUnavailable("still away")
    running = asyncio.create_task(scene.orphans.run())

    await until(lambda: not scene.there(), "the card to be removed")
    running.cancel()
