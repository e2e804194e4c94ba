"""How listings look in a terminal. `now` is passed in, so that a test can stop the clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.question_text import what_remains
from pynchy.cli.text import duration, moment, one_line
from pynchy.cli.views import HostQuestion, read_question
from pynchy.client import Json
from pynchy.fair_order import fair_order, urgency_rank

_STATE_STYLES = {
    "open": "green",
    "undelivered": "bold red",
    "held": "yellow",
    "resuming": "yellow",
    "delivering": "yellow",
}
_OUTCOME_STYLES = {"answered": "green", "undeliverable": "bold red", "expired": "yellow"}
# What a person is shown at once; one group cannot take all of it from the others.
MAX_ROWS = 50
_MAX_CELL = 300
_MAX_LABELS = 20
_MAX_GROUPS_TOLD = 3
_ASK_SOMETHING = 'Nothing waits for an answer. Try: pynchy ask "Deploy?" -o Yes -o No'


def pending_screen(
    questions: Iterable[HostQuestion], now: datetime, most: int | None = MAX_ROWS
) -> list[Table | Text]:
    """Return what waits, and what could not be delivered with the way to fix it."""
    listed = most_wanted_first(questions)
    if not listed:
        return [Text(_ASK_SOMETHING)]
    shown, more = listed[:most], listed[most:] if most else []
    notes = [note for question in listed if (note := _undelivered_note(question))]
    rest = [_more_note(more)] if more else []
    return [pending_table(shown, now), *rest, *notes[:most]]


def _more_note(more: Sequence[HostQuestion]) -> Text:
    groups = Counter(question.group for question in more).most_common(_MAX_GROUPS_TOLD)
    told = ", ".join(f"{count} of {one_line(name)}" for name, count in groups)
    others = len(more) - sum(count for _, count in groups)
    told += f", {others} of others" if others else ""
    return Text(f"… and {len(more)} more: {told}. All of them: pynchy pending --all", "yellow")


def most_wanted_first(questions: Iterable[HostQuestion]) -> list[HostQuestion]:
    """Return what waits by urgency, the newest first, and then what is over and did not arrive.

    No group takes all of the first places.
    """

    def rank(question: HostQuestion) -> tuple[int, float]:
        return urgency_rank(question.urgency), -question.asked_at.timestamp()

    fair = fair_order(questions, rank, lambda question: question.group)
    return sorted(fair, key=lambda question: not question.waits)


def pending_table(questions: Iterable[HostQuestion], now: datetime) -> Table:
    """Return the questions as a table, with their titles if one has a title."""
    table, questions = _table(), list(questions)
    has_titles = any(question.title for question in questions)
    for name in ("id", "asked by"):
        table.add_column(name, no_wrap=True)
    if has_titles:
        table.add_column("title", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("question", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("options", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("age", "left", "state"):
        table.add_column(name, no_wrap=True)
    for question in questions:
        cells = pending_fields(question, now)
        if has_titles:
            cells.insert(2, one_line(question.title))
        style = _STATE_STYLES.get(question.state, "")
        table.add_row(
            Text(cells[0], "bold"), *(Text(cell) for cell in cells[1:-1]), Text(cells[-1], style)
        )
    return table


def pending_fields(question: HostQuestion, now: datetime) -> list[str]:
    """Return the cells of one row."""
    return [
        question.short_id,
        one_line(question.asker),
        _asked(question),
        _options(question),
        duration((now - question.asked_at).total_seconds()),
        _left(question, now),
        question.state,
    ]


def history_table(questions: Iterable[HostQuestion]) -> Table:
    """Return what is over as a table."""
    table = _table()
    for name in ("id", "asked by"):
        table.add_column(name, no_wrap=True)
    table.add_column("question", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("outcome", no_wrap=True)
    table.add_column("answer", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("by", "when"):
        table.add_column(name, no_wrap=True)
    for question in questions:
        cells = history_fields(question)
        styles = ["bold", "", "", _OUTCOME_STYLES.get(cells[3], ""), "", "", "dim"]
        if mark := delivery_mark(question):
            cells[3] += f", {mark}"
        table.add_row(*(Text(cell, style) for cell, style in zip(cells, styles, strict=True)))
    return table


def history_fields(question: HostQuestion) -> list[str]:
    """Return the cells of one row."""
    ending = question.ending
    return [
        question.short_id,
        one_line(question.asker),
        _asked(question),
        ending.outcome if ending else question.state,
        one_line(answer_line(question)),
        one_line(ending.by) if ending else "",
        moment(ending.at if ending else question.asked_at),
    ]


def delivery_mark(question: HostQuestion) -> str:
    """Return what to add to an outcome that never reached whoever asked."""
    return "not delivered" if question.delivered == "dismissed" else ""


def answer_line(question: HostQuestion) -> str:
    """Return what was answered, or else why not."""
    if question.ending is None:
        return ""
    said = "; ".join(answer.describe() for answer in question.ending.answers)
    return said or question.ending.reason


def plain_table(names: Iterable[str], *, stretch: str) -> Table:
    """Return an empty table in which one column takes what room there is."""
    table = _table()
    for name in names:
        if name == stretch:
            table.add_column(name, ratio=1, no_wrap=True, overflow="ellipsis")
        else:
            table.add_column(name, no_wrap=True)
    return table


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, expand=True, pad_edge=False, header_style="dim")


def _asked(question: HostQuestion) -> str:
    count = len(question.questions)
    more = f" (+{count - 1} more)" if count > 1 else ""
    first = one_line(question.brief, _MAX_CELL)
    mark = "! " if question.urgency == "high" else ""
    return f"{mark}{question.kind_word}{first}{more}"


def _options(question: HostQuestion) -> str:
    if len(question.questions) != 1:
        return f"{len(question.questions)} questions"
    labels = question.questions[0].labels
    told = " / ".join(one_line(label, _MAX_CELL) for label in labels[:_MAX_LABELS])
    more = f" / +{len(labels) - _MAX_LABELS} more" if len(labels) > _MAX_LABELS else ""
    return one_line(told + more, _MAX_CELL) or "(free text)"


def _left(question: HostQuestion, now: datetime) -> str:
    if not question.waits:
        return "-"
    left = duration((question.due_at - now).total_seconds())
    return f"{left} (default)" if question.defaults_at == question.due_at else left


def _undelivered_note(question: HostQuestion) -> Text | None:
    if question.state != "undelivered":
        return None
    how = question.ending.outcome if question.ending else "over"
    note = Text(f"{question.short_id} was {how}, but that did not reach the agent: ")
    note.append(one_line(question.delivery_error) or "no reason is known", "red")
    return note.append(f"\n  {what_remains(question)}")


def print_pending(views: list[Json], *, as_json: bool, is_all: bool = False) -> None:
    """Print the list once, as the reader wants it."""
    now = datetime.now(UTC)
    questions = [read_question(view) for view in views]
    if as_json:
        show_json(views)
    elif is_terminal() or not views:
        show(pending_screen(questions, now, None if is_all else MAX_ROWS))
    else:
        for question in most_wanted_first(questions):
            more = [question.delivery_error, one_line(question.title)]
            show_fields([*pending_fields(question, now), *more])
