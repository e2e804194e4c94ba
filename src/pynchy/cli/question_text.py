"""One question whole: what is asked, with previews, where it was shown, what happened to it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
from rich.text import Text

from pynchy.cli.text import clean, duration, flat, moment, one_line, to_json
from pynchy.cli.views import HostQuestion, read_question
from pynchy.model import Option, Question

_DELIVERED = {
    "live": "the agent was waiting and has it",
    "late": "the agent had stopped; it was resumed and has it",
    "none": "there was nothing to deliver",
    "dismissed": "it did not reach the agent and was dismissed",
}
_FENCE = re.compile(r"^(`{3,})(diff)?$", re.MULTILINE)
_CHANGED = re.compile(r"^[+-].*$", re.MULTILINE)


def question_sheet(question: HostQuestion) -> Iterator[Text]:
    """Yield what is asked."""
    head = Text(question.short_id, "bold")
    head.append(f"  {one_line(question.asker)}", "cyan")
    if question.kind_word:
        head.append(f"  {one_line(question.kind)}", "bold yellow")
    if question.title:
        head.append(f"  {flat(question.title)}", "bold")
    if question.urgency == "high":
        head.append("  urgent", "bold red")
    yield head
    if question.task:
        yield Text(f"task: {flat(question.task)}", "dim")
    many = len(question.questions) > 1
    for number, one in enumerate(question.questions, 1):
        answered = number - 1 in question.answered_numbers
        yield Text()
        yield from _asked(one, f"{number}. " if many else "", answered=answered)
    yield Text()


def story(question: HostQuestion, now: datetime) -> Iterator[Text]:
    """Yield where it was shown and what happened to it."""
    yield _line("asked", _ago(question.asked_at, now))
    if question.waits:
        left = duration((question.due_at - now).total_seconds())
        then = "its default counts" if question.defaults_at == question.due_at else "it expires"
        yield _line("left", f"{left}, then {then}")
        if question.unreachable and not question.parked:
            yield _line("agent", f"nobody waits for the answer: {one_line(question.unreachable)}")
        elif waits := question.agent_waits(now):
            yield _line("agent", waits)
    if question.approved and question.waits:
        yield _line("approved", question.approved)
    for card in question.cards:
        shown = f"{card.channel} {card.chat}".strip() + f": {card.state}"
        yield _line("card", one_line(f"{shown}, {card.error}" if card.error else shown))
    if question.ending is not None:
        yield _line("ended", f"{clean(question.ending.summary)}, {_ago(question.ending.at, now)}")
        for answer in question.ending.answers:
            if answer.edited is not None:
                yield _line("edited", clean(to_json(answer.edited)))
        yield from _delivery(question, now)
    yield _line("state", question.state)
    yield _line("id", question.request_id)


def next_step(question: HostQuestion) -> Iterator[Text]:
    """Yield what to type next, where there is something to do."""
    if question.waits and question.kind_word:
        short_id = question.short_id
        edit = " [--edit]" if question.is_editable else ""
        either = f"pynchy approve {short_id}{edit}, or: pynchy deny {short_id}"
        yield Text(f"\nDecide with: {either}", "dim")
    elif question.waits:
        several = "--question N " if len(question.questions) > 1 else ""
        yield Text(f"\nAnswer with: pynchy answer {question.short_id} {several}VALUE", "dim")
    elif question.state == "undelivered":
        yield Text(f"\n{what_remains(question, is_read=True)}", "dim")


def what_remains(question: HostQuestion, *, is_read: bool = False) -> str:
    """Say what can be done about an answer that did not arrive; `is_read` if it stands above."""
    short_id = question.short_id
    if question.unreachable:
        read = "" if is_read else f"Read it: pynchy show {short_id}; "
        return f"Nobody waits for it. {read}put it away: pynchy dismiss {short_id}"
    return f"Try again: pynchy retry {short_id}, or: pynchy dismiss {short_id}"


def say_if_nobody_waits(view: dict[str, Any]) -> None:
    """Warn on stderr where no agent can be told of the answer any more."""
    asked = read_question(view)
    if asked.ending is None and asked.unreachable:
        click.echo(
            f"Nobody waits for this answer any more: {one_line(asked.unreachable)}. It is kept: "
            f"pynchy show {asked.short_id} has it",
            err=True,
        )


def _asked(question: Question, number: str, *, answered: bool) -> Iterator[Text]:
    line = _with_changes(Text(number + clean(question.text), "bold"))
    if question.header:
        line.append(f"  [{flat(question.header)}]", "dim")
    if answered:
        line.append("  (answered)", "green")
    yield line
    for place, option in enumerate(question.options, 1):
        yield from _option(place, option, is_default=option.label in question.default)
    if not question.options:
        yield Text("   (answer in your own words)", "dim")
    elif rule := _rule(question):
        yield Text(f"   ({rule})", "dim")
    if not set(question.default) <= set(question.labels):
        yield Text(f"   default: {clean(', '.join(question.default))}", "dim")


def _with_changes(text: Text) -> Text:
    """Return the text with what comes and goes in its diffs in colours."""
    for begin, end in _diffs(text.plain):
        for line in _CHANGED.finditer(text.plain, begin, end):
            text.stylize("green" if line[0].startswith("+") else "red", *line.span())
    return text


def _diffs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each diff between fences begins and ends. No text takes long."""
    fences = list(_FENCE.finditer(text))
    closing: dict[str, list[int]] = {}
    for fence in fences:
        if not fence[2]:
            closing.setdefault(fence[1], []).append(fence.start())
    done = 0
    for fence in fences:
        ends = closing.get(fence[1], [])
        # An empty line at least stands between the two.
        next_end = bisect_left(ends, fence.end() + 2)
        if fence[2] and fence.start() >= done and next_end < len(ends):
            done = ends[next_end]
            yield fence.end() + 1, done - 1


