"""Requests from agents: what is taken, what is refused, and with which words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy import wire
from pynchy.errors import MalformedRequest
from pynchy.model import AcceptsText, Kind, Option, Question
from pynchy.testing import make_pending

ASK: dict[str, Any] = {
    "v": 1,
    "type": "ask_user:ask",
    "request_id": "q1",
    "questions": [{"question": "Deploy?", "options": ["Yes", {"label": "No", "preview": "x"}]}],
}

# Of ASK, as the first hosts kept it.
DIGEST_OF_0_1 = "c4d10849795db51c0d5543e8ac089d882ac38733bd2a0e6e345c9ab0278946af"


def read(body: object, name: str = "name") -> wire.Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return wire.read_request(wire.read_envelope(data, name))


def test_options_may_be_plain_strings_and_unknown_fields_are_ignored() -> None:
    request = read({**ASK, "colour": "blue"})

    assert isinstance(request, wire.AskRequest)
    question = request.questions[0].to_model()
    assert question.options == (Option("Yes"), Option("No", preview="x"))
    assert not question.multi_select


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v": 2}, "v: this host speaks version 1, not 2"),
        ({"v": True}, "v: this host speaks version 1"),
        ({"v": None}, "v: this host speaks version 1"),
        ({"type": "ask_user:sing"}, "is none of ask_user:ask"),
        ({"questions": []}, "give one of questions .1 to 4., permission and approval"),
        ({"questions": [{"question": "x"}] * 5}, "at most 4 items"),
        ({"questions": "Deploy?"}, "questions: Input should be a valid list"),
        ({"questions": [{"question": " "}]}, "questions.0.question"),
        ({"questions": [{"question": 7}]}, "questions.0.question"),
        ({"questions": [{"question": "x", "options": ["a", "A"]}]}, "labels must differ"),
        ({"questions": [{"question": "x", "options": ["a b", "a  b"]}]}, "labels must differ"),
        ({"questions": [{"question": "x", "options": ["a b", "a\u00a0b"]}]}, "labels must differ"),
        ({"questions": [{"question": "x", "options": ["a", "a\u200b"]}]}, "labels must differ"),
        (
            {"questions": [{"question": "x", "options": ["\u00e9", "e\u0301"]}]},
            "labels must differ",
        ),
        ({"questions": [{"question": "x", "options": ["a b", "a\u3000b"]}]}, "could not tell"),
        ({"questions": [{"question": "x", "options": [""]}]}, "options.0.label"),
        ({"questions": [{"question": "x", "options": ["a"] * 101}]}, "at most 100 items"),
        ({"questions": [{"question": "x", "default": ["a", "b"]}]}, "needs multiSelect"),
        ({"questions": [{"question": "x", "options_only": True}]}, "needs options to choose from"),
        ({"questions": [{"question": "x", "options_only": "yes"}]}, "options_only"),
        ({"urgency": "huge"}, "urgency"),
        ({"wait_seconds": -1}, "wait_seconds"),
        ({"wait_seconds": "60"}, "wait_seconds"),
        ({"lease": "../x"}, "lease"),
    ],
)
def test_a_malformed_request_is_refused_with_the_field_and_its_id(
    change: dict[str, Any], words: str
) -> None:
    with pytest.raises(MalformedRequest, match=words) as refused:
        read({**ASK, **change})

    assert refused.value.request_id == "q1"


@pytest.mark.parametrize(
    ("data", "request_id"),
    [
        (b"{", "name"),
        (b"[]", "name"),
        (b"\xff", "name"),
        (b"[" * 100_000, "name"),
        (b'{"a":' * 30 + b"1" + b"}" * 30, "name"),
        (b'{"v": 1}', "name"),
        (b'{"type": "ask_user:ask", "request_id": "../up"}', None),
        (b'{"type": "ask_user:ask", "request_id": 7}', None),
        (b'{"type": 7, "request_id": "q7"}', "q7"),
        (b'{"type":"ask_user:ask","v":1,"request_id":"q7","questions":[{"question":"\\ud800"}]}',
         "name"),
    ],
)  # fmt: skip
def test_rubbish_names_the_id_to_answer_to_where_there_is_one(
    data: bytes, request_id: str | None
) -> None:
    with pytest.raises(MalformedRequest) as refused:
        read(data)

    assert refused.value.request_id == request_id


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_a_number_too_large_was_shown_as_infinity_and_kept_as_nothing(number: str) -> None:
    data = json.dumps({**ASK, "questions": [{"question": "x", "more": [0.5, "@"]}]})

    with pytest.raises(MalformedRequest, match=r"not JSON|too large"):
        read(data.replace('"@"', number).encode())
    with pytest.raises(MalformedRequest, match=r"not JSON|too large"):
        wire.read_hook_event(b'{"tool_input": {"n": [%s]}}' % number.encode())
    with pytest.raises(MalformedRequest, match=r"not JSON|too large"):
        wire.read_codex_message(b'{"params": {"n": [%s]}}' % number.encode())


def test_a_name_that_is_no_id_is_nobody_to_answer_to() -> None:
    with pytest.raises(MalformedRequest) as refused:
        read(b"{", "../../etc/passwd")

    assert refused.value.request_id is None


def test_the_same_request_has_the_same_digest_whatever_its_order() -> None:
    again = dict(reversed(ASK.items()))
    other = {**ASK, "title": "another"}

    digests = [wire.AskRequest.model_validate(body).digest() for body in (ASK, again, other)]

    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def with_options_only(value: object) -> dict[str, Any]:
    return {**ASK, "questions": [{**ASK["questions"][0], "options_only": value}]}


@pytest.mark.parametrize(
    ("value", "accepts_text"),
    [(True, AcceptsText.NO), (False, AcceptsText.ANSWER), (None, AcceptsText.ANSWER)],
)
def test_a_question_with_options_only_accepts_no_text(
    value: object, accepts_text: AcceptsText
) -> None:
    request = read(with_options_only(value))

    assert isinstance(request, wire.AskRequest)
    assert request.questions[0].to_model().accepts_text is accepts_text


def test_the_digest_of_a_question_that_was_asked_before_options_only_stays_its_own() -> None:
    bodies = (ASK, with_options_only(value=False), with_options_only(value=True))

    digests = [wire.AskRequest.model_validate(body).digest() for body in bodies]

    assert digests[0] == digests[1] == DIGEST_OF_0_1
    assert digests[0] != digests[2]


def test_what_a_question_accepts_is_kept_and_told_only_where_it_is_unusual() -> None:
    usual = make_pending()
    question = Question(
        "Deploy?", options=(Option("Yes, now", value="yes"),), accepts_text=AcceptsText.NOTE
    )
    unusual = make_pending(questions=(question,), kind=Kind.APPROVAL)

    assert wire.read_pending(wire.pending_json(usual)) == usual
    assert wire.read_pending(wire.pending_json(unusual)) == unusual
    told = wire.pending_view(unusual)
    assert (told["kind"], told["questions"][0]["accepts_text"]) == ("approval", "note")
    assert told["questions"][0]["options"][0]["value"] == "yes"
    told = wire.pending_view(usual)
    assert told["kind"] == "question"
    assert told["questions"][0].keys() == {"question", "header", "options", "multiSelect"}
    assert told["questions"][0]["options"][0].keys() == {"label", "description", "preview"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_do_anything_but_be_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read(data)


@given(st.dictionaries(st.sampled_from([*ASK, "title", "lease", "wait_seconds"]), JSON))
def test_no_fields_do_anything_but_be_taken_or_refused(change: dict[str, Any]) -> None:
    try:
        read({**ASK, **change})
    except MalformedRequest as refused:
        assert str(refused), "a refusal must say why"  # noqa: PT017 - being taken is fine too
