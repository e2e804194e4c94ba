"""The words that a model acts on."""

import pytest

from agent_runner.asking import Answer, Outcome, RequestId, Result
from agent_runner.asking.text import (
    describe,
    describe_allowed,
    describe_asked,
    describe_late,
    describe_permission,
    describe_withdrawal,
    is_error,
    waiting_message,
)

Q1 = RequestId("q1")


def test_an_answer_names_who_when_where_and_what() -> None:
    result = Result(
        Q1,
        Outcome.ANSWERED,
        answers=(
            Answer("Which?", selected=("a", "b"), text="but slowly"),
            Answer("Why?", text="because"),
            Answer("Else?"),
        ),
        answered_by="Ana",
        channel="slack",
        answered_at="2026-11-16T09:30:00Z",
    )

    assert describe(result) == (
        "Answered by Ana via slack at 2026-11-16T09:30:00Z.\n\n"
        "Question: Which?\nAnswer: a, b (in their own words) but slowly\n\n"
        "Question: Why?\nAnswer: because\n\n"
        "Question: Else?\nAnswer: (empty)"
    )


@pytest.mark.parametrize("outcome", [Outcome.DECLINED, Outcome.EXPIRED, Outcome.PENDING])
def test_nothing_but_an_answer_reads_as_consent(outcome: Outcome) -> None:
    assert "not consent" in describe(Result(Q1, outcome))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_words(outcome: Outcome) -> None:
    result = Result(Q1, outcome, error="broken")

    assert describe(result)
    assert is_error(result) is (outcome in {Outcome.ERROR, Outcome.UNDELIVERABLE})


def test_a_reason_for_declining_is_passed_on() -> None:
    assert "ask Bo" in describe(Result(Q1, Outcome.DECLINED, reason="ask Bo"))


def test_a_repeated_outcome_is_not_to_be_applied_again() -> None:
    assert describe(Result(Q1, Outcome.ANSWERED, repeated=True)).startswith("Already delivered")


def test_a_pending_question_says_how_its_answer_comes() -> None:
    text = describe(Result(Q1, Outcome.PENDING))

    assert "check_answer" in text
    assert "resumed" in text
    assert "not to be running" not in text
    assert "not to be running" in describe(Result(Q1, Outcome.PENDING, picked_up=False))
    assert "not to be running" not in describe_asked(Result(Q1, Outcome.PENDING, picked_up=False))


def test_late_answers_are_set_apart() -> None:
    assert describe_late(()) == ""
    assert "earlier question" in describe_late((Result(Q1, Outcome.ANSWERED),))


def test_a_withdrawal_says_how_it_went() -> None:
    assert "is withdrawn" in describe_withdrawal(Result(Q1, Outcome.WITHDRAWN))
    assert "on its way" in describe_withdrawal(Result(Q1, Outcome.PENDING))
    assert "over before" in describe_withdrawal(Result(Q1, Outcome.ANSWERED))


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "(20 s)"), (59.4, "(59 s)"), (60, "(1 min)"), (200, "(3 min)")]
)
def test_progress_tells_the_time(seconds: float, words: str) -> None:
    assert words in waiting_message(seconds, picked_up=True)
    assert "no pynchy host" in waiting_message(seconds, picked_up=False)


def test_a_call_that_a_rule_denies_is_not_told_as_a_persons_words() -> None:
    denied = (Answer("May I?", selected=("Deny",), text="A rule of the group denies this."),)
    by_rule = Result(Q1, Outcome.ANSWERED, denied, answered_by="rule h3kd7p", channel="rule")
    by_person = Result(Q1, Outcome.ANSWERED, denied, answered_by="Ana", channel="slack")

    assert describe_permission(by_rule) == (
        "A rule of the group denies this (rule h3kd7p); nobody was asked. Do not do the same in "
        "another way."
    )
    assert describe_permission(by_person).startswith("Ana did not allow this. They say: ")


def test_a_yes_alone_needs_no_words() -> None:
    assert describe_allowed("ana", "", {"command": "ls"}, None) == ""


def test_what_goes_with_a_yes_is_told_word_for_word() -> None:
    told = describe_allowed(None, "but “slowly”\nplease", {"command": "ls"}, None)

    assert told == "A person allowed this call. They say: but “slowly”\nplease"


def test_an_edited_call_is_told_field_by_field_with_what_it_was() -> None:
    given = {"key": "A", "count": 1, "same": [1], "gone": {"x": None}}
    edited = {"key": "B", "count": 2, "same": [1], "more": True}

    head, *changes = describe_allowed("ana", "so", given, edited).split("\n\n")

    assert head.startswith("ana changed this call before they allowed it.")
    assert changes == [
        "key: B\nYou had: A",
        "count: 2\nYou had: 1",
        'gone was left out. You had: {"x": null}',
        "more: true\nYou had none.",
        "They say: so",
    ]
