"""`pynchy answer`: answer a question; the exit code says whether this answer won."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import click

from pynchy.cli.ids import by_option, find_question, id_argument, reply_to, telling_what_won
from pynchy.cli.options import TEXT, data_dir_option, json_option
from pynchy.cli.text import clean, flat, one_line, to_json
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.errors import InvalidReply
from pynchy.exits import EXIT_PARTLY


@click.command("answer", short_help="Answer a question.")
@id_argument
@click.argument("values", type=TEXT, metavar="VALUE...", nargs=-1)
@click.option("--question", type=click.IntRange(1), metavar="N", help="Answer only question N.")
@json_option
@by_option
@data_dir_option
def answer_command(  # noqa: PLR0913 - one for each option
    target: str,
    values: tuple[str, ...],
    question: int | None,
    by: str,
    data: DataFolder,
    *,
    as_json: bool,
) -> None:
    r"""Answer a question by the number or label of an option, or in your own words.

    With several questions, give one value for each, or one question at a time with --question.
    Without a value the question is shown and you are asked. An answer that begins with a dash goes
    behind `--`. With --json the question is printed as it is now: how it ended is in `ending`, also
    where somebody else was first.

    \b
    Exit code: 0 your answer won, 4 it was already over, 5 no host, 6 more questions need an
    answer, 1 anything else.

    \b
    Examples:
      pynchy answer k7qm 1
      pynchy answer k7qm Yes
      pynchy answer k7qm --question 2 "only the staging servers"
      pynchy answer k7qm Yes --json | jq -r .ending.answered_by
    """
    if not values:
        if as_json:
            raise click.UsageError("--json needs the answer beside it: VALUE...")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise click.UsageError(f"What is the answer? Say it: pynchy answer {target} VALUE")
    client = HostClient.of(data)
    view = find_question(client, target)
    answering = _Answering(client, view, by, question)
    if not values:
        _ask_person(answering)
        return
    try:
        if as_json:
            answering.send_silently(values)
        else:
            answering.send(values)
    except InvalidReply as exc:
        raise InvalidReply(f"{exc}\n{_allowed(view, question)}".strip()) from exc


@dataclass(frozen=True, slots=True)
class _Answering:
    """Who answers which question: the one that was found when the command began, and no other."""

    client: HostClient
    view: dict[str, Any]
    by: str
    question: int | None

    def send_silently(self, values: tuple[str, ...]) -> None:
        """Answer, and print the question as it is then. Exit if that was only a part."""
        with telling_what_won(self.client, self.view):
            view = self._reply(values)
        click.echo(to_json(view))
        if not view.get("ending"):
            sys.exit(EXIT_PARTLY)

    def send(self, values: tuple[str, ...]) -> None:
        """Answer, and say what came of it. Exit if that was only a part."""
        answered = read_question(self._reply(values))
        if answered.ending:
            said = "; ".join(answer.describe() for answer in answered.ending.answers)
            click.echo(f"{answered.short_id} answered: {clean(said)}")
            return
        click.echo(f"{answered.short_id}: noted. Still to be answered:")
        for number, missing in answered.missing:
            click.echo(f"  {number}. {one_line(missing.text)}")
        click.echo(f"Answer with: pynchy answer {answered.short_id} --question N VALUE")
        sys.exit(EXIT_PARTLY)

    def _reply(self, values: tuple[str, ...]) -> dict[str, Any]:
        body: dict[str, object] = {"values": list(values), "by": self.by}
        if self.question:
            body["question"] = self.question
        return reply_to(self.client, self.view, "answer", **body)


def _allowed(view: dict[str, Any], question: int | None) -> str:
    """Say what the question takes."""
    asked = read_question(view)
    lines = []
    for number, one in enumerate(asked.questions, 1):
        if question in {None, number} and one.options:
            choices = ", ".join(f"{n}. {flat(label)}" for n, label in enumerate(one.labels, 1))
            several = "one or more of" if one.multi_select else "one of"
            lines.append(f"{several}: {choices}; or your own words ({one_line(one.text, 60)})")
        elif question in {None, number}:
            lines.append(f"your own words ({one_line(one.text, 60)})")
    return "Allowed: " + "\n         ".join(lines) if lines else ""


def _ask_person(answering: _Answering) -> None:
    from pynchy.cli.prompting import prompt_for  # noqa: PLC0415 - only for a person

    asked = read_question(answering.view)
    while True:
        values = prompt_for(asked, answering.question)
        try:
            answering.send(values)
        except InvalidReply as exc:
            click.echo(clean(str(exc)), err=True)
        else:
            return
