"""Control mode as tmux speaks it, in any pieces, and what hostile input does to its reader."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.terminals.foreground import Foreground
from pynchy.terminals.tmux_control import (
    MAX_BLOCK,
    MAX_LINE,
    Block,
    ControlBroken,
    ControlReader,
    Notification,
    quote,
)
from pynchy.terminals.tmux_panes import PaneSeen, mark_of, read_panes

SAID = (
    b"%begin 1794995797 264 0\n%end 1794995797 264 0\n"
    b"%session-changed $0 we ird\n"
    b"%begin 1794995797 269 1\nP %0 1\n%end 1 2 1\n%begin 3 4 1\n\n%end 1794995797 269 1\n"
    b"%begin 1794995797 281 1\nparse error: unknown command: foo\n%error 1794995797 281 1\n"
    b"%subscription-changed pynchy $0 - - - : \xc3\xa9 %end 1 1 1\n%exit\n"
)
READ = [
    Block((), is_ours=False),
    Notification("session-changed", "$0 we ird"),
    Block(("P %0 1", "%end 1 2 1", "%begin 3 4 1", "")),
    Block(("parse error: unknown command: foo",), is_error=True),
    Notification("subscription-changed", "pynchy $0 - - - : é %end 1 1 1"),
    Notification("exit"),
]


@given(st.lists(st.integers(0, len(SAID)), max_size=8))
def test_what_is_said_is_read_in_any_pieces(cuts: list[int]) -> None:
    reader = ControlReader()
    places = sorted({0, len(SAID), *cuts})

    read = [said for begin, end in pairwise(places) for said in reader.feed(SAID[begin:end])]

    assert read == READ
    reader.end()


@pytest.mark.parametrize(
    "said",
    [
        b"hello\n",
        b"\n",
        b"%end 1 2 1\n",
        b"%error 1 2 1\n",
        b"% begin\n",
        b"\x1bP1000p%begin 1 2 1\n",
        b"%BEGIN 1 2 1\n",
    ],
)
def test_what_tmux_never_says_is_refused(said: bytes) -> None:
    with pytest.raises(ControlBroken):
        list(ControlReader().feed(said))


@pytest.mark.parametrize("said", [b"%begin 1 2 1\n", b"%begin 1 2 1\nP %0", b"%exi"])
def test_what_is_cut_short_is_told(said: bytes) -> None:
    reader = ControlReader()
    assert list(reader.feed(said)) == []

    with pytest.raises(ControlBroken):
        reader.end()


@pytest.mark.parametrize(
    "guard", [b"%end 1 2 0", b"%end 1 3 1", b"%end 2 2 1", b"%end 1 2 1 ", b" %end 1 2 1"]
)
def test_a_block_ends_with_its_own_guard_alone(guard: bytes) -> None:
    (block,) = ControlReader().feed(b"%begin 1 2 1\n" + guard + b"\n%end 1 2 1\n")

    assert block == Block((guard.decode(),))


def test_a_line_without_an_end_does_not_pile_up() -> None:
    reader = ControlReader()
    piece = b"x" * 65_536
    list(reader.feed(b"%window-renamed "))
    tracemalloc.start()
    try:
        for _ in range(200):
            assert list(reader.feed(piece)) == []
        assert tracemalloc.get_traced_memory()[0] < 4 * MAX_LINE
    finally:
        tracemalloc.stop()

    (said,) = reader.feed(b"\n")
    assert isinstance(said, Notification)
    assert len(said.text) < MAX_LINE


@pytest.mark.parametrize("line", [b"x" * (MAX_LINE + 1) + b"\n", b"x" * 60_000 + b"\n"])
def test_a_block_without_an_end_is_given_up(line: bytes) -> None:
    reader = ControlReader()
    list(reader.feed(b"%begin 1 2 1\n"))

    def flood() -> None:
        for _ in range(MAX_BLOCK // len(line) + 2):
            assert list(reader.feed(line)) == []

    with pytest.raises(ControlBroken, match="more than can be read"):
        flood()


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    reader = ControlReader()
    try:
        for said in reader.feed(data):
            assert isinstance(said, Block | Notification)
        reader.end()
    except ControlBroken:
        pass


@given(st.text())
def test_a_quoted_word_has_nothing_that_ends_it(text: str) -> None:
    word = quote(text)

    assert word.isascii()
    assert word.isprintable()
    assert not set(word[1:-1]) & set("\"'$;#{}~\n`")


def test_panes_are_read_whatever_their_titles_hold() -> None:
    title = "phux-ask[x]:a:b.c [%1] P %2 3 000 [] /dev/pts/1 s:0.0:y\u2028z"
    lines = [
        f"P %7 42 010 [] /dev/pts/3 my session:1.0:{title}",
        "P %7 42 010 [] /dev/pts/3 other:1.0:again",
        "P %8 43 000 [abc]  s:0.1:",
        "nonsense",
    ]

    panes = read_panes(lines)

    assert panes["%7"] == PaneSeen("%7", 42, "010", "", "/dev/pts/3", "my session:1.0", title)
    assert (panes["%8"].mark, panes["%8"].title, panes["%8"].why_not_now) == ("abc", "", "")
    assert panes["%7"].why_not_now
    assert len(panes) == 2


def test_a_mark_is_for_one_ask_of_one_program() -> None:
    pane = PaneSeen("%7", 42, "000", "", "/dev/pts/3", "s:1.0", "phux-ask:a?")
    other = PaneSeen("%7", 42, "000", "", "/dev/pts/3", "s:1.0", "phux-ask:b?")
    marks = {
        mark_of(pane, Foreground(5, "100")),
        mark_of(pane, Foreground(5, "101")),
        mark_of(pane, Foreground(6, "100")),
        mark_of(other, Foreground(5, "100")),
    }

    assert len(marks) == 4
    assert all(mark.isalnum() for mark in marks)
