"""Which question a reply in a thread is for, and which thread a question goes to."""

import asyncio
import copy

from tests.slack.conftest import StartRoom
from tests.slack.support import ANA, DEPLOY, Asked, Room, group_table
from tests.standins.slack import Fault, Message, SlackStandIn, look
from tests.waiting import until

from agent_runner.asking import Approval, Outcome, Question

LONG = "why not " * 2_000


def asking(text: str) -> Question:
    return Question(text, options=DEPLOY.options)


def cards(room: Room) -> list[Message]:
    return [m for m in room.slack.workspace.all_in(room.channel) if m.by_bot]


async def test_a_session_has_a_thread_of_its_own(threaded: Room) -> None:
    room = threaded
    answers = []
    for number in range(3):
        asked, card = await room.asked(asking(f"Question {number}?"))
        if number == 1:
            room.ana.reply(card, f"{room.short_id(asked)}: No")
        else:
            room.ana.press(card, "Yes")
        answers.append((await asked.answer())[0])
        await room.settled(card, "Ana")
        await room.host.closed(asked.request_id)

    first, *others = cards(room)
    assert answers == [("Yes",), ("No",), ("Yes",)]
    assert first.thread_ts is None
    assert [card.thread_ts for card in others] == [first.ts, first.ts]
    assert [card.subtype for card in others] == ["thread_broadcast"] * 2


async def test_questions_of_a_session_asked_at_once_are_in_one_thread(threaded: Room) -> None:
    room = threaded
    room.slack.fail("chat.postMessage", Fault(slow_seconds=1.0))

    asked = [await room.ask(asking(f"Question {number}?")) for number in range(3)]
    for each in asked:
        await room.host.state(each.request_id, "open")

    first, *others = cards(room)
    assert first.thread_ts is None
    assert [card.thread_ts for card in others] == [first.ts, first.ts]
    for card in cards(room):
        room.ana.press(card, "Yes")
    assert [await each.answer() for each in asked] == [(("Yes",), None)] * 3


async def test_a_reply_with_the_id_of_a_question_that_is_over_answers_no_other(
    threaded: Room,
) -> None:
    room = threaded
    first, card = await room.asked(asking("Delete the test data?"))
    second, _ = await room.asked(asking("Delete everything?"))
    over = room.short_id(first)
    room.ben.press(card, "No")
    await first.answer()
    await room.host.closed(first.request_id)

    room.ana.reply(card, f"{over}: yes")

    told = await room.told(room.ana, "over already", "Ben")
    assert "No" in told
    assert not second.call.done()
    # Without an id it could be meant for either.
    room.ana.reply(card, "yes")
    await room.told(room.ana, "begin your reply with the id", room.short_id(second))
    assert not second.call.done()
    room.ana.reply(card, f"{room.short_id(second)}: no")
    assert await second.answer() == (("No",), None)


async def asked_after_another(room: Room) -> tuple[Asked, Message]:
    """Ask in a thread whose first question is over. Return that question and the first card."""
    first, card = await room.asked(asking("Delete the test data?"))
    room.ben.press(card, "No")
    await first.answer()
    await room.host.closed(first.request_id)
    second, _ = await room.asked(asking("Delete everything?"))
    return second, card


async def test_a_late_reply_without_an_id_is_not_taken_for_the_next_question(
    start_room: StartRoom,
) -> None:
    room = await start_room(thread_per_session=True)
    second, card = await asked_after_another(room)

    room.ana.reply(card, "yes")
    await room.told(room.ana, "begin your reply with the id")
    assert not second.call.done()
    # A host that has not seen the first question knows it, too.
    await room.restart()
    room.ana.reply(card, "yes")
    await room.told(room.ana, "begin your reply with the id", count=2)
    assert not second.call.done()

    room.ana.reply(card, f"{room.short_id(second)} no")
    assert await second.answer() == (("No",), None)
    # After a restart the session goes on in its thread.
    third, last = await room.asked(asking("And now?"))
    assert last.thread_ts == card.ts
    room.ana.press(last, "Yes")
    assert await third.answer() == (("Yes",), None)


async def test_a_reply_without_an_id_counts_when_its_writer_says_for_which(
    threaded: Room,
) -> None:
    room = threaded
    first, card = await room.asked(asking("Delete the test data?"))
    second, _ = await room.asked(asking("Delete <!channel> everything?"))

    room.ana.reply(card, "no, never")
    await room.told(room.ana, "This thread has held several")
    [offer] = [e for e in room.ana.told if e.channel == room.channel]
    assert look(offer).mentions == ()
    assert not first.call.done()
    assert not second.call.done()
    room.ana.press(offer, "Delete <!channel> everything?")

    assert await second.answer() == ((), "no, never")
    [reply] = [m for m in room.slack.thread(card) if not m.by_bot]
    await until(lambda: "white_check_mark" in reply.reactions, "the sign that it was taken")
    assert not first.call.done()
    room.ana.press(offer, "Delete <!channel> everything?")
    await room.told(room.ana, "over already", "never")
    # What is offered to one is nothing that another could take.
    room.ben.press(offer, "Delete the test data?")
    await room.told(room.ben, "forgotten here")
    assert not first.call.done()
    room.ana.press(offer, "Delete the test data?")
    assert await first.answer() == ((), "no, never")


