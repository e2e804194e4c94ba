"""Every open question in memory, found by id, short id, session or group without a search."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TypeVar

from pynchy.model import GroupName, PendingQuestion, RequestId, SessionId, ShortId
from pynchy.pending.base import SHORT_ID_ALPHABET, SHORT_ID_LENGTH, Key
from pynchy.safe_folder import Folder

SessionKey = tuple[GroupName, SessionId]
T = TypeVar("T")

_SPACE = len(SHORT_ID_ALPHABET) ** SHORT_ID_LENGTH
# The smallest even number of bits that can hold every id.
_HALF_BITS = 10
_HALF = 1 << _HALF_BITS
_ROUNDS = 8
_KEY_BYTES = 32
_STRIDE = 256
_FILE = "short_ids.json"


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


class ShortIds:
    """Hands out short ids that are not in use and were not used for a long time."""

    def __init__(self, folder: Folder, is_taken: Callable[[ShortId], bool]) -> None:
        self._folder = folder
        self._is_taken = is_taken
        self._lock = Lock()
        self._key, self._next = self._load()
        self._reserved = self._next

    def make(self) -> ShortId:
        """Return a fresh id. Any thread may ask."""
        with self._lock:
            while True:
                if self._next == self._reserved:
                    self._reserve()
                short_id = _spell(_scatter(self._key, self._next % _SPACE))
                self._next += 1
                if not short_id.isdigit() and not self._is_taken(short_id):
                    return short_id

    def _load(self) -> tuple[bytes, int]:
        """Return the secret and how far the walk has come; new ones where they are not there."""
        try:
            fields = json.loads(self._folder.read(_FILE, 1_024, one_link=False))
            key, reached = bytes.fromhex(fields["key"]), int(fields["next"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return secrets.token_bytes(_KEY_BYTES), secrets.randbelow(_SPACE)
        return (key, reached) if len(key) == _KEY_BYTES else (secrets.token_bytes(_KEY_BYTES), 0)

    def _reserve(self) -> None:
        reserved = self._next + _STRIDE
        state = {"next": reserved, "key": self._key.hex()}
        self._folder.replace(_FILE, json.dumps(state).encode())
        self._reserved = reserved


def _scatter(key: bytes, number: int) -> int:
    """Return another number of the space for each number of it, as the key decides."""
    # A Feistel network permutes a space of 2**20; what falls outside ours goes through again.
    while True:
        left, right = divmod(number, _HALF)
        for turn in range(_ROUNDS):
            left, right = right, left ^ _mix(key, turn, right)
        number = left * _HALF + right
        if number < _SPACE:
            return number


def _mix(key: bytes, turn: int, half: int) -> int:
    mixed = hashlib.blake2b(bytes([turn, *half.to_bytes(2)]), key=key, digest_size=2)
    return int.from_bytes(mixed.digest()) % _HALF


def _spell(number: int) -> ShortId:
    letters = ""
    for _ in range(SHORT_ID_LENGTH):
        number, digit = divmod(number, len(SHORT_ID_ALPHABET))
        letters += SHORT_ID_ALPHABET[digit]
    return ShortId(letters)
