"""Text that agents wrote, as a terminal may have it."""

import json

import pytest

from pynchy.cli.text import clean, duration, one_line, to_json


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines", "two\nlines"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x1b[?1049hscreen", "screen"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cm0gLXJm\x07clip", "clip"),
        ("\x1bPdcs\x1b\\after", "after"),
        ("\x1b]never ended", "never ended"),
        ("\x1bcreset", "reset"),
        ("\x9b31mc1", "c1"),
        ("a\x00b\x07c\x08d\x7fe\x85f", "abcdef"),
        ("tab\tstop", "tab stop"),
        ("safe\u202etxt.exe", "safe⟨U+202E⟩txt.exe"),
        ("\u2066isolated\u2069", "⟨U+2066⟩isolated⟨U+2069⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("family 👨\u200d👩", "family 👨\u200d👩"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_hostile_text_is_shown_harmlessly(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


def test_cleaning_twice_changes_nothing_more() -> None:
    nested = "\x1b\x1b[0m[31mred\x1b[\x1b[0m2J"

    assert clean(clean(nested)) == clean(nested)
    assert "\x1b" not in clean(nested)


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [
        ("\n\n  first \nsecond", None, "first …"),
        ("only", None, "only"),
        ("", None, ""),
        ("abcdef", 4, "abc…"),
        ("abcd", 4, "abcd"),
    ],
)
def test_a_listing_shows_the_first_line(text: str, most: int | None, line: str) -> None:
    assert one_line(text, most) == line


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0s"),
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3_661, "1h 1m"),
        (3_601, "1h"),
        (90_000, "1d 1h"),
        (604_800, "7d"),
    ],
)
def test_durations_have_two_units(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_json_is_safe_in_a_terminal_and_keeps_its_value() -> None:
    value = {"q": "grüß \x1b[31m \x9b \u202e \U000e0041 \ud800 👍"}

    text = to_json(value)

    assert json.loads(text) == value
    assert text == clean(text)
    assert "grüß" in text
