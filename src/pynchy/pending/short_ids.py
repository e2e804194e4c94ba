"""Short ids made for thumbs: four letters and digits that nobody mistakes for others.

The ids are a walk through all of them in an order that a secret decides: one comes back only after
all others had their turn, and who knows some of them cannot tell the next. How far the walk has
come is kept on disk in strides: a crash skips some ids and repeats none.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from threading import Lock

from pynchy.model import ShortId
from pynchy.pending.base import SHORT_ID_ALPHABET, SHORT_ID_LENGTH
from pynchy.safe_folder import Folder

_SPACE = len(SHORT_ID_ALPHABET) ** SHORT_ID_LENGTH
# The smallest even number of bits that can hold every id.
_HALF_BITS = 10
_HALF = 1 << _HALF_BITS
_ROUNDS = 8
_KEY_BYTES = 32
_STRIDE = 256
_FILE = "short_ids.json"


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
