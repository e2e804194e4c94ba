"""`pynchy answer`, `decline`, `retry`, `dismiss`: what a person does with one question.

The exit code says whether this answer won.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import click

from pynchy.choices import OWN_WORDS, read_typed
from pynchy.cli.options import (
    TEXT,
    by_option,
    data_dir_option,
    find_question,
    id_argument,
    json_option,
    reply_to,
    telling_what_won,
)
from pynchy.cli.output import show
from pynchy.cli.question_text import question_sheet, say_if_nobody_waits
from pynchy.cli.text import clean, flat, one_line, to_json
from pynchy.cli.views import HostQuestion, how_to_decide, read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_PARTLY, InvalidReply, QuestionOver
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
    if question.multi_select:
        return f"{numbers}, several with commas"
    return f"{numbers} or text" if question.takes_words_alone else numbers


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


@click.command("answer", short_help="Answer a question.")
@id_argument
@click.argument("values", type=TEXT, metavar="VALUE...", nargs=-1)
@click.option("--question", type=click.IntRange(1), metavar="N", help="Answer only question N.")
@click.option(
    "--text", type=TEXT, metavar="TEXT", help="Your own words, not matched with any option."
)
@json_option
@by_option
@data_dir_option
def answer_command(  # noqa: PLR0913 - one for each option
    *,
    target: str,
    values: tuple[str, ...],
    question: int | None,
    text: str | None,
    by: str,
    data: DataFolder,
    as_json: bool,
) -> None:
    r"""Answer a question by the number or label of an option, or in your own words.

    A text that is nearly a label is not accepted: you are told what to type for the option. With
    --text your words are the answer, exactly as written; together with a VALUE they are a note on
    that option.

    With several questions, give one value for each, or one question at a time with --question.
    Without a value the question is shown and you are asked. Put `--` before an answer that begins
    with a dash. With --json the question is printed as it is now: how it ended is in `ending`, also
    where somebody else was first.

    \b
    Exit code: 0 your answer won, 4 it was already over, 5 no host, 6 more questions need an
    answer, 2 wrong usage, 1 anything else.

    \b
    Examples:
      pynchy answer k7qm 1
      pynchy answer k7qm Yes
      pynchy answer k7qm --question 2 "only the staging servers"
      pynchy answer k7qm --text "yse"
      pynchy answer k7qm Yes --text "but not before six"
      pynchy answer k7qm Yes --json | jq -r .ending.answered_by
    """
    if not values and text is None:
        if as_json:
            raise click.UsageError("--json needs the answer beside it: VALUE...")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            decide = f"(a permission or an approval: {how_to_decide(target)})"
            raise click.UsageError(
                f"What is the answer? Say it: pynchy answer {target} VALUE {decide}"
            )
    client = HostClient.of(data)
    view = find_question(client, target)
    say_if_nobody_waits(view)
    answering = _Answering(client, view, by, question)
    if not values and text is None:
        _ask_person(answering)
        return
    try:
        said = _said(view, question, values, text)
        if as_json:
            answering.send_silently(said)
        else:
            answering.send(said)
    except InvalidReply as exc:
        why = str(exc).replace(OWN_WORDS, "or your own words with --text")
        raise InvalidReply(f"{why}\n{_allowed(view, question)}".strip()) from exc


def _said(
    view: dict[str, Any], number: int | None, values: tuple[str, ...], text: str | None
) -> dict[str, Any]:
    """Return the answer as the host takes it: values that it matches, or what is said for sure."""
    if text is None:
        return {"values": list(values)}
    asked = read_question(view).questions
    if number is None and len(asked) > 1:
        raise click.UsageError("which question is --text for? Say it: --question N")
    chosen: tuple[str, ...] = ()
    if values and (number or 1) <= len(asked):
        chosen = _chosen(asked[(number or 1) - 1], values)
    return {"answers": [{"selected": list(chosen), "text": text}]}


def _chosen(question: Question, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels that the values name. Raise InvalidReply if they name anything else."""
    answer = read_typed(question, values)
    if answer.text is not None:
        raise InvalidReply(f"beside --text only options can be named, and {answer.text!r} is none")
    return answer.selected


