"""`pynchy ask`: ask a person as an agent would, through the mailbox, and print the answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click

from agent_runner.asking import (
    Approval,
    Asker,
    Option,
    Outcome,
    Question,
    Request,
    Result,
    Urgency,
)
from agent_runner.asking.arguments import (
    MAX_LINE_CHARACTERS,
    MAX_OPTIONS,
    MAX_PREVIEW_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    RISKS,
)
from agent_runner.errors import AgentRunnerError
from pynchy.cli.ask_progress import Progress
from pynchy.cli.mailbox import make_mailbox, own_group, warn_of_misspelling
from pynchy.cli.options import (
    TEXT,
    complete_groups,
    data_dir_option,
    json_option,
    read_duration,
)
from pynchy.cli.text import clean, to_json
from pynchy.data_dir import DataFolder
from pynchy.errors import (
    EXIT_DECLINED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_UNANSWERED,
    EXIT_USAGE,
    PynchyError,
)

_EXITS = {
    Outcome.ANSWERED: 0,
    Outcome.DECLINED: EXIT_DECLINED,
    Outcome.DEFAULTED: EXIT_UNANSWERED,
    Outcome.PENDING: EXIT_UNANSWERED,
}


class _WrongUse(click.UsageError):
    """Wrong use with an exit code that cannot be taken for a declined question."""

    exit_code = EXIT_USAGE


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except click.UsageError as exc:
        raise _WrongUse(exc.format_message(), exc.ctx) from exc


class _AskCommand(click.Command):
    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:  # noqa: ANN401 - click's
        with _told_apart():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        with _told_apart():
            return super().invoke(ctx)


@click.command("ask", cls=_AskCommand, short_help="Ask a person and print the answer.")
@click.argument("question", type=TEXT)
@click.option(
    "-o", "--option", "options", type=TEXT, multiple=True, help="A choice.", metavar="LABEL"
)
@click.option("--multi", is_flag=True, help="More than one option may be chosen.")
@click.option(
    "--options-only",
    is_flag=True,
    help="People can only choose an option, not write their own words.",
)
@click.option("--approve", is_flag=True, help="Ask for a yes or no to QUESTION.")
@click.option("--details", type=TEXT, metavar="TEXT", help="With --approve: what else to know.")
@click.option(
    "--preview-file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="With --approve: exactly what would be done, such as a diff; - for stdin.",
)
@click.option("--risk", type=click.Choice(RISKS), help="With --approve: how bad it could be.")
@click.option(
    "--timeout",
    callback=read_duration,
    metavar="S",
    help="How long to wait, such as 90 (seconds) or 30m.  [default: wait_timeout, 30m]",
)
@click.option(
    "--default", type=TEXT, metavar="VALUE", help="The answer to use if nobody answers in time."
)
@click.option("--title", type=TEXT, default="", help="A headline for the card.")
@click.option("--urgency", type=click.Choice([u.value for u in Urgency]), default="normal")
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="Ask as this group.  [default: that of PYNCHY_IPC_DIR, else cli]",
)
@json_option
@data_dir_option
def ask_command(  # noqa: PLR0913 - one for each option
    *,
    data: DataFolder,
    question: str,
    options: tuple[str, ...],
    timeout: float | None,
    default: str | None,
    title: str,
    urgency: str,
    group: str | None,
    multi: bool,
    options_only: bool,
    as_json: bool,
    approve: bool,
    details: str | None,
    preview_file: TextIO | None,
    risk: str | None,
) -> None:
    r"""Ask a person, as an agent would, and print the answer on stdout.

    Without -o the answer is free text; with it people may still write something else, unless
    --options-only says that only the options count. Several chosen options are printed one to a
    line. When the time is over, the question stays open.

    With --approve a person approves or denies, and may add words: "approved" or "denied" is
    printed, the words below it. Nothing else is ever a yes.

    \b
    Exit code: 0 answered; 2 declined; 3 nobody answered in time (the question stays open, or
    its --default is printed); 1 it ended otherwise; 5 no host; 64 wrong usage; 130 Ctrl-C.
    With --approve: 0 approved; 2 denied or declined; 3 nobody decided in time.

    \b
    Examples:
      pynchy ask "Deploy?" -o Yes -o No
      name=$(pynchy ask "Which branch?" --timeout 10m) || exit
      test "$(pynchy ask "Drop the table?" -o Yes -o No --options-only)" = Yes && ./drop
      pynchy ask --approve "Deploy 2.1?" --risk high --preview-file changes.diff && ./deploy
    """
    asked: dict[str, Any]
    if approve:
        choices = {"-o": options, "--multi": multi, "--options-only": options_only}
        _check_absent(choices | {"--default": default is not None}, "has no place beside --approve")
        asked = {"questions": (), "approval": _approval(question, details, preview_file, risk)}
    else:
        given = {"--details": details, "--preview-file": preview_file, "--risk": risk}
        _check_absent({name: v is not None for name, v in given.items()}, "needs --approve")
        _check_options(question, options, default, multi=multi, options_only=options_only)
        labelled = tuple(map(Option, options))
        asked = {"questions": (Question(question, "", labelled, multi, default, options_only),)}
    _check_lengths(question, options, default or "", title)
    data.host()
    request = Request(
        **asked,
        title=title,
        agent=os.environ.get("PYNCHY_AGENT", ""),
        task=os.environ.get("PYNCHY_TASK", ""),
        urgency=Urgency(urgency),
        wait_seconds=timeout,
    )
    if group:
        warn_of_misspelling(data, group)
    progress = Progress(data, request, show_ticks=sys.stderr.isatty())
    try:
        result = asyncio.run(_ask(data, group or own_group(data), request, progress))
    except KeyboardInterrupt:
        click.echo(f"No longer waiting. {progress.stays_open()}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    _report(result, progress, as_json=as_json, is_approval=approve)
    sys.exit(_exit_code(result, is_approval=approve))


def _exit_code(result: Result, *, is_approval: bool) -> int:
    if is_approval and result.outcome is Outcome.ANSWERED:
        return 0 if result.is_granted else EXIT_DECLINED
    if is_approval and result.outcome is Outcome.EXPIRED:
        return EXIT_UNANSWERED
    return _EXITS.get(result.outcome, EXIT_FAILED)


def _check_absent(given: Mapping[str, object], why: str) -> None:
    """Raise UsageError for an option that was given."""
    for name, is_given in given.items():
        if is_given:
            raise click.UsageError(f"{name} {why}")


def _approval(
    action: str, details: str | None, preview_file: TextIO | None, risk: str | None
) -> Approval:
    """Return what is to be approved. Raise UsageError for what the host would refuse."""
    if not action.strip():
        raise click.UsageError("the question must not be empty")
    try:
        preview = preview_file.read(MAX_PREVIEW_CHARACTERS + 1) if preview_file else ""
    except (OSError, UnicodeDecodeError) as exc:
        raise click.UsageError(f"--preview-file cannot be read as UTF-8 text: {exc}") from exc
    for name, text, most in (
        ("--details", details or "", MAX_QUESTION_CHARACTERS),
        ("--preview-file", preview, MAX_PREVIEW_CHARACTERS),
    ):
        if len(text) > most:
            raise click.UsageError(f"{name} is too long: at most {most} characters")
    return Approval(action, details or "", preview, risk or "")


def _check_options(
    question: str,
    options: tuple[str, ...],
    default: str | None,
    *,
    multi: bool,
    options_only: bool,
) -> None:
    """Raise UsageError for what a person could make nothing of."""
    if not question.strip() or not all(label.strip() for label in options):
        raise click.UsageError("the question and its options must not be empty")
    if len({label.casefold() for label in options}) < len(options):
        raise click.UsageError("two options have the same label; each -o must be different")
    for flag, is_set in (("--multi", multi), ("--options-only", options_only)):
        if is_set and not options:
            raise click.UsageError(f"{flag} needs options to choose from: -o LABEL")
    labels = [label.strip() for label in options]
    if options and default is not None and default.strip() not in labels:
        raise click.UsageError(
            f"--default {default!r} is not one of the options: {', '.join(labels)}"
        )


def _check_lengths(question: str, options: tuple[str, ...], default: str, title: str) -> None:
    """Raise UsageError for what the host would refuse as too long."""
    if len(options) > MAX_OPTIONS:
        raise click.UsageError(f"{len(options)} options are too many: at most {MAX_OPTIONS}")
    lines = [("an option", label) for label in options]
    lines += [("--default", default), ("--title", title)]
    limits = [("the question", question, MAX_QUESTION_CHARACTERS)]
    limits += [(name, line, MAX_LINE_CHARACTERS) for name, line in lines]
    for name, text, most in limits:
        if (length := len(text.strip())) > most:
            raise click.UsageError(f"{name} is too long: {length} characters, at most {most}")


async def _ask(data: DataFolder, group: str, request: Request, progress: Progress) -> Result:
    session_id = os.environ.get("PYNCHY_SESSION_ID", "")
    ipc_dir = make_mailbox(data, group)
    async with progress:
        try:
            async with Asker(ipc_dir, session_id=session_id) as asker:
                return await _ask_once(asker, request)
        except AgentRunnerError as exc:
            raise PynchyError(str(exc)) from exc


async def _ask_once(asker: Asker, request: Request) -> Result:
    """Ask, and tell the host when we are gone before there was an answer."""
    result = await asker.ask(request)
    if result.outcome is Outcome.PENDING:
        with suppress(OSError):  # the host also notices when our lease ends
            await asker.stop_waiting(request.request_id)
    return result


def _report(result: Result, progress: Progress, *, as_json: bool, is_approval: bool) -> None:
    """Print the answer on stdout, and what is to be said of it on stderr."""
    if as_json:
        view = _as_json(result, progress.short_id)
        click.echo(to_json(view | ({"approved": _approved(result)} if is_approval else {})))
    else:
        for line in _decision_lines(result) if is_approval else _answer_lines(result):
            click.echo(line)
    if (remark := _remark(result, progress)) is not None:
        click.echo(clean(remark), err=True)


def _approved(result: Result) -> bool | None:
    """Return what a person has decided; None where nobody has."""
    decided = result.outcome in {Outcome.ANSWERED, Outcome.DECLINED}
    return result.is_granted if decided else None


def _decision_lines(result: Result) -> list[str]:
    if result.outcome is not Outcome.ANSWERED:
        return []
    written = [clean(answer.text) for answer in result.answers if answer.text]
    return ["approved" if result.is_granted else "denied", *written]


def _answer_lines(result: Result) -> list[str]:
    lines = [clean(label) for answer in result.answers for label in answer.selected]
    return lines + [clean(answer.text) for answer in result.answers if answer.text]


def _remark(result: Result, progress: Progress) -> str | None:
    why = f": {result.reason}" if result.reason else ""
    match result.outcome:
        case Outcome.ANSWERED:
            return None
        case Outcome.DECLINED:
            return f"Declined by {result.answered_by or 'somebody'}{why}"
        case Outcome.DEFAULTED:
            return "Nobody answered in time: this is the default, not an answer."
        case Outcome.PENDING:
            return f"No answer in time. {progress.stays_open()}"
        case Outcome.EXPIRED:
            return f"Nobody answered, and the question has expired{why}"
        case Outcome.ELSEWHERE:
            return "The answer was handed to a resumed session and is not shown here."
        case Outcome.WITHDRAWN:
            return f"The question was withdrawn{why}"
        case _:
            return f"pynchy: the question was not answered: {result.error or result.outcome}"


def _as_json(result: Result, short_id: str) -> dict[str, object]:
    return {
        "request_id": result.request_id,
        "short_id": short_id,
        "outcome": result.outcome,
        "answers": [
            {"question": a.question, "selected": list(a.selected), "text": a.text}
            for a in result.answers
        ],
        "answered_by": result.answered_by,
        "channel": result.channel,
        "answered_at": result.answered_at,
        "reason": result.reason,
        "error": result.error,
    }
