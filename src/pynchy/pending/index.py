"""Every open question in memory, found by id, short id, chat or group without a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pynchy.errors import AmbiguousQuestion, UnknownQuestion
from pynchy.model import GroupName, PendingQuestion, RequestId, ShortId

Key = tuple[GroupName, RequestId]
Chat = tuple[str, str]
T = TypeVar("T")


class PendingIndex:
    """The questions that are not closed. Whoever changes one puts it in again."""

    def __init__(self) -> None:
        self._by_key: dict[Key, PendingQuestion] = {}
        self._by_id: dict[RequestId, dict[Key, None]] = {}
        self._by_short_id: dict[ShortId, Key] = {}
        self._by_chat: dict[Chat, dict[Key, None]] = {}
        self._by_group: dict[GroupName, dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[PendingQuestion]:
        return iter(list(self._by_key.values()))

    def put(self, pending: PendingQuestion) -> None:
        """Keep the question as it is now."""
        key = pending.key
        known = self._by_key.get(key)
        if known is None:
            self._by_id.setdefault(pending.request_id, {})[key] = None
            self._by_short_id[pending.short_id] = key
            self._by_group.setdefault(pending.group, {})[key] = None
        if known is None or known.cards is not pending.cards:
            for card in pending.cards:
                self._by_chat.setdefault((card.channel, card.chat), {})[key] = None
        self._by_key[key] = pending

    def remove(self, key: Key) -> None:
        """Forget the question if it is there."""
        pending = self._by_key.pop(key, None)
        if pending is None:
            return
        del self._by_short_id[pending.short_id]
        _discard(self._by_id, pending.request_id, key)
        _discard(self._by_group, pending.group, key)
        for card in pending.cards:
            _discard(self._by_chat, (card.channel, card.chat), key)

    def get(self, key: Key) -> PendingQuestion | None:
        """Return the question of that group, if it is open."""
        return self._by_key.get(key)

    def has_short_id(self, short_id: ShortId) -> bool:
        """True if a question that is not closed has that short id."""
        return short_id in self._by_short_id

    def resolve(self, target: str) -> PendingQuestion:
        """Return the question with that request id or short id.

        Raise UnknownQuestion if there is none, AmbiguousQuestion if groups share the id.
        """
        keys = self._by_id.get(RequestId(target), {})
        if len(keys) > 1:
            raise AmbiguousQuestion(f"{target} is open in several groups; use the short id")
        if keys:
            return self._by_key[next(iter(keys))]
        key = self._by_short_id.get(ShortId(target.removeprefix("#").lower()))
        if key is None:
            raise UnknownQuestion(f"no open question has the id {target}")
        return self._by_key[key]

    def in_chat(self, channel: str, chat: str) -> list[PendingQuestion]:
        """Return the questions that the chat shows, oldest first."""
        return [self._by_key[key] for key in self._by_chat.get((channel, chat), {})]

    def in_group(self, group: GroupName) -> list[PendingQuestion]:
        """Return the group's questions, oldest first."""
        return [self._by_key[key] for key in self._by_group.get(group, {})]

    def count_in_group(self, group: GroupName) -> int:
        """Return how many questions of the group are not closed."""
        return len(self._by_group.get(group, {}))


def _discard(table: dict[T, dict[Key, None]], entry: T, key: Key) -> None:
    keys = table.get(entry, {})
    keys.pop(key, None)
    if not keys:
        table.pop(entry, None)