def _rule(question: Question) -> str:
    """Return what goes without saying of no question: how many, and whether only options count."""
    many = "one or more" if question.multi_select else ""
    only = "" if question.takes_words else "only these"
    noted = "a note can go along" if question.takes_words and not question.takes_words_alone else ""
    return ", ".join(filter(None, (many, only, noted)))


def _option(number: int, option: Option, *, is_default: bool) -> Iterator[Text]:
    line = Text(f"  {number:>2}  {flat(option.label)}")
    rows = [row for row in clean(option.description).split("\n") if row.strip()]
    if len(rows) == 1:
        line.append(f"  {rows.pop()}", "dim")
    if is_default:
        line.append("  (default)", "yellow")
    yield line
    for row in rows:
        yield Text(f"      {row}", "dim")
    if option.preview:
        for row in clean(option.preview).split("\n"):
            yield Text(f"      │ {row}", "dim")


def _delivery(question: HostQuestion, now: datetime) -> Iterator[Text]:
    if question.taker_died:
        yield _line("agent", "received the answer, then its process died before it passed it on")
    if question.delivered:
        when = f", {_ago(question.delivered_at, now)}" if question.delivered_at else ""
        yield _line("delivery", _DELIVERED.get(question.delivered, question.delivered) + when)
    elif question.delivery_error:
        attempts = question.delivery_attempts
        tried = f" (tried {_times(attempts)})" if attempts else ""
        how = "put off" if question.state == "held" else "failed"
        yield _line("delivery", f"{how}: {one_line(question.delivery_error)}{tried}")
        if question.retry_at:
            left = duration(max((question.retry_at - now).total_seconds(), 0))
            yield _line("next", f"in {left}; at once with: pynchy retry {question.short_id}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _line(name: str, text: str) -> Text:
    return Text(f"{name:<9}", "dim").append(text, "not dim")


def _ago(at: datetime, now: datetime) -> str:
    return f"{moment(at)} ({duration((now - at).total_seconds())} ago)"
