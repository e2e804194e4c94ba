"""Ask the person at the terminal what to answer. Nothing is sent before every part is typed."""

from __future__ import annotations

import re
import sys

import click

from pynchy.cli.output import show
from pynchy.cli.question_text import question_sheet
from pynchy.cli.text import clean
from pynchy.cli.views import HostQuestion
from pynchy.errors import InvalidReply
from pynchy.exits import QuestionOver
from pynchy.model import Question

_SEPARATOR = re.compile(r"[,;]\s*")


def prompt_for(asked: HostQuestion, number: int | None) -> tuple[str, ...]:
    """Return the values for the question of that number, or one value for each question.

    Raise QuestionOver if it needs none any more. Ctrl-C raises click.Abort: nothing is answered.
    """
    if asked.ending is not None:
        raise QuestionOver(f"already over: {asked.ending.summary}")
    if number is not None and number > len(asked.questions):
        raise InvalidReply(f"there is no question {number}: choose 1 to {len(asked.questions)}")
    show(question_sheet(asked))
    _drop_typed_ahead()
    if number is None and len(asked.questions) > 1:
        return tuple(_prompt(one, f"Answer {n}") for n, one in enumerate(asked.questions, 1))
    one = asked.questions[(number or 1) - 1]
    value = _prompt(one, "Answer")
    return _split(one, value)


def _prompt(question: Question, label: str) -> str:
    hint = _hint(question)
    return str(click.prompt(f"{label} ({hint})", prompt_suffix=": ", type=str)).strip()


def _hint(question: Question) -> str:
    if not question.options:
        return "in your own words"
    numbers = f"1-{len(question.options)}"
    return f"{numbers}, several with commas" if question.multi_select else f"{numbers} or text"


def _split(question: Question, value: str) -> tuple[str, ...]:
    if not question.multi_select or clean(value) in question.labels:
        return (value,)
    return tuple(part for part in _SEPARATOR.split(value) if part)


def _drop_typed_ahead() -> None:
    """Forget keys that were meant for something else."""
    try:
        import termios  # noqa: PLC0415 - not on every system

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):
        return
