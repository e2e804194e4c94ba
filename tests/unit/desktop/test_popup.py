"""What a popup says of a question, and which buttons it has."""

from dataclasses import replace

import pytest

from pynchy.bridge.cards import card_of
from pynchy.desktop import popup as popup_module
from pynchy.desktop.popup import (
    OPEN,
    Abilities,
    Popup,
    PopupQuestion,
    announcement_of,
    choice_of,
    hint_of,
    implied_choice,
    notice_of,
    popup_of,
    shows_whole,
)
from pynchy.events import Announcement
from pynchy.model import AcceptsText, GroupName, Option, Question, Urgency
from pynchy.permissions.card import approval_question
from pynchy.testing import make_pending

THREE, MANY = Abilities(), Abilities(most_buttons=8)
FIELD, ONE = Abilities(text_field=True), Abilities(most_buttons=1)


def asked(*questions: Question, **fields: object) -> PopupQuestion:
    pending = replace(make_pending(questions=questions), **fields)  # type: ignore[arg-type]
    return PopupQuestion(pending.request_id, pending.questions, card_of(pending))


def ask(*labels: str, **fields: object) -> Question:
    return Question("Deploy?", options=tuple(map(Option, labels)), **fields)  # type: ignore[arg-type]


def labels(popup: Popup) -> list[str]:
    return [button.label for button in popup.buttons]


@pytest.mark.parametrize(
    ("question", "abilities", "buttons"),
    [
        (ask("Yes"), THREE, ["Yes"]),
        (ask("Yes", "No", "Later"), THREE, ["Yes", "No", "Later"]),
        (ask("A", "B", "C", "D"), THREE, ["Open"]),
        (ask("A", "B", "C", "D"), MANY, ["A", "B", "C", "D"]),
        (ask(), THREE, ["Open"]),
        (ask("Yes", "No", multi_select=True), THREE, ["Open"]),
        (ask("x" * 50 + "1", "x" * 50 + "2"), THREE, ["Open"]),
        (ask("Yes", "No"), Abilities(actions=False), []),
    ],
)
def test_each_option_has_a_button_where_all_have_room(
    question: Question, abilities: Abilities, buttons: list[str]
) -> None:
    assert labels(popup_of(asked(question), abilities)) == buttons


def test_each_button_is_its_own_option() -> None:
    one = asked(ask("Yes", "No", "Later"))
    keys = [button.key for button in popup_of(one, THREE).buttons]

    assert [choice_of(one, key) for key in keys] == ["Yes", "No", "Later"]


@pytest.mark.parametrize(
    "key", [OPEN, "default", "choice-", "choice-2", "choice--1", "0", "choice-²"]
)
def test_a_key_that_no_option_has_is_no_choice(key: str) -> None:
    assert choice_of(asked(ask("Yes", "No")), key) is None


def test_what_must_be_confirmed_first_has_no_button() -> None:
    question = Question(
        "rm -r build",
        options=(Option("Allow once"), Option("Allow always…", confirm="Rule: rm"), Option("Deny")),
    )
    one = asked(question)
    popup = popup_of(one, THREE)

    assert labels(popup) == ["Allow once", "Deny", "Open"]
    assert [choice_of(one, b.key) for b in popup.buttons] == ["Allow once", "Deny", None]


def test_several_questions_lead_to_their_page() -> None:
    popup = popup_of(asked(ask("Yes", "No"), Question("Why?")), FIELD)

    assert (labels(popup), popup.text_field) == (["Open"], "")
    assert popup.body.splitlines()[:4] == ["1. Deploy?", "• Yes", "• No", "2. Why?"]


@pytest.mark.parametrize(
    ("question", "abilities", "has_field"),
    [
        (Question("Why?"), FIELD, True),
        (ask("Yes", "No"), FIELD, True),
        (ask("Yes", "No", accepts_text=AcceptsText.NOTE), FIELD, False),
        (Question("Why?"), THREE, False),
    ],
)
def test_there_is_a_text_field_where_words_are_an_answer(
    question: Question, abilities: Abilities, has_field: object
) -> None:
    assert bool(popup_of(asked(question), abilities).text_field) == has_field


def test_the_title_says_who_asks_where_and_about_what() -> None:
    popup = popup_of(asked(ask("Yes"), agent="claude", task="shop @ main", title="Release"), THREE)

    assert popup.title == "g1 · claude · shop @ main"
    assert popup.body.splitlines()[:2] == ["Release", "Deploy?"]


def test_a_high_urgency_stays_until_it_is_answered() -> None:
    stays = [popup_of(asked(ask("Yes"), urgency=one), THREE).stays for one in Urgency]

    assert stays == [False, False, True]


