"""`pynchy events --format phux`: what is asked, as phux's viewers read it.

What is open comes first, then what is asked: a frame for each question, whose id is that of the
request, with a number behind it for the second and later questions of one request.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from pynchy.cli.text import read_moment
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.phux import Asked, encode_event, shorten
from pynchy.unicode_safety import name_all


class PhuxEvents:
    """Writes frames to standard output, each question once."""

    def __init__(self) -> None:
        self._open: set[tuple[str, str]] = set()

    def show_open(self, data: DataFolder) -> None:
        """Write what waits for a person now."""
        now = datetime.now(UTC)
        for view in HostClient.of(data).pending():
            if view.get("ending"):
                continue
            self._open.add(_key(view))
            elapsed = (now - read_moment(view["timestamp"])).total_seconds()
            offered = [[o["label"] for o in q.get("options", ())] for q in view["questions"]]
            asked = [q["question"] for q in view["questions"]]
            _write(_asks(str(view["request_id"]), asked, offered, elapsed))

    def show(self, event: Json) -> None:
        """Write the questions that the event tells of, unless they were written as open."""
        if event.get("type") != "asked":
            return
        if _key(event) in self._open:
            self._open.discard(_key(event))
            return
        asked = [str(one["question"]) for one in event.get("questions", ())]
        offered = [list(one.get("suggestions", ())) for one in event.get("questions", ())]
        elapsed = float(event.get("elapsed_seconds") or 0)
        _write(_asks(str(event["request_id"]), asked, offered, elapsed))


def _asks(
    request_id: str, asked: list[str], offered: list[list[str]], elapsed: float
) -> Iterator[Asked]:
    for number, (question, labels) in enumerate(zip(asked, offered, strict=True), 1):
        name = request_id if number == 1 else f"{request_id}#{number}"
        suggestions = tuple(map(name_all, labels))
        yield shorten(Asked(name, name_all(question), suggestions, max(0, int(elapsed))))


def _write(asks: Iterator[Asked]) -> None:
    sys.stdout.buffer.write(b"".join(map(encode_event, asks)))
    sys.stdout.buffer.flush()


def _key(told: Json) -> tuple[str, str]:
    return str(told.get("group")), str(told.get("request_id"))
