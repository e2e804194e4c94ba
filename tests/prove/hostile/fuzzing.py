"""Inputs that are nearly right: valid ones from the corpus, changed in their structure and bytes.

Hypothesis draws the changes, so that a failure shrinks to the one that matters; for volume the
same changes are drawn from a seeded generator, which is many times as fast.
"""

import copy
import json
import random
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from hypothesis import strategies as st

from pynchy.cli.text import clean, one_line
from pynchy.inbox.render import Renderer
from pynchy.inbox.views import MAX_LISTED_HTML
from pynchy.model import PendingQuestion
from pynchy.unicode_safety import name_all

CORPUS = Path(__file__).with_name("corpus")

TEXTS = (
    *(
        "",
        " ",
        "\0",
        "\n",
        "\x1b[2J",
        "\u202e",
        "\ud800",
        "\udcff",
        "é",
        "\U0001d4b3" * 300,
        "ß" * 500,
        "\u200b\u200c" * 5_000,
        "a\x7f" * 9_000,
        "\U000e0041" * 400,
    ),
    *("a" * 65, "a" * 501, "a" * 20_001, "../../x", "..", "/", "q1", "q1\n", "{initial", "{0}"),
    *("answered", "error", "1", "0", "999", "1,2,3", ",", "true", "NaN", "\uff19", "1e999", "30m"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.0, 1.5, -0.0, 1e308, float("inf"), float("nan")),
    *(2**31, 2**63, 2**64, -(2**200), 10**400, [], {}, [[]], [{}], {"": {}}, ["a", "a"], [None]),
    *TEXTS,
)
BYTES = (
    b"\0",
    b"\xff",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\u",
    b"\\",
    b"=",
    b"\n",
    b"1e",
)


# What a page may say around what an agent wrote.
_FRAME = 10_000


@cache
def _renderer() -> Renderer:
    return Renderer()


def check_shown(pending: PendingQuestion) -> None:
    """Whatever was asked, a list shows a bounded part of it, and nothing of it is hidden."""
    card = _renderer().card(pending)
    assert len(card.html) <= MAX_LISTED_HTML + _FRAME
    assert name_all(card.html) == card.html
    for question in pending.questions:
        assert len(one_line(question.text)) <= 500
        assert name_all(clean(question.text)) == clean(question.text)


class Draw(Protocol):
    """Where chance comes from."""

    def below(self, most: int) -> int:
        """Return a number from 0 to most - 1."""


class Seeded:
    """Chance from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable, not secret

    def below(self, most: int) -> int:
        return self._random.randrange(most)


class Drawn:
    """Chance from hypothesis, which can make it smaller."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def below(self, most: int) -> int:
        return self._draw(st.integers(0, most - 1))


@cache
def corpus(name: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((CORPUS / name).iterdir()))


@st.composite
def mutated(draw: Any, name: str) -> bytes:
    """Inputs that began as one of the corpus."""
    return mutate(Drawn(draw), corpus(name))


def volume(name: str, seed: int, count: int) -> Iterator[bytes]:
    """So many inputs, the same ones for the same seed; the corpus itself comes first."""
    known = corpus(name)
    yield from known
    for number in range(count - len(known)):
        yield mutate(Seeded(seed * 1_000_003 + number), known)


def mutate(chance: Draw, known: tuple[bytes, ...]) -> bytes:
    """Return one of the known inputs, changed a few times."""
    data = known[chance.below(len(known))]
    value, is_toml = _parsed(data)
    if value and chance.below(4):
        for _ in range(1 + chance.below(3)):
            value = _changed(chance, value)
        spelt = _toml(value) if is_toml else json.dumps(value, ensure_ascii=bool(chance.below(2)))
        data = spelt.encode("utf-8", "replace")
    for _ in range(chance.below(3)):
        data = _damaged(chance, data, known)
    return data


@cache
def _parsed(data: bytes) -> tuple[Any, bool]:
    """Return what the input says, None if that cannot be told, and whether it was TOML."""
    try:
        return copy.deepcopy(json.loads(data)), False
    except (ValueError, RecursionError):
        pass
    try:
        return tomllib.loads(data.decode()), True
    except ValueError:
        return None, False


def _toml(value: Any) -> str:
    """Spell the value as a document of one line for each key."""
    if not isinstance(value, dict):
        return _inline(value)
    return "".join(f"{json.dumps(key)} = {_inline(inner)}\n" for key, inner in value.items())


def _inline(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(k)}={_inline(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_inline, value)) + "]"
        case float():
            return repr(value)
        case _:
            return json.dumps(value, default=str)


def _changed(chance: Draw, value: Any) -> Any:
    """Return the value with one of its parts replaced, removed, doubled or buried."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return VALUES[chance.below(len(VALUES))]
    holder, key = places[chance.below(len(places))]
    match chance.below(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = [holder[key]] * (1 + chance.below(6))
        case 2:
            holder[key] = _buried(holder[key], chance.below(24))
        case 3 if isinstance(holder, dict):
            holder[TEXTS[chance.below(len(TEXTS))]] = holder[key]
        case _:
            holder[key] = VALUES[chance.below(len(VALUES))]
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(value, dict | list):
        return
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        yield from _places(value[key])


def _buried(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def _damaged(chance: Draw, data: bytes, known: tuple[bytes, ...]) -> bytes:
    at, end = sorted((chance.below(len(data) + 1), chance.below(len(data) + 1)))
    match chance.below(6):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:end] + data[at:end] * chance.below(5) + data[end:]
        case 3:
            return data[:at] + known[chance.below(len(known))][at:]
        case 4:
            return data[:at] + bytes([chance.below(256)]) + data[at + 1 :]
        case _:
            return data[:at] + BYTES[chance.below(len(BYTES))] + data[at:]
