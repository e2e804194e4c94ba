"""Answering on the screen: by number, by words, by mouse, and never by accident."""

import asyncio
from typing import Any

import pytest
from tests.unit.screen.support import COLOURS, DEPLOY, Desk

from pynchy.client import HostClient
from pynchy.errors import HostError


async def test_what_waits_is_listed_most_urgent_first(desk: Desk) -> None:
    calm = await desk.ask("Which name?", agent="codex", task="rename", group="backend")
    urgent = await desk.ask(DEPLOY, agent="claude", task="release 2.1", urgency="high")

    async with desk.sit_down() as person:
        screen = await person.see(calm, urgent, "2 waiting", "1 urgent", "● live")

        assert screen.index(urgent) < screen.index(calm)
        for text in ("claude", "codex", "web-team", "backend", "release 2.1", "left", "Deploy?"):
            assert text in screen


async def test_the_name_of_an_agent_stands_behind_its_group(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, agent="web-team tool", group="evil-box")

    async with desk.sit_down() as person:
        await person.see(f"{short_id} evil-box web-team tool", "evil-box  web-team tool  #")


async def test_a_number_marks_and_enter_sends(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("2")
        await person.see("(•) No", "sends “No”")
        assert (await desk.question(short_id))["ending"] is None
        await person.press("enter")

        ending = await desk.ended(person, short_id)
        assert ending["answers"][0]["selected"] == ["No"]
        assert ending["answered_by"] == "ana"
        await person.see("Answered by ana", "nothing waits")


async def test_a_card_that_has_just_appeared_takes_no_keys(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.see("Deploy?", "( ) Yes")
        await person.press("1", "enter", "d")
        await person.pilot.pause()
        assert "(•)" not in person.screen
        assert "Decline #" not in person.screen

        await person.wait_out_deafness()
        await person.press("1")
        await person.see("(•) Yes")
    assert (await desk.question(short_id))["ending"] is None


async def test_a_new_question_takes_nothing_away_from_the_one_in_use(desk: Desk) -> None:
    await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("1", "w")
        await person.type("but")
        urgent = await desk.ask("Stop everything?", urgency="high", options=[])
        await person.see(urgent, "2 waiting")
        await person.type(" not yet")

        screen = await person.see("but not yet")
        assert "(•) Yes" in screen


async def test_a_question_that_comes_to_an_empty_list_waits_to_be_chosen(desk: Desk) -> None:
    async with desk.sit_down() as person:
        await person.see("Nothing waits for you")
        short_id = await desk.ask(DEPLOY)
        await person.see(short_id, "1 waiting", "n goes to the first question")
        await person.wait_out_deafness()
        await person.press("1", "enter")
        await person.press("n")
        await person.look_at("( ) Yes")

        assert (await desk.question(short_id))["ending"] is None
        await person.press("1", "enter")
        await desk.ended(person, short_id)


async def test_where_only_options_count_there_is_no_field_for_words(desk: Desk) -> None:
    short_id = await desk.ask({**DEPLOY, "options_only": True})

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        assert "own words" not in person.screen
        await person.press("w")
        await person.see("Only the options count here")
        await person.press("enter")
        await person.see("Choose an option first")
        await person.press("1", "enter")

        ending = await desk.ended(person, short_id)
        assert ending["answers"][0]["selected"] == ["Yes"]


async def test_own_words_of_a_form_go_to_the_question_that_takes_them(desk: Desk) -> None:
    short_id = await desk.ask({**DEPLOY, "options_only": True}, "Why?")

    async with desk.sit_down() as person:
        await person.look_at("Why?", "( ) Yes")
        await person.press("2", "w")
        await person.type("because")
        await person.press("ctrl+enter")

        ending = await desk.ended(person, short_id)
        assert [(a["selected"], a["text"]) for a in ending["answers"]] == [
            (["No"], None),
            ([], "because"),
        ]


async def test_a_part_that_somebody_else_has_answered_is_left_to_them(desk: Desk) -> None:
    short_id = await desk.ask({**DEPLOY, "options_only": True}, "Why?")
    part = {"values": ["1"], "question": 1}
    await asyncio.to_thread(lambda: desk.host.reply(short_id, "answer", "ben", **part))

    async with desk.sit_down() as person:
        await person.look_at("1 of 2 is answered by ben: only they can change it", "▸ 2 of 2")
        await person.press("tab", "2", "w")
        await person.type("because")
        await person.press("ctrl+enter")
        await person.see("Not taken: question 1 was answered by ben already: Yes")
        await person.press("escape", "u", "enter")

        ending = await desk.ended(person, short_id)
        assert [answer["selected"] for answer in ending["answers"]] == [["Yes"], []]
        assert ending["answered_by"] == "ben, ana"


async def test_several_questions_are_one_form(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, COLOURS, "Anything else?")

    async with desk.sit_down() as person:
        await person.look_at("1 of 3", "2 of 3", "3 of 3")
        await person.press("1", "1", "3", "enter")
        await person.see("(•) Yes", "[x] Red", "[x] Blue", "Question 3 has no answer yet.")
        assert (await desk.question(short_id))["ending"] is None
        await person.type("no")
        await person.press("escape", "enter")

        answers = (await desk.ended(person, short_id))["answers"]
        assert [a["selected"] for a in answers] == [["Yes"], ["Red", "Blue"], []]
        assert answers[2]["text"] == "no"


async def test_after_a_choice_keys_and_typing_go_to_the_next_question_and_not_to_the_first(
    desk: Desk,
) -> None:
    short_id = await desk.ask(DEPLOY, "Why?")

    async with desk.sit_down() as person:
        await person.look_at("▸ 1 of 2", "2 of 2", "( ) Yes")
        await person.press("1")
        await person.see("(•) Yes", "▸ 2 of 2")
        await person.press("enter")
        await person.see("Question 2 has no answer yet.")
        await person.type("tests passed")
        await person.press("escape", "enter")

        ending = await desk.ended(person, short_id)
        assert [(a["selected"], a["text"]) for a in ending["answers"]] == [
            (["Yes"], None),
            ([], "tests passed"),
        ]


async def test_w_writes_into_the_question_that_has_no_answer_yet(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, DEPLOY, "Why?")

    async with desk.sit_down() as person:
        await person.look_at("▸ 1 of 3", "( ) Yes")
        await person.press("1", "w")
        await person.type("later")
        await person.press("escape", "w")
        await person.type("because")
        await person.press("ctrl+enter")

        ending = await desk.ended(person, short_id)
        assert [a["text"] for a in ending["answers"]] == [None, "later", "because"]


async def test_a_folded_question_takes_no_answer_until_all_of_it_was_shown(desk: Desk) -> None:
    text = "Delete the staging copy?\n" + "and\n" * 40 + "the production database"
    short_id = await desk.ask({"question": text, "options": ["Yes", "No"]})

    async with desk.sit_down() as person:
        await person.look_at("▸ all of it, 42 lines")
        await person.press("1", "enter")
        await person.see("Not all of it was shown yet: f shows it.")
        assert (await desk.question(short_id))["ending"] is None
        await person.press("f", "1", "enter")

        assert (await desk.ended(person, short_id))["answers"][0]["selected"] == ["Yes"]


async def test_all_of_a_long_preview_is_a_command_away(desk: Desk) -> None:
    option = {"label": "Yes", "preview": "line\n" * 8_000}
    short_id = await desk.ask({"question": "Deploy?", "options": [option, {"label": "No"}]})

    async with desk.sit_down() as person:
        await person.look_at("Preview, 8000 lines")
        await person.press("f")
        await person.see("Cut to its first 20,000", f"pynchy show {short_id}")


async def test_a_small_screen_shows_which_question_has_no_answer(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, COLOURS)

    async with desk.sit_down((80, 24)) as person:
        await person.look_at("1 of 2", "( ) Yes")
        await person.press("1", "enter")
        screen = await person.see("Question 2 has no answer yet.", "2 of 2", "[ ] Blue")

        assert "1 of 2" not in screen
        assert (await desk.question(short_id))["ending"] is None


async def test_a_number_that_no_option_has_is_refused_in_words(desk: Desk) -> None:
    await desk.ask(DEPLOY, "Anything else?")

    async with desk.sit_down((80, 24)) as person:
        await person.look_at("1 of 2", "( ) Yes")
        await person.press("9")
        screen = await person.see("There is no option 9: choose 1 to 2.")
        assert "(•)" not in screen
        await person.press("2")
        await person.see("(•) No")
        await person.see_no_more("There is no option 9")


async def test_a_number_for_a_question_without_options_is_refused_in_words(desk: Desk) -> None:
    await desk.ask("Which name?")

    async with desk.sit_down((80, 24)) as person:
        await person.look_at("Your answer")
        await person.press("1")
        await person.see("There are no options here: w writes an answer.")


async def test_ones_own_words_are_sent_with_control_and_enter(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("w")
        await person.type("jdn1")
        await person.press("enter")
        await person.type("q")
        await person.press("ctrl+enter")

        assert (await desk.ended(person, short_id))["answers"][0]["text"] == "jdn1\nq"
        screen = await person.see("Answered by ana")
        assert "You had begun to write" not in screen


async def test_escape_declines_nothing_and_a_reason_is_told(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("d")
        await person.see(f"Decline #{short_id}")
        await person.press("escape", "escape")
        await person.see_no_more(f"Decline #{short_id}")
        assert (await desk.question(short_id))["ending"] is None

        await person.press("d")
        await person.type("why not")
        await person.press("enter")  # too soon after the dialog came up
        await person.see("why not")
        await person.wait_out_deafness()
        await person.press("enter")

        ending = await desk.ended(person, short_id)
        assert (ending["outcome"], ending["reason"]) == ("declined", "why not")
        await person.see("Declined by ana")


async def test_a_click_on_something_urgent_can_be_taken_back(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, urgency="high")

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.pilot.click(".choice")
        await person.see("Sending in", "u takes it back")
        await person.press("u")
        await person.see("Taken back. Nothing was sent.", "( ) Yes")
        person.clock.pass_seconds(10)
        await person.pilot.pause()
        assert (await desk.question(short_id))["ending"] is None

        await person.pilot.click(".choice")
        await person.see("Sending in 3 s")
        person.clock.pass_seconds(3.1)

        assert (await desk.ended(person, short_id))["answers"][0]["selected"] == ["Yes"]


async def test_enter_sends_something_urgent_at_once(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, urgency="high")

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("1", "enter")

        await desk.ended(person, short_id)


async def test_who_was_first_is_told_and_what_was_typed_is_kept(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY, agent="claude")
    other = await desk.ask("Another one?", urgency="low")

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("w")
        await person.type("I would rather")
        await asyncio.to_thread(desk.host.reply, short_id, "answer", "bo", values=["No"])
        await person.see("Answered by bo", "You had begun to write", "I would rather")
        # What is still being typed turns into no command.
        await person.type("n1q")
        await person.press("enter")
        await person.see("Answered by bo", "I would rather")

        assert (await desk.question(other))["ending"] is None
        person.clock.pass_seconds(60)
        await person.see("I would rather")
        await person.press("x")
        await person.see_no_more("I would rather")


async def test_a_stale_answer_is_told_who_answered_and_what(desk: Desk) -> None:
    short_id = await desk.ask(DEPLOY)

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.press("1")
        # The screen must not hear of it before it sends: the loop stands still meanwhile.
        desk.host.reply(short_id, "answer", "bo", values=["No"])
        await person.press("enter")

        await person.see("Answered by bo", "No")
        assert (await desk.ended(person, short_id))["answered_by"] == "bo"


async def test_an_answer_whose_receipt_was_lost_is_known_as_ones_own(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_id = await desk.ask("Which name?")
    reply = HostClient.reply

    def reply_and_lose(self: HostClient, *words: Any) -> Any:
        reply(self, *words)
        raise HostError("the pynchy host does not answer")

    monkeypatch.setattr(HostClient, "reply", reply_and_lose)
    async with desk.sit_down() as person:
        await person.look_at("Which name?", "Your answer")
        await person.press("w")
        await person.type("nils")
        await person.press("ctrl+enter")
        await desk.ended(person, short_id)

        screen = await person.see("Answered by ana", "nils")
        assert "Not yours" not in screen
        assert "You had begun to write" not in screen


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_leaving_sends_what_could_still_be_taken_back(desk: Desk, key: str) -> None:
    short_id = await desk.ask(DEPLOY, urgency="high")

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.pilot.click(".choice")
        await person.see("Sending in 3 s")
        await person.press(key)
        await person.until(lambda: not person.pilot.app.is_running, "the end")

    ending = (await desk.question(short_id))["ending"]
    assert ending["answers"][0]["selected"] == ["Yes"]


async def test_who_leaves_with_something_that_cannot_be_sent_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_id = await desk.ask(DEPLOY, urgency="high")

    async with desk.sit_down() as person:
        await person.look_at("Deploy?", "( ) Yes")
        await person.pilot.click(".choice")
        await person.see("Sending in 3 s")

        def lose(*_: Any, **__: Any) -> Any:
            raise HostError("the cable is cut")

        monkeypatch.setattr(HostClient, "reply", lose)
        await person.press("q")
        await person.see("the cable is cut", "(•) Yes")
        assert person.pilot.app.is_running
        monkeypatch.undo()
        await person.press("enter")

        assert (await desk.ended(person, short_id))["answers"][0]["selected"] == ["Yes"]


async def test_n_goes_to_the_next_that_waits_and_from_the_last_to_the_first(desk: Desk) -> None:
    await desk.ask("First one?", urgency="high", task="task one")
    await desk.ask("Second one?", task="task two")
    await desk.ask("Third one?", urgency="low", task="task three")

    async with desk.sit_down() as person:
        for name in ("one", "two", "three", "one"):
            await person.look_at(f"task {name}")
            await person.press("n")


async def test_deny_and_decline_stood_side_by_side(desk: Desk) -> None:
    short_id = await desk.ask(questions=[], approval={"action": "Deploy 2.1?"})

    async with desk.sit_down() as person:
        await person.look_at("Deploy 2.1?", "( ) Deny")
        assert "Decline" not in person.screen
        await person.press("d")
        await person.see("Choose Deny")

        assert (await desk.question(short_id))["ending"] is None