async def test_a_choice_that_was_offered_before_a_restart_is_explained(
    start_room: StartRoom,
) -> None:
    room = await start_room(thread_per_session=True)
    first, card = await room.asked(asking("First?"))
    second, _ = await room.asked(asking("Second?"))
    room.ana.reply(card, "yes")
    await room.told(room.ana, "begin your reply with the id")
    [offer] = room.ana.told
    await room.restart()

    room.ana.press(offer, "Second?")

    await room.told(room.ana, "forgotten here", "begin with the id")
    assert not first.call.done()
    assert not second.call.done()


async def test_a_reply_is_not_taken_for_one_of_the_questions_of_a_thread_that_cannot_be_read(
    start_room: StartRoom,
) -> None:
    room = await start_room(thread_per_session=True)
    second, card = await asked_after_another(room)
    await room.restart()
    await until(lambda: room.slack.calls("conversations.replies"), "the catching up")
    room.slack.fail("conversations.replies", Fault(before=True), times=1_000)

    room.ana.reply(card, "yes")

    await room.told(room.ana, "Slack does not say", room.short_id(second))
    assert not second.call.done()
    room.ana.reply(card, f"{room.short_id(second)}: no")
    assert await second.answer() == (("No",), None)


async def test_a_session_whose_first_card_is_taken_back_can_ask_again(threaded: Room) -> None:
    room = threaded
    room.slack.fail("chat.postMessage", Fault())
    room.slack.fail("chat.postMessage", Fault(error="restricted_action"))
    lost = await room.ask(asking(LONG))
    assert (await lost.result()).outcome is Outcome.UNDELIVERABLE
    await until(lambda: not cards(room), "the part that was posted to be removed")

    asked, card = await room.asked(asking("Second?"))

    assert card.thread_ts is None
    room.ana.press(card, "Yes")
    assert await asked.answer() == (("Yes",), None)


async def test_a_session_whose_thread_was_removed_begins_another(threaded: Room) -> None:
    room = threaded
    first, card = await room.asked(asking("First?"))
    room.ana.press(card, "Yes")
    await first.answer()
    await room.host.closed(first.request_id)
    room.slack.workspace.delete(card)

    second, again = await room.asked(asking("Second?"))
    third, below = await room.asked(asking("Third?"))

    assert (again.thread_ts, below.thread_ts) == (None, again.ts)
    for card in (again, below):
        room.ana.press(card, "No")
    assert [await each.answer() for each in (second, third)] == [(("No",), None)] * 2


async def test_a_thread_is_read_once_after_a_reconnection_however_many_cards_it_has(
    threaded: Room,
) -> None:
    room = threaded
    asked = [(await room.asked(asking(f"Question {number}?")))[0] for number in range(4)]
    root = cards(room)[0].ts

    def reads() -> int:
        calls = room.slack.calls("conversations.replies")
        return sum(call.arguments.get("ts") == root for call in calls)

    before, opened = reads(), room.slack.sockets.opened
    room.slack.disconnect("refresh_requested")
    await until(lambda: room.slack.sockets.opened > opened, "a new socket")
    await until(lambda: reads() > before, "the thread to be read")
    # The last of the session's answers is only taken after the reading, by its thread.
    for each in asked:
        room.ana.reply(cards(room)[0], f"{room.short_id(each)}: yes")
        assert await each.answer() == (("Yes",), None)

    assert 1 <= reads() - before <= room.slack.sockets.opened - opened


