"""What a person does with a card, and what the agent gets: real Bolt, host and waiting side."""

import asyncio
import copy
import json

import pytest
from tests.acceptance.support import agent_of
from tests.slack.support import DEPLOY, EVE, Lobby, Room
from tests.standins.slack import OTHER_TEAM, look
from tests.waiting import until

from agent_runner.asking import Option, Outcome, Question
from pynchy.unicode_safety import name_all

COLOUR = Question("Which colour?", options=(Option("Red"), Option("Blue", "like the sea")))
EXTRAS = Question(
    "Which extras?", options=(Option("Wheels"), Option("Roof"), Option("Bell")), multi_select=True
)


async def in_time(*deliveries: object) -> bool:
    """Whether every envelope was acknowledged within three seconds."""
    waits = [asyncio.to_thread(delivery.wait) for delivery in deliveries]  # type: ignore[attr-defined]
    return all(await asyncio.gather(*waits))


async def test_a_single_choice_is_answered_by_one_click(room: Room) -> None:
    asked = await room.ask(DEPLOY, agent="builder", task="release 7")
    card = await room.shown(asked)

    click = room.ana.press(card, "Yes")

    assert await asked.answer() == (("Yes",), None)
    assert await in_time(click)
    text = await room.settled(card, "Deploy?", "Answered", "Yes", "Ana")
    assert "builder" in text
    assert "release 7" in text
    result = await asked.result()
    assert (result.answered_by, result.channel) == ("Ana", "slack")


async def test_a_card_says_who_asks_about_what_and_its_short_id(room: Room) -> None:
    asked = await room.ask(DEPLOY, title="Release", agent="builder", task="ship 7")
    card = await room.shown(asked)

    short_id = room.host.question(asked.request_id)["short_id"]
    text = look(card).text
    for word in ("Release", "builder", "ship 7", short_id, "Deploy?", "Yes", "No"):
        assert word in text
    assert f"Group: {room.group}" in text
    assert "Deploy?" in card.text
    room.ana.press(card, "No")
    await asked.result()


async def test_the_official_client_gets_the_answer_of_a_click(room: Room) -> None:
    async with agent_of(room.host, room.group) as agent:
        call = agent.asking("Ship it?")
        card = await room.card()
        await room.host.listed(group=room.group)
        room.ana.press(card, "No")
        text = await call

    assert "No" in text
    assert "Ana" in text


async def test_free_text_is_typed_into_the_card(room: Room) -> None:
    asked = await room.ask(Question("What name?"))
    card = await room.shown(asked)

    room.ana.type(card, "Peter & <Paul>", enter=True)

    assert await asked.answer() == ((), "Peter & <Paul>")
    await room.settled(card, "Peter & <Paul>", "Ana")


async def test_a_choice_can_be_answered_in_other_words(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    room.ana.type(card, "only on Monday", enter=True)

    assert await asked.answer() == ((), "only on Monday")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("wait & see <b>", ((), "wait & see <b>")),
        ("yes", (("Yes",), None)),
        ("2", (("No",), None)),
        ("on staging.example.com", ((), "on staging.example.com")),
    ],
)
async def test_a_thread_reply_answers(
    room: Room, typed: str, expected: tuple[tuple[str, ...], str | None]
) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    reply = room.ana.reply(card, typed)

    assert await asked.answer() == expected
    assert await in_time(reply)
    await room.settled(card, "Answered", "Ana")