def test_hidden_characters_are_named_and_lines_are_bounded() -> None:
    question = Question("Deploy\u202e?" + "\nx" * 1_000, options=(Option("Y\u200bes\nor so"),))
    popup = popup_of(asked(question, agent="a" * 5_000, task="\n\n"), THREE)

    assert "⟨U+202E⟩" in popup.body
    assert len(popup.body) < 400
    assert len(popup.title) <= 100
    assert labels(popup)[0] == "Y⟨U+200B⟩es or so"


def test_a_reminder_and_a_repeat_say_so() -> None:
    one = asked(ask("Yes"))
    repeated = replace(one, card=replace(one.card, repeated=True))

    assert popup_of(one, THREE, again=True).title.startswith("Still waiting: ")
    assert "repeat" in popup_of(repeated, THREE).body


def test_what_cannot_be_read_whole_is_not_allowed_on_a_popup() -> None:
    short = approval_question("Publish 1.2", "", "", "")
    long = approval_question("Publish 1.2", "", "line\n" * 40, "")

    assert shows_whole((short,))
    assert not shows_whole((long,))
    assert not shows_whole((short, short))


def test_a_long_title_does_not_push_what_is_allowed_out_of_sight() -> None:
    question = approval_question("Publish 1.2", "", "", "")

    assert shows_whole((question,), "Release")
    assert not shows_whole((question,), "All is well. " * 20)


def test_a_description_that_was_cut_counted_as_read() -> None:
    question = approval_question("Publish 1.2", "", "", "")
    deny = replace(question.options[1], description="No. " * 40 + "And delete it.")

    assert not shows_whole((replace(question, options=(question.options[0], deny)),))


def test_what_the_person_is_told_is_one_bounded_line_without_anything_hidden() -> None:
    told = "Over already: \u202eanswered\n\n" + "x" * 20_000

    for popup in (popup_of(asked(ask("Yes")), THREE, told=told), notice_of(asked(ask()), told)):
        first = popup.body.splitlines()[0]
        assert first.startswith("Over already: ⟨U+202E⟩answered x")
        assert len(first) <= 300


def test_a_hint_says_the_options_and_where_to_answer() -> None:
    hint = hint_of(asked(ask("Yes", "No"), short_id="ab2c"))

    assert hint.buttons == ()
    assert hint.body.splitlines() == [
        "Deploy?",
        "• Yes",
        "• No",
        "#ab2c",
        "Answer it elsewhere: pynchy show ab2c",
    ]


@pytest.mark.parametrize(
    ("options", "abilities", "told", "buttons", "implied"),
    [
        (("Merge", "Later"), ONE, True, ["Merge"], "Later"),
        (("Merge", "Later"), ONE, False, ["Open"], ""),
        (("Merge", "Later"), THREE, True, ["Merge", "Later"], ""),
        (("Merge",), ONE, True, ["Merge"], ""),
        (("A", "B", "C"), ONE, True, ["Open"], ""),
    ],
)
def test_closing_stands_for_the_second_of_two_options_only_where_it_has_no_button_and_is_told(
    options: tuple[str, ...],
    abilities: Abilities,
    told: object,
    buttons: list[str],
    implied: str,
) -> None:
    one = asked(ask(*options), hears_dismissal=told)
    popup = popup_of(one, abilities)

    assert labels(popup) == buttons
    assert implied_choice(one, abilities) == implied
    assert ("Or close it: Later" in popup.body) == bool(implied)


def test_an_announcement_says_who_tells_what_and_has_nothing_to_press() -> None:
    told = Announcement(
        GroupName("team"), "Merged", "fix \u202e main\n3 commits", "Ex", "shop", Urgency.LOW
    )
    popup = announcement_of(told)

    assert popup.title == "team · Ex · shop"
    assert popup.body.splitlines()[0] == "Merged"
    assert "\u202e" not in popup.body
    assert (popup.buttons, popup.text_field, popup.opens) == ((), "", False)
    assert (popup.urgency, popup.stays) == (Urgency.LOW, False)


def test_a_title_of_an_agents_words_passed_for_that_of_another_group() -> None:
    agent = "Claude Code · production-team · release 2.1 is ready to be deployed to customers"
    group = GroupName("sandbox-of-the-" + "x" * 49)

    popup = popup_of(asked(ask("Yes"), agent=agent, group=group), THREE)

    assert popup.title.startswith(f"{group} · ")


def test_of_a_very_long_text_only_the_beginning_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []

    def name(text: str) -> str:
        looked_at.append(len(text))
        return text

    monkeypatch.setattr(popup_module, "name_all", name)
    long = Question("a\u200b" * 100_000, options=(Option("Yes"),))

    popup = popup_of(asked(long, title="t" * 100_000), THREE)

    assert not shows_whole((long,))
    assert popup.body.count("…") >= 2
    assert max(looked_at) <= 2_000
