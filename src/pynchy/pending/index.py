"""Every open question in memory, found by id, short id, session or group without a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from pynchy.model import GroupName, PendingQuestion, RequestId, SessionId, ShortId
from pynchy.pending.base import Key

SessionKey = tuple[GroupName, SessionId]
T = TypeVar("T")


class PendingIndex:
    """OpenQuestions as tables. Whoever changes a question puts it in again.

    Every table holds the questions themselves: a lookup is one step, and a change is written to
    all of them.
    """

    def __init__(self) -> None:
        self._by_key: dict[Key, PendingQuestion] = {}
        self._by_id: dict[RequestId, dict[Key, PendingQuestion]] = {}
        self._by_short_id: dict[ShortId, PendingQuestion] = {}
        self._by_group: dict[GroupName, dict[Key, PendingQuestion]] = {}
        self._by_session: dict[SessionKey, dict[Key, PendingQuestion]] = {}
        self._bytes: Counter[GroupName] = Counter()

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[PendingQuestion]:
        return iter(list(self._by_key.values()))

    def put(self, pending: PendingQuestion) -> None:
        """See OpenQuestions."""
        key = pending.key
        if key not in self._by_key:
            self._bytes[pending.group] += pending.size_bytes
        self._by_key[key] = pending
        self._by_short_id[pending.short_id] = pending
        self._by_id.setdefault(pending.request_id, {})[key] = pending
        self._by_group.setdefault(pending.group, {})[key] = pending
        if pending.session_id:
            self._by_session.setdefault(_session(pending), {})[key] = pending

    def remove(self, key: Key) -> None:
        """See OpenQuestions."""
        pending = self._by_key.pop(key, None)
        if pending is None:
            return
        self._bytes[pending.group] -= pending.size_bytes
        del self._by_short_id[pending.short_id]
        _discard(self._by_id, pending.request_id, key)
        _discard(self._by_group, pending.group, key)
        _discard(self._by_session, _session(pending), key)

    def get(self, key: Key) -> PendingQuestion | None:
        """See OpenQuestions."""
        return self._by_key.get(key)

    def has_short_id(self, short_id: ShortId) -> bool:
        """True if a question that is not closed has that short id."""
        return short_id in self._by_short_id

    def with_short_id(self, short_id: ShortId) -> PendingQuestion | None:
        """See OpenQuestions."""
        return self._by_short_id.get(short_id)

    def with_request_id(self, request_id: RequestId) -> list[PendingQuestion]:
        """See OpenQuestions."""
        return list(self._by_id.get(request_id, {}).values())

    def in_group(self, group: GroupName) -> list[PendingQuestion]:
        """See OpenQuestions."""
        return list(self._by_group.get(group, {}).values())

    def in_session(self, group: GroupName, session_id: SessionId) -> list[PendingQuestion]:
        """See OpenQuestions."""
        return list(self._by_session.get((group, session_id), {}).values())

    def count_in_group(self, group: GroupName) -> int:
        """See OpenQuestions."""
        return len(self._by_group.get(group, {}))

    def bytes_in_group(self, group: GroupName) -> int:
        """See OpenQuestions."""
        return self._bytes[group]


def _session(pending: PendingQuestion) -> SessionKey:
    return (pending.group, pending.session_id)


def _discard(table: dict[T, dict[Key, PendingQuestion]], entry: T, key: Key) -> None:
    found = table.get(entry, {})
    found.pop(key, None)
    if not found:
        table.pop(entry, None)
