"""Agent text is harmless and keeps its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.channels.slack.blocks import (
    CardLocation,
    CardMessage,
    as_typed,
    chunks,
    clean,
    clip,
    escape,
    make_block_id,
    one_line,
    read_chat,
    read_location,
    request_of,
)
from pynchy.channels.text import length
from pynchy.model import RequestId


@given(st.text())
def test_escaped_text_is_what_was_said(text: str) -> None:
    escaped = escape(text)

    assert "<" not in escaped
    assert ">" not in escaped
    assert as_typed(escaped) == clean(text)


def test_slack_escapes_once_and_so_do_we() -> None:
    assert as_typed("&amp;lt;!here&amp;gt; a &lt; b") == "&lt;!here&gt; a < b"


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ("<http://staging.example.com|staging.example.com>", "staging.example.com"),
        ("<http://h.example/|h.example>", "h.example"),
        ("<https://h.example/a?b=1&amp;c=2>", "https://h.example/a?b=1&c=2"),
        ("<https://h.example|https://h.example>", "https://h.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<tel:+4930123|+4930123>", "+4930123"),
        ("<https://h.example|the log>", "the log (https://h.example)"),
        ("<@U024BE7LH> or <@U1|ana>", "@U024BE7LH or @ana"),
        ("<#C1|general>, <#C1>", "#general, #C1"),
        ("<!here>, <!subteam^S1|@ops>, <!subteam^S1>", "@here, @ops, @subteam"),
        ("a &lt; b &gt; c, &lt;@U1&gt;", "a < b > c, <@U1>"),
    ],
)
def test_a_reply_is_read_as_it_was_typed(told: str, typed: str) -> None:
    assert as_typed(told) == typed


@given(st.text(), st.integers(2, 80))
def test_clipped_text_fits(text: str, most: int) -> None:
    for made in (clip(text, most), one_line(text, most)):
        assert 0 < length(made) <= most
    assert "\n" not in one_line(text, most)


@given(st.text(alphabet="ab \n🦀", min_size=1), st.integers(4, 30))
def test_chunks_are_the_whole_text(text: str, most: int) -> None:
    parts = list(chunks(text, most))

    assert parts
    assert all(0 < length(part) <= most for part in parts)
    if text.strip():
        assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "hidden", ["\x00", "\u202e", "\u200b", "\u2060", "\u00ad", "\u3164", "\u2800"]
)
def test_what_hides_is_named_and_not_left_out(hidden: str) -> None:
    assert clean(f"exam{hidden}ple") == f"exam⟨U+{ord(hidden):04X}⟩ple"


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_is_never_empty(text: str) -> None:
    assert clean(text) == clip(text, 10) == "—"
    assert list(chunks(text, 10)) == ["—"]


@pytest.mark.parametrize(
    "location",
    [
        CardLocation("C1", (CardMessage("1.2"),)),
        CardLocation("D1", (CardMessage("1.2"), CardMessage("1.3", 2), CardMessage("1.4", 4))),
        CardLocation("C1", (CardMessage("5.6"),), "1.2"),
    ],
)
def test_a_message_id_says_where_the_card_is(location: CardLocation) -> None:
    assert read_location(str(location)) == location


@pytest.mark.parametrize("message_id", ["", "local-ab2c", "C1", "C1:", "C1:x", "C1:1.2,", "c1:1.2"])
def test_another_channels_message_id_is_none_of_ours(message_id: str) -> None:
    assert read_location(message_id) is None


def test_a_block_names_its_request() -> None:
    assert request_of(make_block_id(RequestId("r-1"), "q0:o1")) == "r-1"
    assert request_of("else:r-1:q0") is None
    assert request_of(None) is None


def test_a_chat_may_name_a_thread() -> None:
    assert read_chat("C1") == ("C1", None)
    assert read_chat("C1/1.2") == ("C1", "1.2")
    assert read_chat("") == ("", None)
