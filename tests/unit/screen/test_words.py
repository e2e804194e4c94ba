"""What agents wrote, as the screen shows it; and the order of the list."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pynchy.cli.screen.feed import understand
from pynchy.cli.screen.keys import naps
from pynchy.cli.screen.markdown_text import code, count_lines, is_diff, markdown
from pynchy.cli.screen.question_list import QuestionList
from pynchy.cli.screen.saved_state import DraftPart, SavedState
from pynchy.cli.views import HostQuestion, read_question
from pynchy.safe_folder import Folder

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("**bold** and `code`", "bold and code"),
        ("# Head\n\ntext", "Head\n\ntext"),
        ("- one\n- two\n  1. three", "• one\n• two\n  1. three"),
        ("> said", "▌ said"),
        ("```\na\n  b\n```", "│ a\n│   b"),
        ("[bank.com](http://evil.example)", "bank.com (http://evil.example)"),
        ("![picture](http://evil)", "!picture (http://evil)"),
        ("<script>x</script>", "<script>x</script>"),
        ("&#x202e;back &#x200b;", "⟨U+202E⟩back ⟨U+200B⟩"),
        ("[x](javascript:alert)", "[x](javascript:alert)"),
        (
            "\x1b[2Jgone [link](http://a/\x1b)",
            "⟨U+001B⟩[2Jgone link (http://a/%E2%9F%A8U+001B%E2%9F%A9)",
        ),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("Go?\n\n[x]: http://a 'and more'", "Go?\n\n[x]: http://a 'and more'"),
        ("[a](http://a 'and more')", "a (http://a “and more”)"),
        ("```and more\ncode\n```", "│ and more\n│ code"),
        ("", ""),
    ],
)
def test_markdown_is_shown_harmlessly(written: str, shown: str) -> None:
    assert markdown(written).plain == shown


def test_no_depth_or_length_of_markdown_is_too_much() -> None:
    for text in ("> " * 2_000 + "x", "- " * 2_000, "[" * 20_000, "*a" * 10_000, "`" * 20_000):
        assert markdown(text) is not None


def test_a_change_that_is_fenced_as_a_diff_is_coloured_without_a_head() -> None:
    text = markdown("```diff\n same\n-old\n--- a comment\n+new\n```")

    styles = {text.plain[s.start : s.end]: str(s.style) for s in text.spans}
    assert styles["-old"] == styles["--- a comment"] == "red"
    assert styles["+new"] == "green"
    assert styles.get(" same", "") == ""
    plain = markdown("```sh\n-old\n```")
    assert "red" not in {str(span.style) for span in plain.spans}


def test_a_diff_is_coloured_and_code_is_not_read_as_one() -> None:
    styles = {line.plain: [str(span.style) for span in line.spans] for line in code(DIFF).split()}

    assert is_diff(DIFF)
    assert "green" in styles["+new"]
    assert "red" in styles["-old"]
    assert not is_diff("+ a\n- b")
    assert count_lines("a\nb\n\n") == 2


def view(name: str, **fields: object) -> HostQuestion:
    raw = {
        "request_id": name,
        "short_id": name,
        "group": "g",
        "state": "open",
        "timestamp": NOW.isoformat(),
        "expires_at": (NOW + timedelta(days=1)).isoformat(),
        "questions": [{"question": "?"}],
        **fields,
    }
    return read_question(raw)


def listed(question_list: QuestionList, **how: object) -> list[str]:
    return [entry.view.short_id for entry in question_list.rows(**how)]  # type: ignore[arg-type]


def test_urgent_then_ends_soonest_then_oldest() -> None:
    question_list = QuestionList()
    soon = (NOW + timedelta(minutes=1)).isoformat()
    old = (NOW - timedelta(days=1)).isoformat()
    for one in (
        view("low", urgency="low", expires_at=soon),
        view("newer"),
        view("older", timestamp=old),
        view("soon", expires_at=soon),
        view("high", urgency="high"),
    ):
        question_list.put(one, at=0)

    assert listed(question_list) == ["high", "soon", "older", "newer", "low"]


def test_what_ended_stays_for_a_moment_and_longer_where_somebody_looks() -> None:
    question_list = QuestionList()
    for name in ("a", "b"):
        question_list.put(view(name), at=0)
    question_list.selected = ("g", "a")
    for name in ("a", "b"):
        question_list.put(replace(view(name), state="closed"), at=1)

    question_list.tidy(at=5, keep=())
    assert listed(question_list) == ["a", "b"]
    question_list.tidy(at=20, keep=())
    assert listed(question_list) == ["a"]


def test_what_the_host_no_longer_lists_is_asked_about() -> None:
    question_list = QuestionList()
    question_list.put(view("a"), at=0)

    assert question_list.sync([view("b")], at=1) == {("g", "a")}


def test_what_counts_is_forgotten_whole(tmp_path: Path) -> None:
    key = ("g", "a")
    kept = SavedState(Folder(tmp_path), lambda: NOW)
    kept.keep(key, [DraftPart((1,), "text")])
    kept.snooze(key, NOW + timedelta(hours=1))

    kept.save()
    again = SavedState(Folder(tmp_path), lambda: NOW)
    assert (again.draft(key, 1), set(again.asleep())) == ((DraftPart(text="text"),), {key})
    again.forget(key)
    again.save()

    last = SavedState(Folder(tmp_path), lambda: NOW)
    assert (last.written(key), last.asleep()) == ("", {})


@pytest.mark.parametrize("hours", [0.05, 0.2, 2, 100])
def test_nothing_is_hidden_up_to_its_end(hours: float) -> None:
    ends = NOW + timedelta(hours=hours)

    found = naps(view("a", expires_at=ends.isoformat()), NOW)

    assert all(NOW < nap.until <= ends - timedelta(minutes=5) for nap in found)
    assert bool(found) == (hours > 0.1)


@pytest.mark.parametrize(
    "rubbish",
    [{}, {"timestamp": 7}, {"timestamp": "never"}, {"timestamp": NOW.isoformat(), "questions": 7}],
)
def test_what_a_host_of_another_version_says_is_left_out(rubbish: dict[str, object]) -> None:
    assert understand(rubbish) is None