async def test_a_question_of_a_thread_is_not_shown_in_the_channel_as_well(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    slack.person(ANA).say("C1", "the agents ask below")
    [top] = slack.messages("C1")
    room = await start_room(group_table("below", f"C1/{top.ts}"), thread_per_session=True)
    below = Room(slack, room.host, "below", "C1")

    asked, card = await below.asked(DEPLOY)

    assert (card.thread_ts, card.subtype) == (top.ts, None)
    below.ana.reply(top, "yes")
    assert await asked.answer() == (("Yes",), None)
    await below.close()


async def test_a_card_found_after_a_crash_is_known_to_be_in_its_thread(
    start_room: StartRoom,
) -> None:
    room = await start_room(thread_per_session=True)
    first, card = await room.asked(asking("First?"))
    room.ana.press(card, "Yes")
    await first.answer()
    await room.host.closed(first.request_id)
    # The host dies between the posting and its reply.
    room.slack.fail("chat.postMessage", Fault(late_seconds=5.0))
    second = await room.ask(asking("Second?"))
    await until(lambda: len(cards(room)) == 2, "the second card")
    await room.kill()
    await room.start()
    await room.host.state(second.request_id, "open")

    room.ana.reply(card, f"{room.short_id(second)}: No")

    assert await second.answer() == (("No",), None)
    assert len(cards(room)) == 2
    await room.settled(cards(room)[1], "Ana")


async def test_who_comes_second_after_a_restart_is_told_what_won(
    start_room: StartRoom, slack: SlackStandIn
) -> None:
    slack.person(ANA).say("C1", "the agents ask below")
    [top] = slack.messages("C1")
    slack.workspace.add_channel("C2", ANA)
    chats = {"channel": "C2", "direct": ANA, "thread": f"C1/{top.ts}"}
    channels = {"channel": "C2", "direct": slack.workspace.direct(ANA).id, "thread": "C1"}
    host = (await start_room(*(group_table(*chat) for chat in chats.items()))).host
    rooms = [Room(slack, host, group, channel) for group, channel in channels.items()]
    over = [await answered(room) for room in rooms]
    await rooms[0].restart()

    for room, (card, stale) in zip(rooms, over, strict=True):
        room.ana.press(stale, "No")
        assert "Yes" in await room.told(room.ana, "over already", "Ana")
        room.ana.reply(card, "No")
        await room.told(room.ana, "over already", "Ana", count=2)
        room.ana.press(stale, "Decline")
        await room.told(room.ana, "over already", "Ana", count=3)
        await room.close()


async def answered(room: Room) -> tuple[Message, Message]:
    """Ask and answer. Return the card, and as it looks on a screen that was not refreshed."""
    asked, card = await room.asked(DEPLOY)
    stale = copy.deepcopy(card)
    room.ana.press(card, "Yes")
    await asked.answer()
    await room.settled(card, "Ana")
    await room.host.closed(asked.request_id)
    return card, stale


async def test_talk_in_other_threads_is_not_looked_into(start_room: StartRoom) -> None:
    room = await start_room()
    room.ana.say("C1", "lunch?")
    [top] = room.slack.messages("C1")
    asked, card = await room.asked(DEPLOY)

    await asyncio.to_thread(room.ben.reply(top, "yes").wait)
    room.ben.reply(card, "No")

    assert await asked.answer() == (("No",), None)
    assert [call.arguments["ts"] for call in room.slack.calls("conversations.replies")] == []
    await room.settled(card, "No by Ben")


async def test_everybody_in_the_channel_is_told_who_approved_first(start_room: StartRoom) -> None:
    table = group_table("careful", "C1") + "approvals_needed = 2\n"
    team = await start_room(table)
    room = Room(team.slack, team.host, "careful", "C1")
    asked = await room.ask(approval=Approval("Deploy 2.1?", preview="+ new"))
    card = await room.shown(asked)

    room.ana.press(card, "Approve")
    [told] = await until(lambda: room.slack.thread(card), "a word in the thread")
    room.ana.press(card, "Approve")
    room.ben.press(card, "Approve")

    assert "Ana approved; one more person is needed" in told.text
    result = await asked.result()
    assert (result.is_granted, result.answered_by) == (True, "Ana, Ben")
    await room.settled(card, "Deploy 2.1?", "Approve", "Ana, Ben")
    await room.close()


async def test_what_is_too_long_for_a_card_is_read_in_its_thread_and_not_allowed(
    start_room: StartRoom,
) -> None:
    room = await start_room()
    lines = [f"+ line {number} of what would be done" for number in range(500)]
    asked = await room.ask(approval=Approval("Deploy 2.1?", preview="\n".join(lines)))
    card = await room.shown(asked)

    seen = look(card).text
    assert ("Too long to be allowed here" in seen, "Approve" in seen) == (True, False)
    assert lines[-1] not in seen
    await until(lambda: is_told(room, card, lines), "all of it in the thread")
    room.ben.reply(card, f"approve {room.short_id(asked)}")
    room.ana.reply(card, f"deny {room.short_id(asked)} in smaller steps")

    result = await asked.result()
    assert (result.is_granted, result.answers[0].text) == (False, "in smaller steps")
    await room.settled(card, "Deny", "in smaller steps by Ana")


def is_told(room: Room, card: Message, lines: list[str]) -> bool:
    told = "\n".join(look(message).text for message in room.slack.thread(card) if message.by_bot)
    return all(line in told for line in lines)
