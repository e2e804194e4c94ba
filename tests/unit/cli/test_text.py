"""Text that agents wrote, as a terminal may have it."""

import json
import time

import pytest

from pynchy.cli.text import clean, duration, flat, one_line, printed, to_json


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines", "two\nlines"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[31mred\x1b[0m", "⟨U+001B⟩[31mred⟨U+001B⟩[0m"),
        ("\x1b[2J\x1b[1;1Hgone", "⟨U+001B⟩[2J⟨U+001B⟩[1;1Hgone"),
        ("\x1b]0;title\x07after", "⟨U+001B⟩]0;title⟨U+0007⟩after"),
        ("\x1b]8;;http://evil\x1b\\link", "⟨U+001B⟩]8;;http://evil⟨U+001B⟩\\link"),
        ("\x1bPdcs\x1b\\after", "⟨U+001B⟩Pdcs⟨U+001B⟩\\after"),
        ("\x1bcreset", "⟨U+001B⟩creset"),
        ("\x9b31mc1\x9cafter", "⟨U+009B⟩31mc1⟨U+009C⟩after"),
        ("a\x00b\x08c\x7fd\x85e", "a⟨U+0000⟩b⟨U+0008⟩c⟨U+007F⟩d⟨U+0085⟩e"),
        ("zero\u200b\u200b\u200bs", "zero⟨U+200B x3⟩s"),
        ("tab\tstop", "tab stop"),
        ("safe\u202etxt.exe", "safe⟨U+202E⟩txt.exe"),
        ("\u2066isolated\u2069", "⟨U+2066⟩isolated⟨U+2069⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("family 👨\u200d👩", "family 👨⟨U+200D⟩👩"),
        ("thumb 👍\U0001f3fd\U0001f3fd", "thumb 👍⟨U+1F3FD x2⟩"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_hostile_text_is_shown_harmlessly(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


@pytest.mark.parametrize("start", ["\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x9d", "\x90"])
@pytest.mark.parametrize("end", ["\x07", "\x1b\\", "\x9c", ""])
def test_what_stands_within_an_escape_string_is_shown(start: str, end: str) -> None:
    asked = f"May I delete the {start}0;production database, not the {end}staging copy?"

    for shown in (clean(asked), flat(asked), one_line(asked), printed(asked)):
        assert "production database, not the " in shown
        assert shown.startswith("May I delete the ")
        assert shown.endswith("staging copy?")


def test_what_a_program_printed_loses_its_colours_and_nothing_else() -> None:
    output = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x1b[123456789012345678901m"

    assert printed(output) == "red ⟨U+001B⟩]0;title⟨U+0007⟩ ⟨U+001B⟩[123456789012345678901m"


def test_lines_that_are_put_into_one_stay_whole() -> None:
    assert flat(" Yes\n\n and the backups, too ") == "Yes ⏎ and the backups, too"
    assert flat("Yes" + " " * 74 + "2  No") == "Yes ⟨74 spaces⟩ 2  No"


def test_empty_lines_push_nothing_out_of_sight() -> None:
    assert clean("Drop it?" + "\n \n" * 100 + "Ended") == "Drop it?\n⟨199 empty lines⟩\nEnded"
    assert clean("one\n\n\ntwo") == "one\n\n\ntwo"


def test_a_long_text_of_escapes_is_cleaned_in_no_time() -> None:
    hostile = "\x1b]\x1b[" * 20_000

    before = time.process_time()
    clean(hostile)
    few = time.process_time() - before
    clean(hostile * 4)
    many = time.process_time() - before - few

    assert many < few * 8  # four times as much takes four times as long, not sixteen


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
        ("abcd\nefgh", 4, "abc…"),
        ("abc\nefgh", 4, "abc…"),
        ("ab\nefgh", 4, "ab …"),
        ("a" * 499 + "\nmore", None, "a" * 499 + "…"),
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
