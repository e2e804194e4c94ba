"""What agents write cannot do anything on the page, and hides nothing."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.inbox import markdown
from pynchy.inbox.views import card_view, one_line
from pynchy.model import Option, Question
from pynchy.testing import make_pending

ALLOWED = re.compile(
    r"</?(?:p|br|hr|blockquote|ul|ol|li|pre|code|em|strong|s|a|h[3-6]|table|thead|tbody|tr|th|td"
    r"|span)"
    r"(?: (?:href|target|title|class|rel|start|value)=\"[^\"<>]*\")*>"
)
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
    "![x](http://evil.example/x.png)",
    '[x](http://a.example/"onclick="alert(1))',
    "```\n</code></pre><script>alert(1)</script>\n```",
    '```" onload="alert(1)\nx\n```',
    "⟨U+202E⟩<b>",
    "[⟨U+202E⟩](http://a.example/⟨U+202E⟩)",
    "<!-- --><![CDATA[<script>]]>",
    "[a]: javascript:alert(1)\n\n[a]",
    "[x](//evil.example)",
    "[x](/api/sign-out-all)",
]


def only_allowed(html: str) -> bool:
    """True if what is left when the allowed tags are gone has no tag any more."""
    return "<" not in ALLOWED.sub("", html)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("make", [markdown.render, markdown.plain, markdown.code])
def test_an_attack_becomes_text(attack: str, make: object) -> None:
    html = str(make(attack))  # type: ignore[operator]

    assert only_allowed(html), html
    assert not re.search(r'<a href="(?!https?://|mailto:)', html), html


@given(
    st.text(alphabet=st.sampled_from("<>&\"'`[]()!*_~#|\\/:=- \nabijx⟨U+202E⟩\u202e"), max_size=200)
)
def test_no_text_makes_a_tag_that_is_not_ours(text: str) -> None:
    for make in (markdown.render, markdown.plain, markdown.code):
        html = str(make(text))
        assert only_allowed(html), html
        assert "\u202e" not in html


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u202e", "U+202E"),
        ("\u2066", "U+2066"),
        ("\u200b", "U+200B"),
        ("\ufeff", "U+FEFF"),
        ("\u00ad", "U+00AD"),
        ("\U000e0041", "U+E0041"),
        ("\x1b", "U+001B"),
        ("\x00", "U+0000"),
    ],
)
def test_a_hidden_character_is_shown_by_its_number(character: str, name: str) -> None:
    for make in (markdown.render, markdown.plain, markdown.code):
        html = str(make(f"a{character}b"))
        assert character not in html
        assert f'<span class="sign">{name}</span>' in html
    assert one_line(f"a{character}b") == f"a⟨{name}⟩b"


def test_a_link_says_where_it_leads() -> None:
    html = str(markdown.render("[your bank](https://evil.example/login)"))

    assert 'href="https://evil.example/login"' in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert "(evil.example/login)" in html
    assert "(evil.example: bank@evil.example/x)" in str(
        markdown.render("[your bank](https://bank@evil.example/x)")
    )
    assert "(a.example)" in str(markdown.render("<https://a.example/x>"))


@pytest.mark.parametrize(
    "asked",
    [
        "Delete the copy?\n\n[x]: http://a 'and the original'",
        "[Delete the copy?](http://a 'and the original')",
        "Delete the copy?\n\n```and the original\nrm copy\n```",
        "| Delete the copy? |\n|---|\n| yes | and the original |",
        "1. Delete the copy?\n7. and the original",
        "[Delete the copy?](<https://a.b/ and the original>)",
        "[Delete the copy?](mailto:a@b?subject=%20and%20the%20original)",
    ],
)
def test_nothing_that_markdown_would_leave_out_goes_unseen(asked: str) -> None:
    shown = re.sub(r"<(?!li value)[^>]*>", "", str(markdown.render(asked)))

    assert "Delete the copy?" in shown
    assert "and the original" in shown
    assert "7." not in asked or 'value="7"' in shown


@pytest.mark.parametrize(
    "asked",
    ["Ok?\n\n" + "> " * 101 + "\u274c", "| a |\n|---|\n| x | \u274c |", "- " * 120 + "\u274c"],
)
def test_a_sign_that_markdown_would_leave_out_is_shown(asked: str) -> None:
    assert "\u274c" in str(markdown.render(asked))


def test_markdown_is_rendered() -> None:
    html = str(
        markdown.render(
            "# Head\n\n**bold** `code`\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |"
        )
    )

    for part in (
        "<h3>Head</h3>",
        "<strong>bold</strong>",
        "<code>code</code>",
        "<li>two</li>",
        "<td>2</td>",
    ):
        assert part in html


def test_a_change_that_is_fenced_as_a_diff_is_marked_without_a_head() -> None:
    html = str(markdown.render("```diff\n same\n-old\n--- a comment\n+<b>new\n```"))

    assert '<span class="del">-old\n</span><span class="del">--- a comment\n</span>' in html
    assert '<span class="add">+&lt;b&gt;new\n</span>' in html
    assert '<span class="line"> same\n</span>' in html
    assert "class" not in str(markdown.render("```\n-old\n```"))


def test_a_diff_is_told_from_other_text() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"

    html = str(markdown.code(diff))

    assert '<span class="del">-old' in html
    assert '<span class="add">+new' in html
    assert '<span class="hunk">@@' in html
    for other in ("- a list\n+ of things", "--- a heading\ntext", "@@ at the start"):
        assert not markdown.is_diff(other)
        assert "<span" not in markdown.code(other)


@pytest.mark.parametrize("unit", ["[", "![", "*_", "> ", "- ", "`", "<", "[a](", "\\", "&", "|-"])
def test_a_long_hostile_text_is_not_slow(unit: str) -> None:
    plain = _seconds("word " * 4_000)

    hostile = _seconds((unit * 20_000)[:20_000])

    assert hostile < 2_000 * plain


def _seconds(text: str) -> float:
    started = time.perf_counter()
    markdown.render(text)
    return time.perf_counter() - started


def test_texts_that_would_take_long_together_are_shown_as_they_stand() -> None:
    costly = "<a@b.c> " * 400
    pending = make_pending(questions=(Question("**one**"), *[Question(costly)] * 3))

    texts = [str(view.text) for view in card_view(pending).questions]

    assert "<strong>one</strong>" in texts[0]
    assert [text.count('<a href="mailto:a@b.c"') for text in texts] == [0, 400, 400, 0]
    assert texts[3].startswith('<p class="as-is">&lt;a@b.c&gt; ')


def test_a_long_report_with_rules_and_tables_is_still_rendered() -> None:
    lines = ["| step | result |", "|" + "-" * 70 + "|" + "-" * 70 + "|", *["| a | `b_c` |"] * 200]

    view = card_view(make_pending(questions=(Question("\n".join(lines)),)))

    assert str(view.questions[0].text).count("<code>b_c</code>") == 200


def test_a_card_escapes_every_field_and_counts_lines() -> None:
    option = Option("<b>", "<i>", "\n".join(["line"] * 40))
    pending = make_pending(
        agent="<x>",
        task="<y>",
        title="<z>",
        questions=(Question("<w>", header="<v>", options=(option,)),),
    )

    view = card_view(pending)

    shown = view.questions[0].options[0]
    fields = (view.agent, view.task, view.title, view.questions[0].header, view.questions[0].text)
    assert all("<x" not in str(f) and "&lt;" in str(f) for f in (*fields, shown.label))
    assert shown.preview is not None
    assert (shown.preview.lines, shown.preview.is_long) == (40, True)
    assert view.is_plain


@pytest.mark.parametrize("entity", ["&#x202e;", "&#8238;", "&rlm;", "&ZeroWidthSpace;"])
def test_a_hidden_character_that_markdown_makes_is_shown_as_well(entity: str) -> None:
    html = str(markdown.render(f"a{entity}b **c{entity}d**"))

    assert html.count('<span class="sign">U+20') == 2
    assert not set(html) & set("\u202e\u200f\u200b")


@pytest.mark.parametrize(
    "text",
    [">" * 7 + " x", "> - " * 4 + "x", "\n".join("  " * n + "- x" for n in range(7)), "1000. x"],
)
def test_what_would_lead_out_of_the_card_is_shown_as_it_stands(text: str) -> None:
    assert str(markdown.render(text)).startswith('<p class="as-is">')


@pytest.mark.parametrize("text", [">" * 6 + " x", "> - " * 3 + "x", "999. x\n1. y"])
def test_what_has_room_is_read_as_markdown(text: str) -> None:
    assert "as-is" not in str(markdown.render(text))


def test_a_table_is_shown_as_written_where_all_must_be_in_sight() -> None:
    table = "| a | b |\n|---|---|\n| c | d |"

    assert "<table>" in str(markdown.render(table))
    assert str(markdown.render(table, is_whole=True)) == f'<p class="as-is">{table}</p>'
