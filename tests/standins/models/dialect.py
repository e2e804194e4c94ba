"""What a dialect has to know, so that the server knows nothing of any API.

`problem` is where strictness lives: it says what the real API would refuse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.standins.models.script import Part

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a dialect sees it; header names are in lower case."""

    headers: Mapping[str, str]
    body: Json


class Dialect(Protocol):
    """One API."""

    def problem(self, request: Request) -> str | None:
        """Return why the API would refuse the request; None if it would not."""

    def tools(self, body: Json) -> Mapping[str, str]:
        """Return what the program calls each tool that it offers, by what its server calls it."""

    def answer(self, turn: Sequence[Part], names: Mapping[str, str], number: int) -> Iterator[str]:
        """Yield the lines of the stream that carries the turn. `number` makes its ids unique."""

    def refusal(self, status: int, message: str) -> Json:
        """Return the body of an error."""


def event(fields: Json, name: str = "") -> str:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(fields)}\n\n"


def bare_name(offered: str) -> str:
    """Return what a tool is called without what a program puts before it."""
    for mark in ("mcp__pynchy__", "pynchy_"):
        if offered.startswith(mark):
            return offered.removeprefix(mark)
    return offered


def unanswered(calls: Iterable[str], results: Iterable[str]) -> str | None:
    """Say which calls lack their result, or which results their call."""
    wanted, given = list(calls), list(results)
    if missing := [call for call in wanted if call not in given]:
        return f"tool calls without a result: {', '.join(missing)}"
    if strange := [result for result in given if result not in wanted]:
        return f"results of no tool call: {', '.join(strange)}"
    return None
