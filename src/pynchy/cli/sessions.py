"""`pynchy sessions`: which sessions there are, and what each is doing."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rich.text import Text

from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.tables import plain_table
from pynchy.cli.text import duration, one_line, read_moment
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder

_STATE_STYLES = {"working": "green", "waiting": "yellow", "parked": "yellow", "ended": "dim"}
_NONE = 'No session is working or waiting. Start one with: pynchy run GROUP "prompt"'
_SHORT_LETTERS = 8
_NAMES = ("group", "agent", "session", "state", "since", "about")


@click.command("sessions", short_help="List the sessions, and what each is doing.")
@click.option("--all", "everything", is_flag=True, help="Also those that have ended.")
@json_option
@data_dir_option
def sessions_command(data: DataFolder, *, everything: bool, as_json: bool) -> None:
    r"""List the sessions that are working or wait on you, whoever started them.

    One that is parked waits on you without a process: it is resumed when you answer.

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
            return one_line(f"pynchy answer {detail}")
        case "ended":
            return one_line(detail)
        case _:
            return one_line(task)
