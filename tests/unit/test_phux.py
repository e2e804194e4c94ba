"""phux's frames and titles: its own vectors, what both sides must keep, and rubbish."""

import struct
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.phux import (
    MAX_FRAME,
    Asked,
    BadFrame,
    CannotEncode,
    EventDecoder,
    Terminal,
    Unknown,
    decode_events,
    encode_event,
    encode_report,
    format_title,
    parse_title,
    shorten,
)

SERVER = "0000001ab30204160900000011010403712d3002040850726f636565643f"
LOCAL = (
    "00000030b30104050000000007020424090000001f010402713102040b44c3a9706c6f796572203f"
    "0304034f75690304034e6f6e"
)
REPORT = "0000002031010404000000050204151200000000070104027131020403476f3f03040179"
PROCEED = Asked("q-0", "Proceed?")
DEPLOY = Asked("q1", "Déployer ?", ("Oui", "Non"))

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
numbers = st.integers(0, 2**32 - 1)
asks = st.builds(
    Asked,
    texts,
    texts,
    st.lists(texts, max_size=5).map(tuple),
    st.none() | st.integers(0, 2**64 - 1),
)
terminals = st.none() | numbers | st.tuples(texts, numbers)


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def field(number: int, value: bytes) -> bytes:
    assert number < 128
    assert len(value) < 128
    return bytes([number, 4, len(value)]) + value


def event(tag: int, body: bytes, more: bytes = b"") -> bytes:
    return frame(0xB3, field(2, struct.pack(">BI", tag, len(body)) + body) + more)


def test_what_phux_itself_writes_is_written_byte_for_byte() -> None:
    assert encode_event(PROCEED).hex() == SERVER
    assert encode_event(DEPLOY, 7).hex() == LOCAL
    assert encode_report(5, Asked("q1", "Go?", ("y",)), 7).hex() == REPORT


def test_what_phux_itself_writes_is_read_and_commands_are_passed_over() -> None:
    data = bytes.fromhex(SERVER + REPORT + LOCAL)

    assert decode_events(data) == [(None, PROCEED), (7, DEPLOY)]


@given(asks, terminals)
def test_what_was_written_is_read(asked: Asked, terminal: Terminal) -> None:
    assert decode_events(encode_event(asked, terminal)) == [(terminal, asked)]


@given(st.lists(st.tuples(terminals, asks), max_size=4), st.lists(st.integers(1, 9), min_size=1))
def test_frames_may_be_cut_anywhere(told: list[tuple[Terminal, Asked]], sizes: list[int]) -> None:
    data = b"".join(encode_event(asked, terminal) for terminal, asked in told)
    decoder = EventDecoder()
    found: list[tuple[Terminal, Asked | Unknown]] = []
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        found += decoder.feed(data[at : at + size])
        at += size
    decoder.end()

    assert found == told


@given(asks, st.integers(5, 127), st.binary(max_size=20))
def test_fields_of_a_newer_phux_are_skipped(asked: Asked, number: int, value: bytes) -> None:
    known = decode_events(encode_event(replace(asked, id="q", question="Go?")))
    body = field(1, b"q") + field(number, value) + field(2, b"Go?")
    read = decode_events(event(9, body, more=field(number, value)))

    assert read == [(None, Asked("q", "Go?"))]
    assert known[0][1] == replace(asked, id="q", question="Go?")


def test_an_event_of_another_kind_is_unknown_and_breaks_nothing() -> None:
    assert decode_events(event(0x7F, b"whatever") + bytes.fromhex(SERVER)) == [
        (None, Unknown(0x7F)),
        (None, PROCEED),
    ]


def test_what_is_missing_reads_as_empty() -> None:
    assert decode_events(event(9, b"")) == [(None, Asked("", ""))]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">IB", 0, 0xB3),
        struct.pack(">IB", MAX_FRAME + 1, 0xB3),
        struct.pack(">IB", 2**32 - 1, 0xB3),
        bytes.fromhex(SERVER)[:-1],
        b"\0\0\0",
        frame(0xB3, b""),
        frame(0xB3, b"\x02\x04\x7f"),
        frame(0xB3, b"\x02\x05\x01x"),
        frame(0xB3, b"\x80" * 11),
        frame(0xB3, b"\xff" * 9 + b"\x7f"),
        frame(0xB3, b"\x80"),
        frame(0xB3, field(2, b"\x09\0\0\0")),
        frame(0xB3, field(2, b"\x09\xff\xff\xff\xff")),
        frame(0xB3, field(1, b"\x02\0\0\0\0") + field(2, b"\x08\0\0\0\0")),
        frame(0xB3, field(1, b"\x00\0\0") + field(2, b"\x08\0\0\0\0")),
        frame(0xB3, field(1, b"\x01\xff\xff\xff\xffh") + field(2, b"\x08\0\0\0\0")),
        event(9, field(2, b"\xff\xfe")),
        event(9, field(4, b"\x01")),
    ],
)
def test_what_cannot_be_is_a_bad_frame(data: bytes) -> None:
    with pytest.raises(BadFrame):
        decode_events(data)


def test_a_frame_with_bad_content_costs_itself_alone() -> None:
    decoder = EventDecoder()
    with pytest.raises(BadFrame):
        list(decoder.feed(event(9, field(2, b"\xff"))))

    assert list(decoder.feed(bytes.fromhex(SERVER))) == [(None, PROCEED)]


def test_a_bad_frame_cost_all_that_came_in_the_same_piece() -> None:
    good = bytes.fromhex(SERVER)
    decoder = EventDecoder()
    with pytest.raises(BadFrame):
        list(decoder.feed(event(9, field(2, b"\xff")) + good + good[:9]))

    assert list(decoder.feed()) == [(None, PROCEED)]
    assert list(decoder.feed(good[9:])) == [(None, PROCEED)]
    decoder.end()


