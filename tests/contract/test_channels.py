"""Every channel keeps the same promises, and one that does nothing keeps none.

WhatsApp, which needs a process for each, keeps them in tests/whatsapp/trouble.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.contract.worlds import DesktopWorld, FakeWorld, SlackWorld, WhatsAppWorld

from pynchy.bridge.cards import card_of
from pynchy.channels.base import Channel, LocalChannel, WebChannel
from pynchy.errors import AskingUnsupported, InvalidReply
from pynchy.model import Answer, Card, Question, Reply, RequestId
from pynchy.testing import (
    PROMISES,
    Ability,
    ChannelWorld,
    FakeReplyHandler,
    Promise,
    SeenCard,
    make_pending,
    promises,
)

PENDING = make_pending()


@pytest.mark.parametrize("promise", promises(FakeWorld.cannot), ids=str)
async def test_the_fake_channel_keeps(promise: Promise) -> None:
    async with FakeWorld() as world:
        await promise.check(world)


@pytest.mark.parametrize("promise", promises(SlackWorld.cannot), ids=str)
async def test_slack_keeps(promise: Promise) -> None:
    async with SlackWorld() as world:
        await promise.check(world)


@pytest.mark.parametrize("promise", promises(DesktopWorld.cannot), ids=str)
async def test_the_desktop_keeps(promise: Promise, tmp_path: Path) -> None:
    async with DesktopWorld(tmp_path) as world:
        await promise.check(world)


class IdleChannel(Channel):
    """Says that it has shown a card, and does nothing."""

    name = "idle"

    async def send_ask_user(
        self, jid: str, request_id: RequestId, questions: tuple[Question, ...], *, card: Card
    ) -> str:
        del jid, request_id, questions, card
        return "shown"


class IdleWorld(ChannelWorld):
    """People who see nothing, since there is nothing."""

    chat, first, second, stranger = "", "ana", "ben", "eve"
    patience_seconds = 0.05

    def __init__(self) -> None:
        self.channel = IdleChannel()

    async def restart(self) -> None:
        await self.channel.close()

    def cards(self) -> list[SeenCard]:
        return []

    def told(self, user: str) -> list[str]:
        del user
        return []

    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        del user, card, labels

    async def lose_reply(self) -> None:
        """Nothing is sent."""

    async def go_down(self) -> None:
        """Nobody is there."""


@pytest.mark.parametrize("promise", PROMISES, ids=str)
async def test_a_channel_that_does_nothing_does_not_keep(promise: Promise) -> None:
    with pytest.raises(AssertionError):
        await promise.check(IdleWorld())


class DeafWorld(FakeWorld):
    """A channel that shows its cards, and hears nothing."""

    patience_seconds = 0.05

    async def _say(self, *what: object, **more: object) -> None:
        """Do nothing with it."""


async def test_a_channel_that_hears_nothing_keeps_little() -> None:
    kept = []
    for promise in promises(DeafWorld.cannot):
        try:
            await promise.check(DeafWorld())
        except AssertionError:
            continue
        kept.append(str(promise))

    assert kept == [
        "a_card_shows_everything_that_is_asked",
        "a_card_of_before_a_restart_can_be_settled",
        "a_settled_card_says_that_nobody_answered",
        "what_an_agent_writes_calls_nobody_and_links_nowhere",
    ]


@pytest.mark.parametrize("world", [DesktopWorld, FakeWorld, SlackWorld, WhatsAppWorld])
def test_what_a_channel_cannot_is_declared_with_the_reason(world: type[ChannelWorld]) -> None:
    assert set(world.cannot) <= set(Ability)
    assert all(world.cannot.values())
    assert len(PROMISES) - len(promises(world.cannot)) <= len(world.cannot)


@pytest.mark.parametrize("channel", [LocalChannel(), WebChannel()], ids=["local", "web"])
async def test_a_channel_without_a_service_shows_settles_and_closes(channel: Channel) -> None:
    for _ in range(2):
        shown = await channel.send_ask_user(
            "", PENDING.request_id, PENDING.questions, card=card_of(PENDING)
        )
        await channel.settle_card(
            "", shown, PENDING.request_id, PENDING.questions, card=card_of(PENDING)
        )
        await channel.close()

    assert shown
    assert channel.problem() is None


async def test_a_channel_that_cannot_ask_says_so() -> None:
    with pytest.raises(AskingUnsupported):
        await Channel().send_ask_user(
            "", PENDING.request_id, PENDING.questions, card=card_of(PENDING)
        )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"answers": (Answer(("Nonsense",)),)}, "no option"),
        ({"answers": (Answer(("Yes", "No")),)}, "only one"),
        ({"values": ("1",), "question": 9}, "no question 9"),
    ],
)
async def test_the_suite_refuses_what_the_host_would_refuse(said: dict[str, Any], why: str) -> None:
    handler = FakeReplyHandler({"U1"}, "room")
    handler.put(PENDING)

    with pytest.raises(InvalidReply, match=why):
        await handler.answer(Reply("q1", "Ana", "fake", user_id="U1", chat="room", **said))
