"""`pynchy sessions`, `run`, `stop`, `log`: which sessions there are, and what each is doing."""

from __future__ import annotations

import queue
import shlex
import sys
import time
from datetime import UTC, datetime

import click
from rich.text import Text

from agent_runner.cores import names
from pynchy.cli.event_follower import EventFollower, HostLink
from pynchy.cli.events import describe_event
from pynchy.cli.options import (
    by_option,
    complete_groups,
    data_dir_option,
    json_option,
    session_argument,
)
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.tables import plain_table
from pynchy.cli.text import clean, duration, one_line, printed, read_moment, to_json
from pynchy.cli.views import how_to_decide, is_decision
from pynchy.client import HostClient, Json, StreamMessage
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_DENIED, EXIT_FAILED, EXIT_INTERRUPTED, HostError

_STATE_STYLES = {"working": "green", "waiting": "yellow", "parked": "yellow", "ended": "dim"}
_NONE = 'No session is working or waiting. Start one with: pynchy run GROUP "prompt"'
_SHORT_LETTERS = 8
_NAMES = ("group", "agent", "session", "state", "since", "about")

# A runner has its grace to end, and the host some more to notice.
_TIMEOUT_SECONDS = 600.0
_POLL_SECONDS = 0.5
_WIPE = "\r\x1b[2K"


@click.command("sessions", short_help="List the sessions, and what each is doing.")
@click.option("--all", "everything", is_flag=True, help="Also those that have ended.")
@json_option
@data_dir_option
def sessions_command(data: DataFolder, *, everything: bool, as_json: bool) -> None:
    r"""List the sessions that are working or waiting for you, whoever started them.

    A parked session waits for you without a process: it is resumed when you answer.

    A terminal shows the beginning of each id, which `pynchy stop` takes; --all and --json show
    all of it. Without a terminal each session is one line with tabs between its fields, the last
    of which says how isolated its agent is.

    \b
    Examples:
      pynchy sessions
      pynchy sessions --all --json | jq -r '.[] | select(.state == "ended") | .session_id'
    """
    views = HostClient.of(data).sessions()
    listed = [view for view in views if everything or view.get("state") != "ended"]
    now = datetime.now(UTC)
    if as_json:
        show_json(listed)
    elif not listed:
        click.echo(_NONE)
    elif is_terminal():
        table = plain_table(_NAMES, stretch="about")
        for view in listed:
            style = _STATE_STYLES.get(str(view.get("state")), "")
            fields = _fields(view, now)
            if not everything:
                fields[2] = _short(fields[2], views)
            cells = [Text(cell) for cell in fields]
            cells[3].stylize(style)
            table.add_row(*cells)
        show([table, *(Text(line) for line in _isolation(listed))])
    else:
        for view in listed:
            show_fields([*_fields(view, now), one_line(str(view.get("isolation", "")))])


def _isolation(views: list[Json]) -> list[str]:
    """Say once for each group how isolated its agents are."""
    said = {(str(view.get("group", "")), str(view.get("isolation", ""))) for view in views}
    return ["", *(one_line(f"{group}: isolation: {words}") for group, words in sorted(said))]


def _short(session_id: str, views: list[Json]) -> str:
    """Return the beginning of the id, if no other session's begins so."""
    short = session_id[:_SHORT_LETTERS]
    alike = [v for v in views if str(v.get("session_id", "")).startswith(short)]
    return short if len(alike) == 1 else session_id


def _fields(view: Json, now: datetime) -> list[str]:
    since = duration((now - read_moment(view["since"])).total_seconds())
    group, agent = one_line(str(view.get("group", ""))), one_line(str(view.get("agent") or "-"))
    return [
        group,
        agent,
        one_line(str(view.get("session_id", ""))),
        _state(view),
        since,
        _about(view),
    ]


def _state(view: Json) -> str:
    state = str(view.get("state", ""))
    return {"waiting": "waiting on you", "parked": "parked, waiting on you"}.get(state, state)


