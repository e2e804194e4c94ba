"""Listings at a fixed moment."""

from datetime import datetime
from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from pynchy.cli.question_text import next_step, question_sheet, story
from pynchy.cli.tables import history_table, pending_fields, pending_screen
from pynchy.cli.views import read_question

NOW = datetime.fromisoformat("2026-11-16T10:00:00Z")


def view(**fields: Any) -> dict[str, Any]:
    return {
        "request_id": "r1",
        "short_id": "k7qm",
        "group": "web-team",
        "agent": "",
        "state": "open",
        "timestamp": "2026-11-16T09:55:00.000Z",
        "expires_at": "2026-11-18T10:00:00Z",
        "questions": [{"question": "Deploy?", "options": [{"label": "Yes"}, {"label": "No"}]}],
        "cards": [{"channel": "local", "chat": "", "state": "shown", "error": None}],
        **fields,
    }


def rendered(*parts: RenderableType, width: int = 100) -> list[str]:
    file = StringIO()
    console = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in file.getvalue().splitlines() if line.strip()]


def test_an_open_question_is_one_row() -> None:
    lines = rendered(*pending_screen([read_question(view(agent="claude"))], NOW))

    assert lines[0].split() == ["id", "asked", "by", "question", "options", "age", "left", "state"]
    row = " ".join(lines[2].split())
    assert row == "k7qm web-team/claude Deploy? Yes / No 5m 2d open"


def test_an_empty_list_shows_how_to_ask() -> None:
    assert "pynchy ask" in rendered(*pending_screen([], NOW))[0]


def test_a_long_question_is_cut_and_keeps_its_row() -> None:
    long = view(questions=[{"question": "Why? " * 200, "options": []}])

    lines = rendered(*pending_screen([read_question(long)], NOW), width=80)

    assert len(lines) == 3
    assert "…" in lines[2]
    assert max(map(len, lines)) <= 80


def test_markup_and_escapes_of_an_agent_stay_text() -> None:
    hostile = view(
        agent="\x1b]0;evil\x07bot",
        questions=[{"question": "[red]\x1b[31mRun?[/red] :smile:\nmore", "options": []}],
    )

    row = rendered(*pending_screen([read_question(hostile)], NOW))[2]

    assert "[red]⟨U+001B⟩[31mRu…" in row
    assert "web-team/⟨U+001B⟩]0;evil⟨U+0007⟩bot" in row


def test_a_default_is_told_beside_the_time_left() -> None:
    fields = pending_fields(read_question(view(defaults_at="2026-11-16T10:04:00Z")), NOW)

    assert fields[5] == "4m (default)"


def test_several_questions_are_counted() -> None:
    asked = view(urgency="high", questions=[{"question": "One?"}, {"question": "Two?"}])

    fields = pending_fields(read_question(asked), NOW)

    assert fields[2:4] == ["! One? (+1 more)", "2 questions"]


def test_an_undelivered_answer_has_its_reason_and_its_fix() -> None:
    ending = {"outcome": "answered", "answered_at": "2026-11-16T09:59:00Z", "summary": "answered"}
    stuck = view(state="undelivered", ending=ending, delivery_error="exit code 3")

    text = " ".join(rendered(*pending_screen([read_question(stuck)], NOW)))

    assert "k7qm was answered, but that did not reach the agent: exit code 3" in text
    assert "pynchy retry k7qm" in text


def test_history_tells_outcome_answer_and_person() -> None:
    ending = {
        "outcome": "answered",
        "answered_at": "2026-11-16T09:59:00Z",
        "answered_by": "ana",
        "summary": "answered by ana: Yes",
        "answers": [{"question": "Deploy?", "selected": ["Yes"], "text": "but slowly"}],
    }

    row = rendered(history_table([read_question(view(state="closed", ending=ending))]))[2]

    assert "answered" in row
    assert "Yes — but" in row
    assert "ana" in row


def test_a_default_that_is_no_label_is_shown_beside_the_options() -> None:
    options = [{"label": "Keep"}, {"label": "Archive"}]
    asked = view(questions=[{"question": "What?", "options": options, "default": ["Delete it"]}])

    assert "   default: Delete it" in rendered(*question_sheet(read_question(asked)))


def test_a_sheet_shows_previews_defaults_and_the_story() -> None:
    asked = view(
        title="Release",
        call_waits=False,
        questions=[
            {
                "question": "Which?",
                "header": "Plan",
                "multiSelect": True,
                "default": ["A"],
                "options": [{"label": "A", "description": "first", "preview": "+ one\n- two"}],
            }
        ],
    )
    question = read_question(asked)

    lines = rendered(*question_sheet(question), *story(question, NOW))

    assert lines[0] == "k7qm  web-team  Release"
    assert lines[1] == "Which?  [Plan]"
    assert lines[2] == "   1  A  first  (default)"
    assert lines[3:5] == ["      │ + one", "      │ - two"]
    assert lines[5] == "   (one or more)"
    assert "left     2d, then it expires" in lines
    assert "agent    its call no longer waits; the answer is kept for it" in lines


def test_the_command_to_answer_with_names_the_question_where_there_are_several() -> None:
    one, two = {"question": "Deploy?"}, {"question": "Where?"}

    alone = rendered(*next_step(read_question(view(questions=[one]))))
    both = rendered(*next_step(read_question(view(questions=[one, two]))))

    assert alone == ["Answer with: pynchy answer k7qm VALUE"]
    assert both == ["Answer with: pynchy answer k7qm --question N VALUE"]


def test_a_failed_attempt_is_told_with_the_next_one_and_the_way_to_make_it_now() -> None:
    ending = {"outcome": "answered", "answered_at": "2026-11-16T09:59:00Z", "answers": []}
    failed = {"delivery_error": "exit code 7", "delivery_attempts": 1}
    asked = view(state="resuming", ending=ending, retry_at="2026-11-16T10:05:00Z", **failed)

    lines = rendered(*story(read_question(asked), NOW))

    assert "delivery failed: exit code 7 (tried once)" in lines
    assert "next     in 5m; at once with: pynchy retry k7qm" in lines
