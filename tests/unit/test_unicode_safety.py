"""Characters that hide something are shown by number; emoji are left whole."""

import sys
import unicodedata

import pytest

from pynchy.unicode_safety import name_all

# Default-ignorable ones as the Unicode standard lists them, and blanks that look like nothing.
INVISIBLE = [
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180E),
    *(0x180F, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202E, 0x2060),
    *(0x2066, 0x206F, 0x2800, 0x3164, 0xFE00, 0xFE0E, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0x1D173),
    *(0x1D17A, 0xE0001, 0xE0020, 0xE007F, 0xE0080, 0xE0100, 0xE01EF, 0xE01F0, 0xE0FFF),
    *(0xFFF0, 0xFFF8, 0x13430, 0x16FE4, 0x1BCA0, 0x1BCA3, 0x1D159),
]
EMOJI = {
    "a heart": "\u2764\ufe0f",
    "a family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a flag": "\U0001f3f3\ufe0f\u200d\U0001f308",
    "a doctor": "\U0001f469\U0001f3fd\u200d\u2695\ufe0f",
    "a keycap": "1\ufe0f\u20e3",
    "a warning": "\u26a0\ufe0f",
}


# As Unicode's PropList.txt has them: Other_Default_Ignorable_Code_Point, Variation_Selector, and
# Prepended_Concatenation_Mark, which formats and is seen.
OTHER_DEFAULT_IGNORABLE = {
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0, 0xE0000),
    *range(0xFFF0, 0xFFF9),
    *range(0xE0002, 0xE0020),
    *range(0xE0080, 0xE0100),
    *range(0xE01F0, 0xE1000),
}
VARIATION_SELECTORS = {
    *range(0x180B, 0x180E),
    0x180F,
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
SEEN = {*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD}


def is_default_ignorable(code: int) -> bool:
    """Unicode's own derivation of Default_Ignorable_Code_Point, in its newest version."""
    formats = unicodedata.category(chr(code)) == "Cf"
    left_out = code in SEEN or 0xFFF9 <= code <= 0xFFFB or 0x13430 <= code <= 0x1343F
    return (
        (formats and not left_out) or code in OTHER_DEFAULT_IGNORABLE or code in VARIATION_SELECTORS
    )


def test_every_character_that_a_font_may_leave_out_is_shown_by_its_number() -> None:
    codes = [code for code in range(sys.maxunicode + 1) if is_default_ignorable(code)]
    hidden = [
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in {"Cc", "Zl", "Zp", "Cs"} and code not in {9, 10}
    ]

    shown_as_is = [code for code in (*codes, *hidden) if chr(code) in name_all(f"a{chr(code)}b")]

    assert len(codes) > 4_000
    assert [f"U+{code:04X}" for code in shown_as_is] == []


def test_no_letter_digit_or_sign_of_any_script_is_called_hidden() -> None:
    blanks = {0x2800, 0x1D159, 0x16FE4, *range(0x13430, 0x13460)}
    text = "".join(
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in "LMNPS"
        and not is_default_ignorable(code)
        and code not in blanks
    )

    assert name_all(text) == text


@pytest.mark.parametrize("code", INVISIBLE, ids=lambda code: f"U+{code:04X}")
def test_what_cannot_be_seen_is_shown_by_its_number(code: int) -> None:
    assert name_all(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"


@pytest.mark.parametrize("emoji", EMOJI.values(), ids=EMOJI)
def test_an_emoji_is_left_whole(emoji: str) -> None:
    assert name_all(f"go {emoji} now") == f"go {emoji} now"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f⟨U+FE0F⟩"),
        ("\U0001f600\u200da", "\U0001f600⟨U+200D⟩a"),
        ("a\u200d\U0001f600", "a⟨U+200D⟩\U0001f600"),
        ("a\ufe0f\u200d\U0001f600", "a⟨U+FE0F⟩⟨U+200D⟩\U0001f600"),
        ("1\ufe0f", "1⟨U+FE0F⟩"),
    ],
)
def test_what_joins_emoji_is_named_wherever_it_does_not(text: str, named: str) -> None:
    assert name_all(text) == named


def test_letters_of_other_scripts_are_left_alone() -> None:
    text = "Größe наука 日本語 العربية हिन्दी"

    assert name_all(text) == text