def _about(view: Json) -> str:
    detail, task = str(view.get("detail") or ""), str(view.get("task") or "")
    match view.get("state"):
        case "waiting" | "parked" if detail:
            decides = is_decision(str(view.get("waits_for") or ""))
            return one_line(how_to_decide(detail) if decides else f"pynchy answer {detail}")
        case "ended":
            return one_line(detail)
        case _:
            return one_line(task)


@click.command("run", short_help="Start an agent's session with a prompt.")
@click.argument("group", shell_complete=complete_groups)
@click.argument("prompt")
@click.option(
    "--agent", type=click.Choice(names()), help="Run this agent program instead of the launcher's."
)
@click.option("--follow", is_flag=True, help="Stay, and print what happens.  [Ctrl-C detaches]")
@json_option
@by_option
@data_dir_option
def run_command(  # noqa: PLR0913 - each is an option
    data: DataFolder,
    group: str,
    prompt: str,
    agent: str | None,
    by: str,
    *,
    follow: bool,
    as_json: bool,
) -> None:
    r"""Start a session of the group's agent with a prompt, and print the session's id.

    [groups.GROUP.launcher] in the settings says how the agent is started. A PROMPT of "-" is read
    from stdin. With --follow, print what the runner prints and what happens to the session until it
    has ended; with --json each piece is one line.

    Exit code: 0 it was started (with --follow: and ended well), 1 it was not (it failed), 5 no host
    is running, 7 it ended and something it wanted to do was not allowed, 130 detached.

    \b
    Examples:
      pynchy run web-team "Update the changelog, and ask me before you commit"
      pynchy run web-team - --agent codex --follow < task.md
    """
    if prompt == "-":
        prompt = sys.stdin.read()
    if not prompt.strip():
        raise click.BadParameter("a prompt is needed", param_hint="PROMPT")
    session = HostClient.of(data, _TIMEOUT_SECONDS).run(group, prompt, agent, by)
    session_id = str(session["session_id"])
    if not follow:
        if as_json:
            show_json(session)
        else:
            click.echo(session_id)
        return
    if not as_json:
        click.echo(f"session {session_id}", err=True)
    sys.exit(FollowedSession(data, group, session_id, as_json=as_json).stay())


@click.command("stop", short_help="End the runner of a session.")
@session_argument
@by_option
@data_dir_option
def stop_command(target: str, by: str, data: DataFolder) -> None:
    r"""End the runner of a session: ask it to end, and kill it if it does not (term_grace).

    What it asked stays open; an answer to that starts it again. An answer that it was just being
    given, or was about to be started with, is kept, and `pynchy retry` delivers it.

    Exit code: 0 it has ended, 4 nothing was running, 5 no host is running.

    \b
    Examples:
      pynchy stop 6f1c2f0a-0d1c-4f6e-9d57-3d3f1f6d2b11
      pynchy stop 6f1c
      pynchy stop web-team/nightly    # where two groups use the same id
    """
    view = HostClient.of(data, _TIMEOUT_SECONDS).stop(target, by)
    click.echo(f"{one_line(str(view['session_id']))}: {one_line(str(view['end']))}")


@click.command("log", short_help="Print what the runners of a session printed.")
@session_argument
@click.option("--follow", "-f", is_flag=True, help="Stay until it has ended.  [Ctrl-C detaches]")
@data_dir_option
def log_command(target: str, data: DataFolder, *, follow: bool) -> None:
    r"""Print what the runners of a session have printed, all of them in order.

    With --follow, go on with what is printed, and what happens to the session on stderr, until the
    session has ended.

    Exit code: 0, with --follow 1 if the session failed, 130 detached; 5 no host is running.

    \b
    Examples:
      pynchy log 6f1c
      pynchy log 6f1c --follow
    """
    client = HostClient.of(data)
    session = client.session(target)
    if follow:
        staying = FollowedSession(
            data, str(session["group"]), str(session["session_id"]), as_json=False
        )
        sys.exit(staying.stay())
    if not _print_all(client, f"{session['group']}/{session['session_id']}"):
        click.echo("It has printed nothing, or nothing that is kept.", err=True)


