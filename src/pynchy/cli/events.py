"""`pynchy events`: what happened, from the log on disk, or as it happens."""

from __future__ import annotations

import queue

import click

from pynchy.cli.eventlog import read_events
from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.text import moment, one_line, read_moment, to_json
from pynchy.client import Json
from pynchy.data_dir import DataFolder

_TOLD = ("group", "channel", "by", "state", "detail", "question")
_DETAIL = 200
_ID = 40
_LINK_WORDS = {"up": "host is back", "gone": "host gone, waiting for it to come back"}


@click.command("events", short_help="List what happened, or follow it.")
@click.option("--follow", is_flag=True, help="Stay, and print what happens.  [Ctrl-C ends it]")
@click.option("--after", type=click.IntRange(0), metavar="SEQ", help="Only what came after SEQ.")
@json_option
@data_dir_option
def events_command(data: DataFolder, after: int | None, *, follow: bool, as_json: bool) -> None:
    r"""List what happened, oldest first; this needs no host.

    With --follow, print what happens from now on (or after SEQ), across restarts of the host and
    without a gap. With --json, every event is one line as in the event log.

    \b
    Examples:
      pynchy events --after 120
      pynchy events --follow --json
    """
    if follow:
        _follow(data, after, as_json=as_json)
        return
    for event in read_events(data.audit, after or 0):
        _print(event, as_json=as_json)


def _follow(data: DataFolder, after: int | None, *, as_json: bool) -> None:
    from pynchy.cli.event_follower import EventFollower, HostLink  # noqa: PLC0415 - threads only where needed

    data.host()
    news: queue.SimpleQueue[Json | HostLink] = queue.SimpleQueue()
    before = HostLink.UP
    try:
        with EventFollower(data, lambda message: news.put(message.data), news.put, after):
            while True:
                item = news.get()
                if isinstance(item, dict):
                    _print(item, as_json=as_json)
                    continue
                if item is not before:
                    click.echo(_LINK_WORDS[item.value], err=True)
                before = item
    except KeyboardInterrupt:
        return


def _print(event: Json, *, as_json: bool) -> None:
    click.echo(to_json(event) if as_json else describe_event(event))


def describe_event(event: Json) -> str:
    """Return the event in one line for a person."""
    when = moment(read_moment(event["at"])) if "at" in event else ""
    kind = one_line(str(event.get("type", "")))
    about = event.get("short_id") or event.get("id") or event.get("session_id") or "-"
    short_id = one_line(str(about), _ID)
    told = [one_line(str(event[key]), _DETAIL) for key in _TOLD if event.get(key)]
    return f"{event['seq']:>6}  {when}  {kind:<15}  {short_id:<6}  {'  '.join(told)}"
