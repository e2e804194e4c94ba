"""What of a title can be asked, and what of an answer is typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runner.asking import Answer, Outcome, RequestId, Result
from pynchy.phux import Asked
from pynchy.terminals.asks import answer_line, bytes_of, question_of
from pynchy.terminals.keys import KeyReader
from pynchy.typed_line import one_typed_line


@pytest.mark.parametrize(
    ("suggestions", "labels"),
    [
        (("Yes", "No"), ["Yes", "No"]),
        (("Yes", "yes", " Yes "), ["Yes"]),
        (("", "  ", "\u200b"), []),
        (("a" * 501, "b"), ["b"]),
        (("Y\x1bes", "No"), ["No"]),
        (tuple(map(str, range(30))), [str(n) for n in range(16)]),
    ],
)
def test_what_is_offered_can_be_told_apart_and_typed(
    suggestions: tuple[str, ...], labels: list[str]
) -> None:
    question = question_of(Asked("q", "Which?", suggestions))
    assert [option.label for option in question.options] == labels
    assert not question.options_only


@given(st.text())
def test_whatever_is_answered_is_one_line_without_control_characters(text: str) -> None:
    line = one_typed_line(text)
    typed = bytes_of(line, is_pasted=False)

    assert typed.endswith(b"\r")
    assert not any(byte < 0x20 or byte == 0x7F for byte in typed[:-1])
    assert not any("\x80" <= character <= "\x9f" for character in line)
    pasted = bytes_of(line, is_pasted=True)
    assert pasted.count(b"\x1b") == 2
    assert pasted.startswith(b"\x1b[200~")
    assert pasted.endswith(b"\x1b[201~\r")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (Answer("Which?", ("Yes",)), "Yes"),
        (Answer("Which?", (), "later"), "later"),
        (Answer("Which?", ("Yes",), "but carefully"), "Yes, but carefully"),
        (Answer("Which?", (), "one\r\ntwo\n\nthree"), "one two three"),
        (Answer("Which?", (), "\x1b[201~; rm -rf x"), "; rm -rf x"),
        (Answer("Which?", (), "\x03\x04"), ""),
    ],
)
def test_what_is_typed_for_an_answer(answer: Answer, line: str) -> None:
    assert answer_line(Result(RequestId("r"), Outcome.ANSWERED, (answer,))) == line


@pytest.mark.parametrize(
    ("keys", "has_begun"),
    [
        (b"", False),
        (b"n", True),
        (b"no\r", False),
        (b"no\x7f\x7f", False),
        (b"no\x15", False),
        (b"no\x03", False),
        (b"\x1b[A\x1b[1;5D\x1bOP", False),
        (b"\x1b[12;40R\x1b[?62;c\x1b[I", False),
        (b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1bP1+r\x1b\\", False),
        (b"\x1b[M !!\x1b[<0;3;4M", False),
        (b"\x1b[200~half", True),
        (b"\x1bx", False),
        ("é".encode(), True),
        ("é".encode() + b"\x7f", False),
        (b"\x1bPno\r", False),
        (b"\x1bPno\rmore", True),
        (b"\x1b[200~two\rlines\x1b[201~", True),
        (b"\x1b[200~two\rlines\x1b[201~\r", False),
    ],
)
def test_whether_somebody_has_begun_a_line(keys: bytes, *, has_begun: bool) -> None:
    whole, in_pieces = KeyReader(), KeyReader()
    whole.feed(keys)
    for key in keys:
        in_pieces.feed(bytes([key]))
    assert whole.has_begun_line is in_pieces.has_begun_line is has_begun