def _print_all(client: HostClient, session: str) -> bool:
    """Print all there is. Return False if there is nothing."""
    read = 0
    while piece := client.output(session, read):
        text, read = str(piece.get("text", "")), int(piece.get("next", 0))
        if not text:
            break
        click.echo(printed(text) if sys.stdout.isatty() else text, nl=False)
    return read > 0


class FollowedSession:
    """Stays with a session: prints what its runner prints and what happens, until it has ended.

    The output goes to stdout and all else to stderr; as JSON, every piece is one line on stdout.
    A host that goes away and comes back costs nothing but the wait.
    """

    def __init__(self, data: DataFolder, group: str, session_id: str, *, as_json: bool) -> None:
        self._data = data
        self._group = group
        self._session_id = session_id
        self._as_json = as_json
        self._news: queue.SimpleQueue[Json | HostLink] = queue.SimpleQueue()
        self._link = HostLink.UP
        self._read = 0
        self._state = "working"
        self._began = time.monotonic()
        self._shows_progress = sys.stderr.isatty() and not as_json

    def stay(self) -> int:
        """Return the exit code, when the session has ended or the person goes."""
        try:
            with EventFollower(self._data, self._hear, self._news.put):
                while not self._is_over():
                    self._tick()
                    self._take_news()
                self._take_news(wait=False)
        except KeyboardInterrupt:
            self._say(
                "Detached; the session goes on. See it with: pynchy sessions; "
                f"end it with: pynchy stop {clean(shlex.quote(self._session_id))}"
            )
            return EXIT_INTERRUPTED
        return self._farewell()

    def _hear(self, message: StreamMessage) -> None:
        """Runs in the follower's thread."""
        if self._is_ours(message.data):
            self._news.put(message.data)

    def _is_ours(self, view: Json) -> bool:
        return (view.get("group"), view.get("session_id")) == (self._group, self._session_id)

    def _is_over(self) -> bool:
        """Print what the runner has printed since, and say whether that was the last of it."""
        try:
            piece = HostClient.of(self._data).output(
                f"{self._group}/{self._session_id}", self._read
            )
        except HostError:
            return False  # the follower tells when it is back
        text = str(piece.get("text", ""))
        self._read, self._state = int(piece["next"]), str(piece["state"])
        if text:
            self._print(text)
        return self._state == "ended" and not text

    def _take_news(self, *, wait: bool = True) -> None:
        """Print what has happened; if nothing has, wait for a moment."""
        try:
            self._tell(self._news.get(timeout=_POLL_SECONDS if wait else 0.0))
            while True:
                self._tell(self._news.get_nowait())
        except queue.Empty:
            return

    def _tell(self, item: Json | HostLink) -> None:
        if isinstance(item, dict):
            if self._as_json:
                click.echo(to_json(item))
            else:
                self._say(describe_event(item))
        elif item is not self._link:
            self._link = item
            gone = "The host is gone; the session goes on. Waiting for the host."
            self._say(gone if item is HostLink.GONE else "The host is back.")

    def _print(self, text: str) -> None:
        if self._as_json:
            click.echo(to_json({"type": "output", "session_id": self._session_id, "text": text}))
            return
        self._wipe()
        click.echo(printed(text) if sys.stdout.isatty() else text, nl=False)

    def _farewell(self) -> int:
        sessions = HostClient.of(self._data).sessions()
        view = next((s for s in sessions if self._is_ours(s)), {})
        if not self._as_json:
            self._say(f"Ended: {clean(str(view.get('detail') or 'no more is known'))}")
        if view.get("failed"):
            return EXIT_FAILED
        return EXIT_DENIED if view.get("denied") else 0

    def _tick(self) -> None:
        if self._shows_progress:
            waits = "waiting on you" if self._state == "waiting" else self._state
            lasted = duration(time.monotonic() - self._began)
            click.echo(f"{_WIPE}{waits} ({lasted}; Ctrl-C detaches)", nl=False, err=True)

    def _say(self, text: str) -> None:
        self._wipe()
        click.echo(text, err=True)

    def _wipe(self) -> None:
        if self._shows_progress:
            click.echo(_WIPE, nl=False, err=True)
