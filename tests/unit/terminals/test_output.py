"""What is read off a program's output: titles, notifications and modes, however it is cut."""

import os
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.terminals.output import MAX_STRING, OutputReader, TerminalNotice, Title

Told = list[Title | TerminalNotice]


def read(*pieces: bytes) -> Told:
    reader = OutputReader()
    return [told for piece in pieces for told in reader.feed(piece)]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x1b]2;working\x07", [Title("working")]),
        (b"\x1b]0;working\x1b\\", [Title("working")]),
        (b"text\x1b]2;a\x07more\x1b]2;b\x07", [Title("a"), Title("b")]),
        (b"\x1b]2;caf\xc3\xa9\x07", [Title("café")]),
        (b"\x1b]2;a;b;c\x07", [Title("a;b;c")]),
        (b"\x1b]2;\x07", [Title("")]),
        (b"\x1b]2;bad \xff utf\x07", [Title("bad \ufffd utf")]),
        (b"\x1b]2;tab\there\x07", [Title("tabhere")]),
        # Of the icon alone, the colours, a link, the clipboard: none of ours.
        (b"\x1b]1;icon\x07\x1b]11;?\x07\x1b]8;;http://x\x07\x1b]52;c;aGk=\x07", []),
        (b"\x1b]9;Build done\x07", [TerminalNotice("Build done")]),
        (b"\x1b]9;4;1;50\x07\x1b]9;4\x07", []),
        (b"\x1b]777;notify;Tests;3 failed\x07", [TerminalNotice("Tests", "3 failed")]),
        (b"\x1b]777;notify;Tests\x07", [TerminalNotice("Tests")]),
        (b"\x1b]777;precmd\x07", []),
        # Given up before its end.
        (b"\x1b]2;gone\x18\x1b]2;a\x07", [Title("a")]),
        (b"\x1b]2;gone\x1a", []),
        (b"\x1b]2;gone\x1b[0m\x1b]2;a\x07", [Title("a")]),
        (b"\x1b]2;gone\x1b]2;a\x07", [Title("a")]),
        # Inside of another string it is none, also where tmux passes it through.
        (b"\x1bP+q\x1b\x1b]2;inner\x07\x1b\\\x1b]2;a\x07", [Title("a")]),
        (b"\x1b_Gf=24;AAAA\x1b\\\x1b]2;a\x07", [Title("a")]),
        (b"\x1bPgiven up\x1b]2;a\x07", [Title("a")]),
        (b"\x1bkscreen\x1b\\\x1b]2;a\x07", [Title("a")]),
        # In UTF-8, these bytes are halves of characters, not the one-byte forms of OSC and ST.
        (b"\x9d2;no\x9c", []),
        ("\u201d2;no\x07".encode(), []),
        # The stack that editors keep titles on.
        (
            b"\x1b]2;a\x07\x1b[22;0t\x1b]2;b\x07\x1b[23;0t",
            [Title("a"), Title("b"), Title("a")],
        ),
        (b"\x1b]2;a\x07\x1b[22;2t\x1b[23;1t\x1b[23;2t", [Title("a"), Title("a")]),
        (b"\x1b[23;0t", []),
    ],
)
def test_what_a_program_tells_its_terminal(data: bytes, told: Told) -> None:
    assert read(data) == told
    assert read(*(bytes([byte]) for byte in data)) == told


@pytest.mark.parametrize(
    ("data", "pastes"),
    [
        (b"\x1b[?2004h", True),
        (b"\x1b[?1049;2004h", True),
        (b"\x1b[?2004h\x1b[?2004l", False),
        (b"\x1b[?2004h\x1bc", False),
        (b"\x1b[?2004h\x1b[!p", False),
        (b"\x1b[2004h", False),
        (b"\x1b[?2004h\x1b[?25l", True),
        (b"\x1b[?" + b"9" * 100 + b"2004h", False),
    ],
)
def test_whether_a_program_wants_to_know_of_pastes(data: bytes, *, pastes: bool) -> None:
    reader = OutputReader()
    list(reader.feed(data))
    assert reader.pastes is pastes


def test_a_string_that_is_too_long_is_dropped_and_costs_no_memory() -> None:
    reader = OutputReader()
    told = list(reader.feed(b"\x1b]2;"))
    for _ in range(1_000):
        told += reader.feed(b"x" * 10_000)
    assert len(reader._string) <= MAX_STRING  # noqa: SLF001
    told += reader.feed(b"\x07\x1b]2;next\x07")
    assert told == [Title(""), Title("next")]


_WORDS = b"\x1b ] 2; 0; \x07 \\ [ ?2004h P _ k \x18 phux-ask[q]:x? 22;0t 23;0t 9; 777;notify; \xc3"
_PIECES = st.sampled_from(_WORDS.split(b" "))


@given(st.lists(_PIECES | st.binary(max_size=5), max_size=30), st.randoms(use_true_random=False))
def test_how_the_output_is_cut_changes_nothing(pieces: list[bytes], chance: random.Random) -> None:
    data = b"".join(pieces)
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(5))
    ends = [0, *cuts, len(data)]
    cut = [data[a:b] for a, b in pairwise(ends)]

    whole, in_pieces = OutputReader(), OutputReader()
    told = list(whole.feed(data))

    assert [one for piece in cut for one in in_pieces.feed(piece)] == told
    assert in_pieces.modes == whole.modes


def test_looking_at_much_output_takes_time_in_its_proportion() -> None:
    """A megabyte of sequences that never end is looked at once, not once for each."""
    reader = OutputReader()
    for hostile in (
        b"\x1b]2;" * 50_000,
        b"\x1b[" * 100_000,
        b"\x1bP\x1b" * 60_000,
        os.urandom(2**20),
    ):
        assert len(list(reader.feed(hostile))) < 1_000