@dataclass(frozen=True, slots=True)
class _Answering:
    """Who answers which question: the one that was found when the command began, and no other."""

    client: HostClient
    view: dict[str, Any]
    by: str
    question: int | None

    def send_silently(self, said: dict[str, Any]) -> None:
        """Answer, and print the question as it is then. Exit if that was only a part."""
        with telling_what_won(self.client, self.view):
            view = self._reply(said)
        click.echo(to_json(view))
        if not view.get("ending"):
            sys.exit(EXIT_PARTLY)

    def send(self, said: dict[str, Any]) -> None:
        """Answer, and say what came of it. Exit if that was only a part."""
        answered = read_question(self._reply(said))
        if answered.ending:
            was = "; ".join(answer.describe() for answer in answered.ending.answers)
            click.echo(f"{answered.short_id} answered: {clean(was)}")
            return
        if answered.approved:
            click.echo(f"{answered.short_id}: noted. {answered.approved}")
            sys.exit(EXIT_PARTLY)
        click.echo(f"{answered.short_id}: noted. Still to be answered:")
        for number, missing in answered.missing:
            click.echo(f"  {number}. {one_line(missing.text)}")
        click.echo(f"Answer with: pynchy answer {answered.short_id} --question N VALUE")
        sys.exit(EXIT_PARTLY)

    def _reply(self, said: dict[str, Any]) -> dict[str, Any]:
        body: dict[str, object] = {**said, "by": self.by}
        if self.question:
            body["question"] = self.question
        return reply_to(self.client, self.view, "answer", **body)


def _allowed(view: dict[str, Any], question: int | None) -> str:
    """Say what the question takes."""
    asked = read_question(view)
    lines = []
    for number, one in enumerate(asked.questions, 1):
        if one.needs_word:
            lines.append(how_to_decide(asked.short_id))
        elif question in {None, number} and one.options:
            choices = ", ".join(f"{n}. {flat(label)}" for n, label in enumerate(one.labels, 1))
            several = "one or more of" if one.multi_select else "one of"
            lines.append(f"{several}: {choices}{_words(one)} ({one_line(one.text, 60)})")
        elif question in {None, number}:
            lines.append(f"your own words ({one_line(one.text, 60)})")
    if question is None and len(lines) > 1:
        lines.append(f"or one at a time: pynchy answer {asked.short_id} --question N VALUE")
    return "Allowed: " + "\n         ".join(lines) if lines else ""


def _words(question: Question) -> str:
    if question.takes_words_alone:
        return "; or your own words, with --text to have them taken word for word"
    return "; and a note beside it with --text" if question.takes_words else ""


def _ask_person(answering: _Answering) -> None:
    asked = read_question(answering.view)
    while True:
        values = prompt_for(asked, answering.question)
        try:
            answering.send({"values": list(values)})
        except InvalidReply as exc:
            click.echo(clean(str(exc)), err=True)
        else:
            return


@click.command("decline", short_help="End a question without an answer.")
@id_argument
@click.option("--reason", type=TEXT, metavar="TEXT", help="Tell the agent why.")
@json_option
@by_option
@data_dir_option
def decline_command(
    target: str, reason: str | None, by: str, data: DataFolder, *, as_json: bool
) -> None:
    r"""End a question without an answer; the agent is told that this is not consent.

    With --json the question is printed as it is now, also where somebody else was first.

    Exit code: 0 it is declined, 4 it was already over, 5 no host, 1 anything else.

    \b
    Example:
      pynchy decline k7qm --reason "ask again after the release"
    """
    client = HostClient.of(data)
    view = find_question(client, target)
    body = {"by": by} | ({"reason": reason} if reason else {})
    if as_json:
        with telling_what_won(client, view):
            view = reply_to(client, view, "decline", **body)
        click.echo(to_json(view))
        return
    view = reply_to(client, view, "decline", **body)
    click.echo(f"{read_question(view).short_id} declined")


@click.command("retry", short_help="Try again to deliver an answer that did not arrive.")
@id_argument
@by_option
@data_dir_option
def retry_command(target: str, by: str, data: DataFolder) -> None:
    r"""Try again to deliver an answer that did not reach its agent.

    Such answers are in `pynchy pending` with the reason. If another attempt is scheduled, it is
    made now. See what came of it with `pynchy show`. Only a group with a launcher, which resumes
    its agent, can be retried; otherwise the answer is kept for check_answer.

    \b
    Example:
      pynchy retry k7qm
    """
    client = HostClient.of(data)
    view = reply_to(client, find_question(client, target), "retry", by=by)
    short_id = read_question(view).short_id
    click.echo(f"{short_id}: trying again; see what comes of it with: pynchy show {short_id}")


@click.command("dismiss", short_help="Stop keeping an answer that could not be delivered.")
@id_argument
@by_option
@data_dir_option
def dismiss_command(target: str, by: str, data: DataFolder) -> None:
    r"""Stop keeping an answer that could not be delivered; history keeps it.

    A question that is still open has no answer to dismiss: end it with `pynchy decline`.

    Such answers are in `pynchy pending` with the reason, until an agent collects them with
    check_answer, `pynchy retry` delivers them, or answer_ttl has passed once more.

    \b
    Example:
      pynchy dismiss k7qm
    """
    client = HostClient.of(data)
    view = reply_to(client, find_question(client, target), "dismiss", by=by)
    click.echo(f"{read_question(view).short_id}: dismissed; it is in: pynchy history")
