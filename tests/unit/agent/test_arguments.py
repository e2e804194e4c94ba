"""What models send: what is understood, and what is told to them otherwise."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runner.asking import Option, Question, Urgency
from agent_runner.asking.arguments import (
    check_ask_names,
    check_names,
    parse_ask,
    parse_check,
    parse_request_id,
)
from agent_runner.errors import BadArguments

QUESTION = {"question": "Which?", "options": [{"label": "a", "description": "d"}, "b"]}
UNDERSTOOD = Question("Which?", options=(Option("a", "d"), Option("b")))


@pytest.mark.parametrize(
    "arguments",
    [
        {"questions": [QUESTION]},
        {"questions": QUESTION},
        {"questions": json.dumps([QUESTION])},
        {"questions": json.dumps(QUESTION)},
        QUESTION,
        {"questions": None, **QUESTION},
        {"questions": [QUESTION | {"options": json.dumps(QUESTION["options"])}]},
        {"questions": [QUESTION | {"header": None, "default": None, "multiSelect": None}]},
        {"questions": [QUESTION], "metadata": {"ignored": True}},
    ],
)
def test_what_is_plain_is_understood(arguments: dict[str, Any]) -> None:
    request, wait = parse_ask(arguments)

    assert request.questions == (UNDERSTOOD,)
    assert wait


def test_everything_that_can_be_said() -> None:
    question = QUESTION | {"header": "H", "multiSelect": True, "default": ["a", "b"]}
    question |= {"options_only": True}

    request, wait = parse_ask(
        {
            "questions": [question, {"question": "Why?", "default": "because"}],
            "title": "T",
            "task": "K",
            "urgency": "high",
            "timeout": 12.5,
            "wait_for_response": False,
        }
    )

    assert request.questions[0].default == ("a", "b")
    assert request.questions[0].multi_select
    assert request.questions[0].options_only
    assert not request.questions[1].options_only
    assert request.questions[1].default == "because"
    assert request.has_all_defaults
    assert (request.title, request.task, request.urgency) == ("T", "K", Urgency.HIGH)
    assert request.wait_seconds == 12.5
    assert not wait


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "questions"),
        ({"questions": []}, "questions"),
        ({"questions": [QUESTION] * 5}, "questions"),
        ({"questions": "Which?"}, "questions"),
        ({"questions": 7}, "questions"),
        ({"questions": ["Which?"]}, "questions[0]"),
        ({"questions": [QUESTION, {}]}, "questions[1].question"),
        ({"questions": [{"question": "  "}]}, "questions[0].question"),
        ({"questions": [{"question": 5}]}, "questions[0].question"),
        ({"questions": [{"question": "x" * 20_001}]}, "questions[0].question"),
        ({"questions": [QUESTION | {"header": 5}]}, "questions[0].header"),
        ({"questions": [QUESTION | {"options": "yes or no"}]}, "questions[0].options"),
        ({"questions": [QUESTION | {"options": {"a": 1}}]}, "questions[0].options"),
        ({"questions": [QUESTION | {"options": [5]}]}, "questions[0].options[0]"),
        ({"questions": [QUESTION | {"options": [{}]}]}, "questions[0].options[0].label"),
        ({"questions": [QUESTION | {"options": ["A", "a"]}]}, "questions[0].options"),
        ({"questions": [QUESTION | {"options": list(map(str, range(101)))}]}, "questions[0].op"),
        ({"questions": [QUESTION | {"multiSelect": "yes"}]}, "questions[0].multiSelect"),
        ({"questions": [{"question": "x", "multiSelect": True}]}, "questions[0].multiSelect"),
        ({"questions": [{"question": "x", "options_only": True}]}, "questions[0].options_only"),
        ({"questions": [QUESTION | {"options_only": "yes"}]}, "questions[0].options_only"),
        (
            {"questions": [QUESTION | {"options_only": True, "default": "other"}]},
            "questions[0].default",
        ),
        ({"questions": [QUESTION | {"default": 5}]}, "questions[0].default"),
        ({"questions": [QUESTION | {"default": ""}]}, "questions[0].default"),
        ({"questions": [QUESTION | {"default": ["a"]}]}, "questions[0].default"),
        (
            {"questions": [QUESTION | {"multiSelect": True, "default": ["c"]}]},
            "questions[0].default",
        ),
        ({"questions": [QUESTION], "urgency": "asap"}, "urgency"),
        ({"questions": [QUESTION], "timeout": "60"}, "timeout"),
        ({"questions": [QUESTION], "timeout": 0}, "timeout"),
        ({"questions": [QUESTION], "timeout": float("nan")}, "timeout"),
        ({"questions": [QUESTION], "timeout": True}, "timeout"),
        ({"questions": [QUESTION], "wait_for_response": "no"}, "wait_for_response"),
        ({"questions": [QUESTION], "title": "x" * 501}, "title"),
    ],
)
def test_what_is_not_is_refused_by_the_name_of_the_field(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadArguments) as caught:
        parse_ask(arguments)

    assert str(caught.value).startswith(field)


@pytest.mark.parametrize("request_id", [None, 5, "", "../etc", "a/b", "a" * 65, ".hidden"])
def test_no_path_gets_in_by_an_id(request_id: object) -> None:
    with pytest.raises(BadArguments, match="request_id"):
        parse_request_id({"request_id": request_id})


def test_checking_does_not_wait_unless_told() -> None:
    assert parse_check({"request_id": "q1"}) == ("q1", 0.0)
    assert parse_check({"request_id": " q1 ", "timeout": 0}) == ("q1", 0.0)
    assert parse_check({"request_id": "q1", "timeout": 5}) == ("q1", 5)


def test_half_a_character_does_not_reach_the_mailbox() -> None:
    request, _ = parse_ask({"question": "\ud83d\ude00 and \ud83d"})

    assert request.questions[0].question == "😀 and \N{REPLACEMENT CHARACTER}"


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("questions", "question", "options", "default", "multiSelect", "timeout", "urgency"),
            json_values,
        ),
    )
)
def test_any_arguments_are_understood_or_refused(arguments: dict[str, Any]) -> None:
    try:
        request, _ = parse_ask(arguments)
    except BadArguments:
        return
    assert 1 <= len(request.questions) <= 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"questions": [QUESTION | {"multi_select": True}]},
            "questions[0].multi_select: unknown; did you mean multiSelect?",
        ),
        (
            {"questions": json.dumps([QUESTION | {"optionsOnly": True}])},
            "did you mean options_only?",
        ),
        ({"questions": QUESTION | {"optoins": []}}, "did you mean options?"),
        (QUESTION | {"multiselect": True}, "multiselect: unknown; did you mean multiSelect?"),
        ({"questions": [QUESTION], "time_out": 3}, "time_out: unknown; did you mean timeout?"),
        ({"questions": [QUESTION], "multiSelect": True}, "multiSelect: unknown; there are"),
        (
            {"questions": [{"question": "?", "options": [{"label": "a", "descripton": "b"}]}]},
            "questions[0].options[0].descripton: unknown; did you mean description?",
        ),
        (
            {"question": "?", "options": json.dumps([{"label": "a", "name": "b"}])},
            "options[0].name: unknown; there are label, description, preview",
        ),
    ],
)
def test_a_name_that_is_not_known_is_told_with_what_was_meant(
    arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadArguments) as refused:
        check_ask_names(arguments)

    assert told in str(refused.value)


def test_what_other_tools_do_not_know_is_told_as_well() -> None:
    with pytest.raises(BadArguments, match="did you mean request_id"):
        check_names({"requestId": "q1"}, "request_id")


@pytest.mark.parametrize(
    "arguments",
    [
        {"questions": [QUESTION], "metadata": {"ignored": True}},
        QUESTION | {"title": "T", "questions": None},
        {"questions": 7},
        {"questions": ["?"]},
    ],
)
def test_what_is_known_or_refused_elsewhere_passes_the_names(arguments: dict[str, Any]) -> None:
    check_ask_names(arguments)