def test_behind_a_bad_frame_a_text_was_read_as_frames() -> None:
    forged = encode_event(Asked("forged", "Approve everything?"), 7)
    carrier = frame(0xB3, field(2, struct.pack(">BI", 8, 0)) + field(5, forged))
    cut = carrier.index(forged)
    decoder = EventDecoder()
    with pytest.raises(BadFrame):
        list(decoder.feed(frame(0xB3, b"\xff") + carrier[:cut]))

    assert list(decoder.feed(carrier[cut:])) == [(None, Unknown(8))]


def test_masses_of_empty_fields_took_seconds() -> None:
    fields = frame(0xB3, b"\x63\x04\x00" * 5_000_000)

    with pytest.raises(BadFrame, match="more than 10000 fields"):
        decode_events(fields)


def test_a_length_that_cannot_be_ends_the_reading() -> None:
    decoder = EventDecoder()
    for data in (b"\xff" * 5, bytes.fromhex(SERVER)):
        with pytest.raises(BadFrame):
            list(decoder.feed(data))


def test_frames_that_are_passed_over_and_masses_of_fields_take_no_memory() -> None:
    skipped = frame(0x31, bytes(4 * 2**20))
    fields = frame(0xB3, b"\x63\x04\x00" * 2**17 + b"\x02\x04\x05\x08\0\0\0\0")
    many = b"\x03\x04\x00" * 100_000
    length = bytes([len(many) & 127 | 128, len(many) >> 7 & 127 | 128, len(many) >> 14])
    head = struct.pack(">BI", 9, len(many) - 5)
    suggestions = frame(0xB3, b"\x02\x04" + length + head + many[5:])
    decoder = EventDecoder()

    tracemalloc.start()
    assert list(decoder.feed(skipped)) == []
    skipping = tracemalloc.get_traced_memory()[1]
    with pytest.raises(BadFrame):
        list(decoder.feed(fields))
    with pytest.raises(BadFrame):
        list(decoder.feed(suggestions))
    reading = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert skipping < 100_000
    assert reading < 3 * len(fields)


@given(st.binary(max_size=200))
def test_rubbish_is_a_bad_frame_or_nothing(data: bytes) -> None:
    for told in (data, frame(0xB3, data), event(9, data[:100])):
        try:
            decode_events(told)
        except BadFrame:
            continue


@pytest.mark.parametrize(
    "asked",
    [
        Asked("q", " "),
        Asked("q", "x" * 4_097),
        Asked("q" * 129, "Go?"),
        Asked("q", "Go?", ("y",) * 17),
        Asked("q", "Go?", ("y" * 513,)),
        Asked("q", "\ud800"),
        Asked("q", "Go?", elapsed_seconds=-1),
    ],
)
def test_what_phux_would_not_take_is_not_written(asked: Asked) -> None:
    with pytest.raises(CannotEncode):
        encode_report(1, asked, 7)


def test_numbers_that_do_not_fit_are_not_written() -> None:
    with pytest.raises(CannotEncode):
        encode_event(PROCEED, 2**32)
    with pytest.raises(CannotEncode):
        encode_report(-1, PROCEED, 7)


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        ("phux-ask:Proceed?", Asked("", "Proceed?")),
        ("phux-ask[q1]:Go on", Asked("q1", "Go on")),
        ("phux-ask[]:Go on", Asked("", "Go on")),
        ("phux-ask[q1]:Proceed??s=Y|N", Asked("q1", "Proceed?", ("Y", "N"))),
        ("phux-ask:Pick?s=|a||b|", Asked("", "Pick", ("a", "b"))),
        ("phux-ask:Pick?s=a?s=b", Asked("", "Pick", ("a?s=b",))),
        ("phux-ask[a[b]:x]y:z", Asked("a[b", "x]y:z")),
    ],
)
def test_a_title_asks(title: str, asked: Asked) -> None:
    assert parse_title(title) == asked


@pytest.mark.parametrize(
    "title",
    [
        "",
        "vim",
        "phux-ask",
        "phux-ask:",
        "phux-ask[q1]",
        "phux-ask[q1]x:y",
        "phux-asked[q1]:x",
        "phux-ask[q1:x",
        " phux-ask:x",
        "~ phux-ask:x",
    ],
)
def test_any_other_title_asks_nothing(title: str) -> None:
    assert parse_title(title) is None


@given(asks)
def test_a_title_is_read_as_it_was_meant_or_not_written(asked: Asked) -> None:
    title = format_title(asked)

    if title is not None:
        assert parse_title(title) == replace(asked, elapsed_seconds=None)
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in title)


@pytest.mark.parametrize(
    "asked",
    [
        Asked("a]", "Go?"),
        Asked("", "Which ?s=x"),
        Asked("", "Go?", ("a|b",)),
        Asked("", "Go?", ("",)),
        Asked("", "Go?\x07"),
        Asked("", "Go?\x9c"),
        Asked("", "two\nlines"),
        Asked("", " "),
    ],
)
def test_what_a_title_cannot_carry_is_not_written(asked: Asked) -> None:
    assert format_title(asked) is None


def test_a_title_carries_what_people_write() -> None:
    assert format_title(DEPLOY) == "phux-ask[q1]:Déployer ??s=Oui|Non"


@given(asks)
def test_what_is_shortened_can_be_reported(asked: Asked) -> None:
    long = replace(asked, id=asked.id * 9, question=f"?{asked.question * 300}")
    many = replace(long, suggestions=tuple(f"é{one * 40}" for one in asked.suggestions) * 9)

    short = shorten(many)

    encode_report(1, short, 7)
    assert short.question[:9] == many.question[:9]
    assert shorten(short) == short
