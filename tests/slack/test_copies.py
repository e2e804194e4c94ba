"""Cards that Slack shows a second time, or though it did not say so: one answer closes them all."""

import asyncio

import pytest
from tests.slack.conftest import StartRoom
from tests.slack.support import DEPLOY, Asked, Room
from tests.standins.slack import Fault, Message, look
from tests.waiting import until

from agent_runner.asking import Outcome, Question


async def asked_twice(room: Room) -> tuple[Asked, Message, Message]:
    """Ask so that the card is posted a second time."""
    room.slack.fail("chat.postMessage", Fault(drop=True))
    room.slack.fail("conversations.history", Fault(error="missing_scope"))
    asked = await room.ask(DEPLOY)
    await room.host.state(asked.request_id, "open")
    first, second = room.cards()
    assert "repeat" not in look(first).text
    assert "repeat" in look(second).text
    return asked, first, second


async def test_a_click_on_the_first_copy_answers_and_closes_both(troubled: Room) -> None:
    asked, first, second = await asked_twice(troubled)

    troubled.ana.press(first, "Yes")

    assert await asked.answer() == (("Yes",), None)
    for card in (first, second):
        await troubled.settled(card, "Answered", "Yes", "Ana")


async def test_a_click_on_the_second_copy_closes_both(troubled: Room) -> None:
    asked, first, second = await asked_twice(troubled)

    troubled.ana.press(second, "No")

    assert await asked.answer() == (("No",), None)
    for card in (first, second):
        await troubled.settled(card, "Answered", "No", "Ana")


async def test_a_reply_below_the_first_copy_answers(troubled: Room) -> None:
    asked, first, second = await asked_twice(troubled)

    troubled.ana.reply(first, "tomorrow")

    assert await asked.answer() == ((), "tomorrow")
    for card in (first, second):
        await troubled.settled(card, "tomorrow", "Ana")


async def test_a_copy_is_answered_and_closed_by_a_host_that_did_not_post_it(
    start_room: StartRoom,
) -> None:
    room = await start_room()
    asked, first, second = await asked_twice(room)
    await room.restart()

    room.ana.press(first, "Yes")

    assert await asked.answer() == (("Yes",), None)
    for card in (first, second):
        await room.settled(card, "Answered", "Ana")


async def test_a_click_on_a_copy_counts_though_slack_cannot_say_what_it_is(troubled: Room) -> None:
    asked, first, _ = await asked_twice(troubled)
    troubled.slack.fail("conversations.replies", Fault(before=True), times=20)

    troubled.ana.press(first, "Yes")

    assert await asked.answer() == (("Yes",), None)


async def lost_card(room: Room) -> tuple[Asked, Message]:
    """Ask so that the card is there though Slack has said nothing of it."""
    before = {card.ts for card in room.cards()}
    room.slack.fail("chat.postMessage", Fault(drop=True))
    room.slack.fail("conversations.history", Fault(before=True), times=10_000)
    asked = await room.ask(DEPLOY)
    await room.host.state(asked.request_id, "open")
    await until(lambda: "failed" in str(room.host.question(asked.request_id)), "the failure")
    [card] = [card for card in room.cards() if card.ts not in before]
    return asked, card


async def test_a_card_that_counts_as_failed_can_be_clicked_while_it_is_there(
    troubled_pair: Room,
) -> None:
    asked, card = await lost_card(troubled_pair)

    troubled_pair.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    await over(troubled_pair, card)


async def test_a_reply_below_a_card_that_counts_as_failed_answers(troubled_pair: Room) -> None:
    asked, card = await lost_card(troubled_pair)

    troubled_pair.ana.reply(card, "tomorrow")

    assert await asked.answer() == ((), "tomorrow")
    await over(troubled_pair, card)


async def over(room: Room, card: Message) -> None:
    """Let Slack be well again, and wait until the card asks no more: it is gone, or settled."""
    room.slack.faults.clear()
    await until(lambda: card not in room.cards() or not card.is_open, "the lost card to be over")


async def test_a_card_that_counts_as_failed_is_one_again_when_slack_is_back(
    troubled_pair: Room,
) -> None:
    room = troubled_pair
    asked, _ = await lost_card(room)

    room.slack.faults.clear()
    await room.shown_here(asked)

    await until(lambda: len(open_cards(room)) == 1, "one card")
    [card] = open_cards(room)
    room.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)
    await room.settled(card, "Answered", "Ana")
    assert open_cards(room) == []


async def test_a_card_that_counts_as_failed_is_removed_when_it_was_answered_elsewhere(
    troubled_pair: Room,
) -> None:
    asked, card = await lost_card(troubled_pair)

    assert troubled_pair.host.answer(asked.request_id, "No").status == 200
    assert await asked.answer() == (("No",), None)

    await over(troubled_pair, card)


async def test_a_lost_card_of_a_host_that_was_killed_is_taken_up_by_the_next(
    start_room: StartRoom,
) -> None:
    room = await start_room(channels=("slack", "local"))
    asked, card = await lost_card(room)
    await room.kill()
    room.slack.faults.clear()
    await room.start()

    await room.shown_here(asked)
    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    await room.settled(card, "Answered", "Ana")
    assert room.cards() == [card]


def open_cards(room: Room) -> list[Message]:
    return [card for card in room.cards() if card.is_open]


@pytest.mark.parametrize("searchable", [True, False])
async def test_what_was_posted_of_a_card_that_fails_is_removed(
    troubled: Room,
    searchable: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    if not searchable:
        troubled.slack.fail("conversations.history", Fault(error="missing_scope"), times=10)
    long = Question("why not " * 2_000, options=DEPLOY.options)
    troubled.slack.fail("chat.postMessage", Fault())
    troubled.slack.fail("chat.postMessage", Fault(error="restricted_action"))

    asked = await troubled.ask(long)

    assert (await asyncio.wait_for(asked.result(), 60)).outcome is Outcome.UNDELIVERABLE
    await until(lambda: not troubled.cards(), "the first part to be removed")


async def test_a_card_that_may_not_be_changed_any_more_is_answered_below(troubled: Room) -> None:
    room = troubled
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)
    room.slack.fail("chat.update", Fault(error="edit_window_closed"), times=100)

    room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    [below] = await until(lambda: room.slack.thread(card), "how it ended")
    assert "Answered" in look(below).text
    assert "Ana" in look(below).text
    await room.host.closed(asked.request_id)
    assert len(room.slack.thread(card)) == 1