async def test_a_message_outside_the_thread_answers_nothing(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    await in_time(room.ana.say(room.channel, "Yes"))
    room.ana.press(card, "No")

    assert await asked.answer() == (("No",), None)


async def test_a_number_without_an_option_is_explained_and_the_card_stays(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    room.ana.reply(card, "9")
    await room.told(room.ana, "9")

    assert card.is_open
    room.ana.reply(card, "1")
    assert await asked.answer() == (("Yes",), None)


async def test_a_batch_is_ticked_written_and_submitted(room: Room) -> None:
    asked = await room.ask(COLOUR, EXTRAS, Question("What name?"))
    card = await room.shown(asked)
    ana = room.ana

    toggles = ana.choose(card, "Blue", "Wheels", "Roof", "Bell", "Roof")
    ana.type(card, "and a lamp", number=1)
    ana.type(card, "Rosi", number=2)
    assert await in_time(*(t for t in toggles if t.id))
    assert room.host.question(asked.request_id)["state"] == "open"
    ana.press(card, "Submit")

    result = await asked.result()
    assert [(a.selected, a.text) for a in result.answers] == [
        (("Blue",), None),
        (("Wheels", "Bell"), "and a lamp"),
        ((), "Rosi"),
    ]
    await room.settled(card, "Blue", "Wheels", "and a lamp", "Rosi", "Ana")


async def test_a_label_that_slack_makes_a_link_of_is_still_that_label(room: Room) -> None:
    hosts = (Option("staging.example.com"), Option("www.example.com"))
    asked = await room.ask(Question("Which host?", options=hosts))
    card = await room.shown(asked)

    room.ana.reply(card, "staging.example.com")

    assert await asked.answer() == (("staging.example.com",), None)


async def test_a_number_typed_in_a_batch_is_that_option_or_refused(room: Room) -> None:
    asked = await room.ask(COLOUR, EXTRAS)
    card = await room.shown(asked)

    room.ana.type(card, "9", number=0)
    room.ana.type(card, "1, 3", number=1)
    room.ana.press(card, "Submit")
    await room.told(room.ana, "there is no option 9")
    assert card.is_open
    room.ana.type(card, "2", number=0)
    room.ana.press(card, "Submit")

    result = await asked.result()
    assert [(a.selected, a.text) for a in result.answers] == [
        (("Blue",), None),
        (("Wheels", "Bell"), None),
    ]


async def test_numbered_lines_answer_by_their_numbers(room: Room) -> None:
    asked = await room.ask(COLOUR, Question("How large?"))
    card = await room.shown(asked)

    room.ana.reply(card, "2.5 GB")
    await room.told(room.ana, "2 questions")
    room.ana.reply(card, "2: 1.5 GB\n1: blue")

    result = await asked.result()
    assert [(a.selected, a.text) for a in result.answers] == [(("Blue",), None), ((), "1.5 GB")]


async def test_an_other_takes_the_place_of_a_choice_in_a_batch(room: Room) -> None:
    asked = await room.ask(COLOUR, EXTRAS)
    card = await room.shown(asked)

    room.ana.type(card, "green", number=0)
    room.ana.choose(card, "Bell")
    room.ana.press(card, "Submit")

    result = await asked.result()
    assert [(a.selected, a.text) for a in result.answers] == [((), "green"), (("Bell",), None)]


async def test_a_multiple_choice_is_ticked_and_submitted(room: Room) -> None:
    asked = await room.ask(EXTRAS)
    card = await room.shown(asked)

    ticks = room.ana.choose(card, "Wheels", "Bell")
    assert await in_time(*(t for t in ticks if t.id))
    assert not asked.call.done()
    room.ana.press(card, "Submit")

    assert await asked.answer() == (("Wheels", "Bell"), None)


async def test_an_empty_submit_names_what_is_missing_and_the_card_stays(room: Room) -> None:
    asked = await room.ask(COLOUR, EXTRAS)
    card = await room.shown(asked)

    room.ana.choose(card, "Red")
    assert await in_time(room.ana.press(card, "Submit"))
    told = await room.told(room.ana, "extras")

    assert "colour" not in told
    assert card.is_open
    assert not card.versions
    assert not asked.call.done()
    room.ana.choose(card, "Roof")
    room.ana.press(card, "Submit")
    result = await asked.result()
    assert [a.selected for a in result.answers] == [("Red",), ("Roof",)]


async def test_an_empty_submit_of_one_question_is_no_answer(room: Room) -> None:
    asked = await room.ask(EXTRAS)
    card = await room.shown(asked)

    room.ana.press(card, "Submit")
    await room.told(room.ana)

    assert card.is_open
    assert not asked.call.done()
    room.ana.reply(card, "1, 3")
    assert await asked.answer() == (("Wheels", "Bell"), None)


async def test_a_thread_reply_to_several_questions_says_how_unless_it_is_clear(room: Room) -> None:
    asked = await room.ask(COLOUR, EXTRAS)
    card = await room.shown(asked)

    room.ana.reply(card, "Red, please")
    await room.told(room.ana, "2 questions")
    assert card.is_open
    room.ana.reply(card, "Red\nRoof")

    result = await asked.result()
    assert [a.selected for a in result.answers] == [("Red",), ("Roof",)]


async def test_a_question_can_be_declined(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    room.ana.press(card, "Decline")

    result = await asked.result()
    assert (result.outcome, result.answered_by) == (Outcome.DECLINED, "Ana")
    await room.settled(card, "Declined", "Ana")


async def test_who_comes_second_is_told_who_won_and_with_what(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)
    stale = copy.deepcopy(card)

    with room.slack.holding():
        room.ana.press(card, "Yes")
        room.ben.press(card, "No")
    result = await asked.result()
    winner, loser = (room.ana, room.ben) if result.answered_by == "Ana" else (room.ben, room.ana)

    told = await room.told(loser, winner.user.name)
    assert result.answers[0].selected[0] in told
    # Much later, on a screen that was not refreshed: the same.
    await room.settled(card, winner.user.name)
    await room.host.closed(asked.request_id)
    assert await in_time(loser.press(stale, "No"))
    await room.told(loser, winner.user.name, count=2)
    loser.reply(card, "No")
    await room.told(loser, winner.user.name, count=3)


async def test_who_may_not_answer_is_told_so_alone(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    assert await in_time(room.eve.press(card, "Yes"))
    await room.told(room.eve, "list")
    assert await in_time(room.eve.reply(card, "Yes"))
    await room.told(room.eve, "list", count=2)
    assert await in_time(room.eve.press(card, "Decline"))
    await room.told(room.eve, "list", count=3)

    assert card.is_open
    assert not asked.call.done()
    room.ben.press(card, "No")
    assert await asked.answer() == (("No",), None)
    assert [
        e for e in room.slack.workspace.ephemerals if e.user != EVE and e.channel == room.channel
    ] == []


async def test_somebody_of_another_team_is_refused_whatever_their_id(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)
    guest = copy.copy(room.ana)
    guest.user = type(room.ana.user)(room.ana.user.id, "Guest", OTHER_TEAM)

    assert await in_time(guest.press(card, "Yes"), guest.reply(card, "Yes"))
    await room.told(guest, count=2)

    assert card.is_open
    assert not asked.call.done()
    room.ben.press(card, "No")
    result = await asked.result()
    assert result.answered_by == "Ben"


async def test_the_same_envelope_twice_answers_once_and_tells_nobody_off(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    click = room.ana.press(card, "Yes")
    room.slack.redeliver(click)
    assert await asked.answer() == (("Yes",), None)
    await room.settled(card, "Ana")
    room.slack.redeliver(click)
    await room.host.closed(asked.request_id)

    # A later event has been worked off, so the repeated one has, too.
    room.eve.reply(card, "hello")
    await room.told(room.eve)
    assert [e for e in room.ana.told if e.channel == room.channel] == []
    assert room.host.kinds(asked.request_id).count("answered") == 1


async def test_ticks_and_submit_out_of_order_are_one_answer(room: Room) -> None:
    asked = await room.ask(EXTRAS)
    card = await room.shown(asked)

    with room.slack.holding() as held:
        room.ana.choose(card, "Wheels", "Roof")
        room.ana.press(card, "Submit")
        held.reverse()

    assert await asked.answer() == (("Wheels", "Roof"), None)


async def test_an_answer_given_elsewhere_settles_the_card(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)

    assert room.host.answer(asked.request_id, "No", by="cleo").status == 200

    assert await asked.answer() == (("No",), None)
    await room.settled(card, "Deploy?", "Answered elsewhere", "No", "cleo", "local")


async def test_a_withdrawn_question_says_so(room: Room) -> None:
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)
    stale = copy.deepcopy(card)

    await room.withdraw(asked)

    await room.settled(card, "Deploy?", "Withdrawn")
    room.ana.press(stale, "Yes")
    await room.told(room.ana, "withdrawn")
    assert (await asked.result()).outcome is Outcome.WITHDRAWN


async def test_a_default_that_was_taken_is_told_as_such(room: Room) -> None:
    question = Question("Deploy?", options=DEPLOY.options, default="No")
    asked = await room.ask(question, wait_seconds=1.0)
    card = await room.shown(asked)
    assert "default" in look(card).text

    await room.settled(card, "nobody answered", "No")
    assert (await asked.result()).outcome is Outcome.DEFAULTED


NASTY = [
    "<!channel> <!here> <!everyone> <@U0ANA> <#C1|general> <!subteam^S1>",
    "&lt;!channel&gt; &amp;lt; @channel @here @everyone #general",
    "<https://evil.example|click> https://evil.example/x evil.example mailto:a@b.c",
    "*bold* _italic_ ~gone~ `code` ```block``` > quote",
    "* bullet\n> quote\n1. list\n# heading\n[text](https://evil.example)",
    ":tada: \u202eright to left\u202c zero\u200bwidth \x00\x07 \U0001f469\u200d\U0001f680",
    "{{date}} <!date^1^{date}|x> \\n \\u0000 %s {0} '\"",
]


@pytest.mark.parametrize("nasty", NASTY)
async def test_no_agent_text_mentions_links_or_formats(room: Room, nasty: str) -> None:
    option = Option(f"A {nasty}"[:70], f"B {nasty}", f"C {nasty}")
    question = Question(f"D {nasty}", header=f"E {nasty}", options=(option, Option("Fine")))
    fields = {"title": f"F {nasty}", "agent": f"G {nasty}", "task": f"H {nasty}"}
    asked = await room.ask(question, **fields)
    card = await room.shown(asked)
    thread = await until(lambda: room.slack.thread(card), "the preview")

    for message in (card, *thread):
        sight = look(message)
        assert not [m for m in sight.mentions if not m.startswith("!date^1")], sight
        assert sight.links == ()
        for raw in ("<!channel", "<!here", "<@U", "<#C", "<!subteam", "<http"):
            assert raw not in message.text
    seen = squeezed(look(card).text)
    assert squeezed(f"D {nasty}") in seen
    assert squeezed(f"B {nasty}") in seen
    room.ana.reply(card, f"My own words: {nasty}")
    await asked.result()
    settled = await room.settled(card, "Answered")
    assert look(card).mentions == ()
    assert look(card).links == ()
    assert squeezed(f"My own words: {nasty}")[:40] in squeezed(settled)


def squeezed(text: str) -> str:
    """The text as it can be compared: what hides is named, space and marks count for nothing."""
    named = name_all(text).replace("│", "")
    return "".join(c for c in named if c.isprintable() and not c.isspace())


async def test_a_hundred_options_are_shown_and_the_last_can_be_chosen(room: Room) -> None:
    options = tuple(Option(f"Choice number {n}", f"what {n} means") for n in range(1, 101))
    asked = await room.ask(Question("Which?", options=options))
    await room.host.state(asked.request_id, "open")

    seen = "\n".join(look(m).text for m in room.slack.workspace.all_in(room.channel))
    for number in range(1, 101):
        assert f"Choice number {number}" in seen
    for card in room.cards():
        if any("Choice number 100" in look_text(e) for _, e in card.elements):
            room.ana.press(card, "Choice number 100")
    selected, _ = await asked.answer()
    assert selected == ("Choice number 100",)
    for card in room.cards():
        await room.settled(card)


async def test_a_hundred_options_can_be_ticked(room: Room) -> None:
    options = tuple(Option(f"Choice number {n}") for n in range(1, 101))
    asked = await room.ask(Question("Which?", options=options, multi_select=True))
    await room.host.state(asked.request_id, "open")

    room.ana.reply(room.cards()[0], "1, 50, 100")

    selected, _ = await asked.answer()
    assert selected == tuple(f"Choice number {n}" for n in (1, 50, 100))
    for card in room.cards():
        await room.settled(card)


def look_text(element: object) -> str:
    return json.dumps(element)


async def test_long_labels_and_descriptions_are_whole_and_answerable(room: Room) -> None:
    options = tuple(Option(f"{n} {'label ' * 70}"[:400], f"{n} " + "why " * 500) for n in range(4))
    asked = await room.ask(Question("What? " * 1000, options=options))
    await room.host.state(asked.request_id, "open")

    seen = squeezed("\n".join(look(m).text for m in room.slack.workspace.all_in(room.channel)))
    assert squeezed("What? " * 1000)[:2500] in seen
    for option in options:
        assert squeezed(option.label) in seen
        assert squeezed(option.description)[:1400] in seen
    room.ana.reply(room.cards()[0], "4")
    selected, _ = await asked.answer()
    assert selected == (options[3].label.strip(),)


async def test_four_long_questions_are_shown_and_answered(room: Room) -> None:
    questions = tuple(
        Question(
            f"Question {n}: " + "why not " * 500,
            options=tuple(Option(f"{n}-{o}", "because " * 100) for o in range(5)),
            multi_select=n % 2 == 1,
        )
        for n in range(4)
    )
    asked = await room.ask(*questions)
    await room.host.state(asked.request_id, "open")

    seen = "".join(look(m).text for m in room.cards())
    assert all(f"Question {n}:" in seen for n in range(4))
    for number in range(4):
        [card] = [c for c in room.cards() if f"Question {number}:" in look(c).text]
        assert await in_time(room.ana.reply(card, f"{number}-{number}"))

    result = await asked.result()
    assert [a.selected for a in result.answers] == [(f"{n}-{n}",) for n in range(4)]
    for card in room.cards():
        await room.settled(card)


async def test_four_long_questions_can_be_answered_one_by_one_with_the_mouse(room: Room) -> None:
    questions = tuple(
        Question(
            f"Question {n}: " + "why not " * 400,
            options=tuple(Option(f"Pick {n}-{o}", "because " * 100) for o in range(3)),
        )
        for n in range(4)
    )
    asked = await room.ask(*questions)
    await room.host.state(asked.request_id, "open")

    for number in range(4):
        wanted = f"Pick {number}-1"
        cards = [c for c in room.cards() if any(wanted in look_text(e) for _, e in c.elements)]
        assert await in_time(room.ana.press(cards[0], wanted))

    result = await asked.result()
    assert [a.selected for a in result.answers] == [(f"Pick {n}-1",) for n in range(4)]


async def test_previews_are_in_the_thread(room: Room) -> None:
    options = (
        Option("A", preview="--- a\n+++ b\n" + "+line\n" * 900),
        Option("B", preview="short"),
    )
    asked = await room.ask(Question("Which diff?", options=options))
    card = await room.shown(asked)

    thread = await until(lambda: room.slack.thread(card), "the previews")
    seen = "\n".join(look(m).text for m in thread)
    assert "+++ b" in seen
    assert seen.count("+line") == 900
    assert "short" in seen
    assert "+line" not in look(card).text
    room.ana.press(card, "B")
    assert await asked.answer() == (("B",), None)


async def test_two_groups_ask_in_two_channels(lobby: Lobby) -> None:
    first, second = lobby.room(), lobby.room()
    asked = [await first.ask(DEPLOY), await second.ask(DEPLOY)]
    cards = [await first.shown(asked[0]), await second.shown(asked[1])]

    second.ana.press(cards[1], "No")
    assert await asked[1].answer() == (("No",), None)
    assert cards[0].is_open
    assert not asked[0].call.done()
    first.ben.press(cards[0], "Yes")
    assert await asked[0].answer() == (("Yes",), None)
    assert (len(first.cards()), len(second.cards())) == (1, 1)
    await first.close()
    await second.close()


async def test_one_answer_leaves_the_sibling_question_alone(room: Room) -> None:
    first = await room.ask(Question("First?", options=DEPLOY.options))
    card_of_first = await room.shown(first)
    second = await room.ask(Question("Second?", options=DEPLOY.options))
    await room.host.state(second.request_id, "open")
    card_of_second = await room.card(2)

    room.ana.press(card_of_first, "Yes")
    assert await first.answer() == (("Yes",), None)
    await room.settled(card_of_first, "Ana")
    assert card_of_second.is_open
    room.ana.reply(card_of_second, "no")
    assert await second.answer() == (("No",), None)


async def test_a_forged_click_from_another_message_answers_nothing(troubled: Room) -> None:
    room = troubled
    asked = await room.ask(DEPLOY)
    card = await room.shown(asked)
    forged = copy.deepcopy(card)
    forged.ts = room.slack.workspace.new_ts()

    assert await in_time(room.ana.press(forged, "Yes"))
    await room.told(room.ana, "this copy of the card does not count")

    assert card.is_open
    assert not asked.call.done()
    room.ana.press(card, "No")
    assert await asked.answer() == (("No",), None)
