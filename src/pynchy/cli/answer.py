"""`pynchy answer`: answer a question; the exit code says whether this answer won."""

from __future__ import annotations

import sys

import click

from pynchy.cli.client import HostClient
from pynchy.cli.exits import EXIT_PARTLY
from pynchy.cli.ids import by_option, find_or_suggest, id_argument, telling_what_won
from pynchy.cli.options import TEXT, data_dir_option, json_option
from pynchy.cli.text import clean, one_line, to_json
from pynchy.cli.views import read_question
from pynchy.datafolder import DataFolder
from pynchy.errors import InvalidReply


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
    client = HostClient.of(data)
    if not values:
        if as_json:
            raise click.UsageError("--json needs the answer beside it: VALUE...")
        _ask_person(client, target, by, question)
        return
    try:
        if as_json:
            _send_silently(client, target, values, by, question)
        else:
            _send(client, target, values, by, question)
    except InvalidReply as exc:
        raise InvalidReply(f"{exc}\n{_allowed(client, target, question)}".strip()) from exc


def _send_silently(
    client: HostClient, target: str, values: tuple[str, ...], by: str, question: int | None
) -> None:
    """Answer, and print the question as it is then. Exit if that was only a part."""
    with telling_what_won(client, target):
        view, is_over = find_or_suggest(
            client, target, lambda: client.answer(target, values, by, question)
        )
    click.echo(to_json(view))
    if not is_over:
        sys.exit(EXIT_PARTLY)


def _send(
    client: HostClient, target: str, values: tuple[str, ...], by: str, question: int | None
) -> None:
    """Answer, and say what came of it. Exit if that was only a part."""
    view, is_over = find_or_suggest(
        client, target, lambda: client.answer(target, values, by, question)
    )
    answered = read_question(view)
    if is_over and answered.ending:
        said = "; ".join(answer.describe() for answer in answered.ending.answers)
        click.echo(f"{answered.short_id} answered: {clean(said)}")
        return
    click.echo(f"{answered.short_id}: noted. Still to be answered:")
    for number, missing in answered.missing:
        click.echo(f"  {number}. {one_line(missing.text)}")
    click.echo(f"Answer with: pynchy answer {answered.short_id} --question N VALUE")
    sys.exit(EXIT_PARTLY)


def _allowed(client: HostClient, target: str, question: int | None) -> str:
    """Say what the question takes."""
    asked = read_question(client.question(target))
    lines = []
    for number, one in enumerate(asked.questions, 1):
        if question in {None, number} and one.options:
            choices = ", ".join(f"{n} {label}" for n, label in enumerate(one.labels, 1))
            several = "one or more of" if one.multi_select else "one of"
            lines.append(f"{several}: {choices}; or your own words ({one_line(one.text, 60)})")
        elif question in {None, number}:
            lines.append(f"your own words ({one_line(one.text, 60)})")
    return "Allowed: " + "\n         ".join(lines) if lines else ""


def _ask_person(client: HostClient, target: str, by: str, question: int | None) -> None:
    from pynchy.cli.prompting import prompt_for  # noqa: PLC0415 - only for a person

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"What is the answer? Say it: pynchy answer {target} VALUE")
    asked = read_question(find_or_suggest(client, target, lambda: client.question(target)))
    while True:
        values = prompt_for(asked, question)
        try:
            _send(client, asked.request_id, values, by, question)
        except InvalidReply as exc:
            click.echo(clean(str(exc)), err=True)
        else:
            return
