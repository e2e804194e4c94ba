"""Groups that share a chat take turns in it: what one asks does not hide what another asks."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.contract.worlds import SlackWorld, WhatsAppWorld

from pynchy.bridge.cards import card_of
from pynchy.model import GroupName, PendingQuestion, Question, RequestId, ShortId, Urgency
from pynchy.testing import ChannelWorld, FakeReplyHandler, make_pending

FLOOD = 30


def asked(group: str, number: int, urgency: Urgency = Urgency.NORMAL) -> PendingQuestion:
    return replace(
        make_pending(),
        request_id=RequestId(f"{group}-{number}"),
        short_id=ShortId(f"{group[0]}{number:03}"),
        group=GroupName(group),
        questions=(Question(f"From {group}, number {number}?"),),
        urgency=urgency,
    )


async def show(world: ChannelWorld, questions: Iterable[PendingQuestion]) -> list[str]:
    """Send all of them at once. Return the texts of the cards, first shown first."""
    async with world:
        await world.channel.open(FakeReplyHandler({world.first}, world.chat))
        await asyncio.gather(
            *(
                world.channel.send_ask_user(
                    world.chat, each.request_id, each.questions, card=card_of(each)
                )
                for each in questions
            )
        )
        return [card.text for card in world.cards()]


def place(shown: list[str], words: str) -> int:
    return next(number for number, text in enumerate(shown) if words in text)


async def check_flood(world: ChannelWorld) -> None:
    flood = [asked("evil", number) for number in range(FLOOD)]

    shown = await show(world, [*flood, asked("victim", 1), asked("evil", 99, Urgency.HIGH)])

    assert len(shown) == FLOOD + 2
    # The first card is on its way when the others come; then the groups take turns.
    assert place(shown, "From victim") <= 2
    assert place(shown, "From evil, number 99?") <= 2
    rest = [place(shown, f"From evil, number {number}?") for number in range(FLOOD)]
    assert rest == sorted(rest)


async def test_a_flood_of_one_group_does_not_hide_the_card_of_another_in_slack() -> None:
    await check_flood(SlackWorld())


async def test_a_flood_of_one_group_does_not_hide_the_card_of_another_in_whatsapp(
    tmp_path: Path,
) -> None:
    await check_flood(WhatsAppWorld(tmp_path))
