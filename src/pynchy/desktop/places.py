"""Who has a place on the screen, and who waits for one: no group fills it alone.

Whatever is asked here takes no longer with more that wait, only with more groups: groups ask and
withdraw thousands of questions, and each of them would otherwise look at all others.
"""

from __future__ import annotations

import itertools
from collections import Counter

from pynchy.desktop.popup import PopupKey
from pynchy.model import GroupName

MAX_POPUPS = 20
MAX_POPUPS_OF_GROUP = 5
# By urgency, and then by who came first.
_Turn = tuple[int, int]


class PopupPlaces:
    """The places on one screen."""

    def __init__(self) -> None:
        self._placed: set[PopupKey] = set()
        self._of_group: Counter[GroupName] = Counter()
        # For each group, those of one urgency in the order in which they came.
        self._queues: dict[GroupName, dict[int, dict[PopupKey, int]]] = {}
        self._ranks: dict[PopupKey, int] = {}
        self._numbers = itertools.count()

    def has(self, key: PopupKey) -> bool:
        """True if it may be on the screen."""
        return key in self._placed

    def waits(self, key: PopupKey) -> bool:
        """True if there was no place for it."""
        return key in self._ranks

    def hold(self, key: PopupKey) -> None:
        """Count what is on the screen, whether there is room or not."""
        if key not in self._placed:
            self._stop_waiting(key)
            self._placed.add(key)
            self._of_group[key[0]] += 1

    def take(self, key: PopupKey, rank: int) -> bool:
        """Give it a place if there is one, else let it wait; the lowest rank comes first."""
        if self.has(key) or self._is_free(key[0]):
            self.hold(key)
            return True
        if self._ranks.get(key) != rank:
            self.wait(key, rank)
        return False

    def wait(self, key: PopupKey, rank: int) -> None:
        """Let it wait behind the others of its group and rank, also if it had a place."""
        self.leave(key)
        queue = self._queues.setdefault(key[0], {}).setdefault(rank, {})
        queue[key] = next(self._numbers)
        self._ranks[key] = rank

    def leave(self, key: PopupKey) -> None:
        """Neither count it nor let it wait any more."""
        self._stop_waiting(key)
        if key in self._placed:
            self._placed.remove(key)
            self._of_group -= Counter({key[0]: 1})

    def clear(self) -> None:
        """Forget all of them: the screen is empty."""
        for kept in (self._placed, self._of_group, self._queues, self._ranks):
            kept.clear()

    def next_to_show(self) -> PopupKey | None:
        """Return who waits and could have a place now, the most urgent first."""
        return self._first([group for group in self._queues if self._is_free(group)])

    def first_waiting(self) -> PopupKey | None:
        """Return who waits first, whether there is a place or not."""
        return self._first(list(self._queues))

    def waiting(self) -> Counter[GroupName]:
        """Return how many wait of each group."""
        return Counter({g: sum(map(len, ranks.values())) for g, ranks in self._queues.items()})

    def _is_free(self, group: GroupName) -> bool:
        has_room = len(self._placed) < MAX_POPUPS
        return has_room and self._of_group[group] < MAX_POPUPS_OF_GROUP

    def _first(self, groups: list[GroupName]) -> PopupKey | None:
        heads: list[tuple[_Turn, PopupKey]] = []
        for group in groups:
            rank = min(self._queues[group])
            key, number = next(iter(self._queues[group][rank].items()))
            heads.append(((rank, number), key))
        return min(heads)[1] if heads else None

    def _stop_waiting(self, key: PopupKey) -> None:
        rank = self._ranks.pop(key, None)
        if rank is None:
            return
        ranks = self._queues[key[0]]
        del ranks[rank][key]
        if not ranks[rank]:
            del ranks[rank]
        if not ranks:
            del self._queues[key[0]]
