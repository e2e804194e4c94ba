"""`pynchy events`: what happened, from the log on disk, or as it happens.

The log is read without a host, oldest first.
"""

from __future__ import annotations

import json
import queue
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.text import moment, one_line, read_moment, to_json
from pynchy.client import Json
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError

_NAME = "events.jsonl"
_TAIL = 1024 * 1024

_TOLD = ("group", "channel", "by", "state", "title", "detail", "question")
_DETAIL = 200
_ID = 40
_LINK_WORDS = {"up": "host is back", "gone": "host gone, waiting for it to come back"}


def read_events(audit: Path, after: int = 0) -> Iterator[Json]:
    """Yield every recorded event after that number."""
    with ExitStack() as stack:
        for file in [stack.enter_context(file) for file in _open_all(audit)]:
            for raw in file:
                event = _parse(raw)
                if event is not None and event["seq"] > after:
                    after = event["seq"]
                    yield event


def last_sequence(audit: Path) -> int:
    """Return the number of the newest event, 0 where there is none."""
    newest = newest_event(audit)
    return int(newest["seq"]) if newest else 0


def newest_event(audit: Path) -> Json | None:
    """Return the newest event, if there is one."""
    for path in reversed(_paths(audit)):
        with suppress(OSError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            events = [event for raw in file if (event := _parse(raw))]
            if events:
                return max(events, key=lambda event: int(event["seq"]))
    return None


def _open_all(audit: Path) -> list[BinaryIO]:
    files: list[BinaryIO] = []
    for path in _paths(audit):
        with suppress(FileNotFoundError):
            files.append(path.open("rb"))
    return files


def _paths(audit: Path) -> list[Path]:
    try:
        rotated = [path for path in audit.glob(f"{_NAME}.*") if path.suffix[1:].isdigit()]
    except OSError as exc:
        raise HostError(f"{audit}: the event log cannot be read ({exc.strerror})") from exc
    return [*sorted(rotated, key=lambda path: -int(path.suffix[1:])), audit / _NAME]


def _parse(raw: bytes) -> Json | None:
    try:
        event = json.loads(raw)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("seq"), int) else None


@click.command("events", short_help="List what happened, or follow it.")
@click.option("--follow", is_flag=True, help="Stay, and print what happens.  [Ctrl-C ends it]")
@click.option("--after", type=click.IntRange(0), metavar="SEQ", help="Only what came after SEQ.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "phux"]),
    help="How to print: json as --json does; phux in frames of what is asked, open ones first.",
)
@json_option
@data_dir_option
def events_command(
    data: DataFolder, after: int | None, form: str | None, *, follow: bool, as_json: bool
) -> None:
    r"""List what happened, oldest first; this needs no host, unless it follows.

    With --follow, print what happens from now on (or after SEQ), across restarts of the host and
    without a gap. With --json, every event is one line as in the event log.

    With --format phux, write what is open, and then what is asked, as frames that viewers of the
    terminal multiplexer phux read, until you end it.

    \b
    Examples:
      pynchy events --after 120
      pynchy events --follow --json
      pynchy events --format phux | my-viewer
    """
    if form == "phux":
        _follow_as_phux(data, as_json=as_json)
        return
    show = partial(_print, as_json=as_json or form == "json")
    if follow:
        _follow(data, after, show)
        return
    for event in read_events(data.audit, after or 0):
        show(event)


def _follow_as_phux(data: DataFolder, *, as_json: bool) -> None:
    from pynchy.cli.phux_events import PhuxEvents  # noqa: PLC0415 - only where it is wanted

    if as_json:
        raise click.UsageError("--json and --format phux exclude each other")
    if sys.stdout.isatty():
        raise click.UsageError("frames are for a program: pipe them into one, or into a file")
    events = PhuxEvents()
    # What is asked while the open ones are listed is in both, and written once.
    after = last_sequence(data.audit)
    events.show_open(data)
    _follow(data, after, events.show)


def _follow(data: DataFolder, after: int | None, show: Callable[[Json], None]) -> None:
    from pynchy.cli.event_follower import EventFollower, HostLink  # noqa: PLC0415 - threads only where needed

    data.host()
    news: queue.SimpleQueue[Json | HostLink] = queue.SimpleQueue()
    before = HostLink.UP
    try:
        with EventFollower(data, lambda message: news.put(message.data), news.put, after):
            while True:
                item = news.get()
                if isinstance(item, dict):
                    show(item)
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
