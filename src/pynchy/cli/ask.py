"""`pynchy ask`: ask a person as an agent would, through the mailbox, and print the answer."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import click

from agent_runner.asking import Asker, Option, Outcome, Question, Request, Result, Urgency
from agent_runner.asking.arguments import MAX_LINE_CHARACTERS, MAX_OPTIONS, MAX_QUESTION_CHARACTERS
from agent_runner.errors import AgentRunnerError
from pynchy.cli.event_follower import EventFollower, HostLink
from pynchy.cli.mailbox import make_mailbox, warn_of_misspelling
from pynchy.cli.options import TEXT, complete_groups, data_dir_option, json_option
from pynchy.cli.text import clean, duration, to_json
from pynchy.client import StreamMessage
from pynchy.data_dir import DataFolder
from pynchy.errors import PynchyError
from pynchy.exits import EXIT_DECLINED, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_UNANSWERED, EXIT_USAGE
from pynchy.own_program import own_call

_TICK_SECONDS = 1.0
_WIPE = "\r\x1b[2K"

_EXITS = {
    Outcome.ANSWERED: 0,
    Outcome.DECLINED: EXIT_DECLINED,
    Outcome.DEFAULTED: EXIT_UNANSWERED,
    Outcome.PENDING: EXIT_UNANSWERED,
}
_GROUP = "cli"
_DURATION = re.compile(r"(?P<count>[0-9]+(?:\.[0-9]+)?)(?P<unit>[smhd]?)\Z")
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_MAX_SECONDS = 30 * 86_400


class Progress:
    """The lines on stderr while a question waits, as an async context manager.

    The short id is the host's to give: it comes with the event that tells of the question.
    """

    def __init__(self, data: DataFolder, request_id: str, *, show_ticks: bool) -> None:
        self._follower = EventFollower(data, self._on_message, self._on_link)
        self._option = data.option
        self._request_id = request_id
        self._show_ticks = show_ticks
        self._link = HostLink.UP
        self._started = time.monotonic()
        self._ticking: asyncio.Task[None] | None = None
        self.short_id = ""

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._follower.__enter__)
        if self._show_ticks:
            self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking
            self._write(_WIPE)
        await asyncio.to_thread(self._follower.__exit__)

    def stays_open(self) -> str:
        """Say that the question is still there, and under which id."""
        target = self.short_id or self._request_id
        how = f"{own_call()} answer{self._option} {target} VALUE"
        return f"The question stays open as {target}; answer it with: {how}"

    def _on_message(self, message: StreamMessage) -> None:
        """Runs in the follower's thread."""
        event = message.data
        asked = event.get("type") == "asked" and event.get("id") == self._request_id
        if asked and not self.short_id:
            self.short_id = str(event.get("short_id", ""))
            how = f"{own_call()} answer{self._option} {self.short_id} VALUE"
            self._say(f"Asked as {self.short_id}; answer with: {how}")

    def _on_link(self, link: HostLink) -> None:
        """Runs in the follower's thread."""
        if self._link is not link:
            gone = "The host is gone; still waiting. The question is kept."
            self._say(gone if link is HostLink.GONE else "The host is back.")
        self._link = link

    async def _tick(self) -> None:
        while True:
            waited = duration(time.monotonic() - self._started)
            self._write(f"{_WIPE}waiting for a person ({waited}; Ctrl-C stops waiting)")
            await asyncio.sleep(_TICK_SECONDS)

    def _say(self, text: str) -> None:
        self._write(f"{_WIPE if self._show_ticks else ''}{text}\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            click.echo(text, nl=False, err=True)
            sys.stderr.flush()


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


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    found = _DURATION.match(value)
    seconds = float(found["count"]) * _UNIT_SECONDS[found["unit"]] if found else 0
    if not 0 < seconds <= _MAX_SECONDS:
        message = f"{value!r} is not a duration; write 90, 90s, 30m or 2h, up to 30d"
        raise click.BadParameter(message, ctx, param)
    return seconds


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
@click.option(
    "--timeout",
    callback=_seconds,
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
) -> None:
    r"""Ask a person, as an agent would, and print the answer on stdout.

    Without -o the answer is free text; with it people may still write something else, unless
    --options-only says that only the options count. Several chosen options are printed one to a
    line. When the time is over, the question stays open.

    \b
    Exit code: 0 answered; 2 declined; 3 nobody answered in time (the question stays open, or
    its --default is printed); 1 it ended otherwise; 5 no host; 64 wrong usage; 130 Ctrl-C.

    \b
    Examples:
      pynchy ask "Deploy?" -o Yes -o No
      name=$(pynchy ask "Which branch?" --timeout 10m) || exit
      test "$(pynchy ask "Drop the table?" -o Yes -o No --options-only)" = Yes && ./drop
    """
    _check_options(question, options, default, multi=multi, options_only=options_only)
    _check_lengths(question, options, default or "", title)
    data.host()
    request = Request(
        questions=(
            Question(question, "", tuple(map(Option, options)), multi, default, options_only),
        ),
        title=title,
        agent=os.environ.get("PYNCHY_AGENT", ""),
        task=os.environ.get("PYNCHY_TASK", ""),
        urgency=Urgency(urgency),
        wait_seconds=timeout,
    )
    if group:
        warn_of_misspelling(data, group)
    progress = Progress(data, request.request_id, show_ticks=sys.stderr.isatty())
    try:
        result = asyncio.run(_ask(data, group or _own_group(data), request, progress))
    except KeyboardInterrupt:
        click.echo(f"No longer waiting. {progress.stays_open()}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    _report(result, progress, as_json=as_json)
    sys.exit(_EXITS.get(result.outcome, EXIT_FAILED))


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


def _own_group(data: DataFolder) -> str:
    """Return the group whose runner we are in, if any: its session is resumed by its launcher."""
    mailbox = Path(os.environ.get("PYNCHY_IPC_DIR", ""))
    return mailbox.name if mailbox.is_absolute() and mailbox.parent == data.ipc else _GROUP


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


def _report(result: Result, progress: Progress, *, as_json: bool) -> None:
    """Print the answer on stdout, and what is to be said of it on stderr."""
    if as_json:
        click.echo(to_json(_as_json(result, progress.short_id)))
    else:
        for line in _answer_lines(result):
            click.echo(line)
    if (remark := _remark(result, progress)) is not None:
        click.echo(clean(remark), err=True)


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
