"""What an open page is still to be told: each card once, the groups in turns. Pure.

A group that asks and withdraws as fast as it may holds up no other: what is over before the page
was told of it is left out, and between two cards of one group every other group has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from pynchy.audit import AuditLine
from pynchy.events import EventKind
from pynchy.wire import read_event_key

# Of each group so many announcements wait to be told; older ones are left out.
MAX_ANNOUNCEMENTS = 20
# What tells nothing to a page that does not know the question.
_OVER = frozenset(
    {
        EventKind.ANSWERED,
        EventKind.DECLINED,
        EventKind.DEFAULTED,
        EventKind.EXPIRED,
        EventKind.WITHDRAWN,
        EventKind.UNDELIVERABLE,
        EventKind.CLEARED,
        EventKind.DELIVERED,
        EventKind.CARD_SETTLED,
        EventKind.SETTLE_FAILED,
        EventKind.CLOSED,
    }
)
EventKey = tuple[str, str]


class CardChanges:
    """The changes that wait for one page."""

    def __init__(self) -> None:
        # Who is served next stands first; a group that was served goes to the end.
        self._groups: dict[str, dict[EventKey | int, AuditLine]] = {}
        self._unseen: set[EventKey] = set()

    def add(self, lines: Iterable[AuditLine]) -> None:
        """Know what has happened."""
        for line in lines:
            key = read_event_key(line.data)
            if key is not None:
                self._add(line, key)

    def next(self) -> AuditLine | None:
        """Return the last line of what is to be told next; None if there is nothing."""
        if not self._groups:
            return None
        group = next(iter(self._groups))
        changes = self._groups.pop(group)
        line = changes.pop(next(iter(changes)))
        if changes:
            self._groups[group] = changes
        return line

    def is_unseen(self, key: EventKey) -> bool:
        """True if the question was asked since, and the page was not told of it."""
        return key in self._unseen

    def told(self, key: EventKey) -> None:
        """Know that the page has its card."""
        self._unseen.discard(key)

    def _add(self, line: AuditLine, key: EventKey) -> None:
        if line.kind == EventKind.ANNOUNCED:
            self._add_announcement(line, key[0])
        elif key in self._unseen and line.kind in _OVER:
            self._drop(key)
        else:
            self._groups.setdefault(key[0], {})[key] = line
        if line.kind == EventKind.ASKED:
            self._unseen.add(key)
        elif line.kind == EventKind.CLOSED:
            self._unseen.discard(key)

    def _add_announcement(self, line: AuditLine, group: str) -> None:
        changes = self._groups.setdefault(group, {})
        changes[line.sequence] = line
        waiting = [at for at in changes if isinstance(at, int)]
        for at in waiting[:-MAX_ANNOUNCEMENTS]:
            del changes[at]

    def _drop(self, key: EventKey) -> None:
        changes = self._groups.get(key[0], {})
        changes.pop(key, None)
        if not changes:
            self._groups.pop(key[0], None)
