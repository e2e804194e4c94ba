"""The order of a list: the most urgent first, and no group takes all places from the others.

Each group has a few places among the first. What it asks beyond these comes behind the first few of
every other group, and so on. Otherwise the order is the one that was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

# What a person looks at without scrolling far. The page's `card-limit.js` has the same number.
SHARE = 5

_RANKS = {"high": 0, "normal": 1, "low": 2}

T = TypeVar("T")


def urgency_rank(urgency: str) -> int:
    """Return a number to sort by, the lowest for the most urgent; unknown words are normal."""
    return _RANKS.get(urgency, _RANKS["normal"])


def fair_order(items: Iterable[T], order: Callable[[T], Any], group: Callable[[T], str]) -> list[T]:
    """Return the items by `order`, with at most `SHARE` of each group before the next turn."""
    listed: Counter[str] = Counter()
    turns: list[tuple[int, T]] = []
    for item in sorted(items, key=order):
        name = group(item)
        turns.append((listed[name] // SHARE, item))
        listed[name] += 1
    return [item for _, item in sorted(turns, key=lambda turn: turn[0])]
