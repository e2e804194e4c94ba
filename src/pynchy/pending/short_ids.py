"""Short ids made for thumbs: four letters and digits that nobody mistakes for others.

The ids are a walk through all of them in a scattered order, so one comes back only after all
others had their turn. How far the walk has come is kept on disk in strides: a crash skips
some ids and repeats none.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from threading import Lock

from pynchy.folder import Folder
from pynchy.model import ShortId

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
LENGTH = 4
_SPACE = len(ALPHABET) ** LENGTH
# Any step without a factor in common with the space visits every id once.
_STEP = 380_989
_STRIDE = 256
_FILE = "short_ids.json"


class ShortIds:
    """Hands out short ids that are not in use and were not used for a long time."""

    def __init__(self, folder: Folder, is_taken: Callable[[ShortId], bool]) -> None:
        self._folder = folder
        self._is_taken = is_taken
        self._lock = Lock()
        self._next = self._reserved = self._load()

    def make(self) -> ShortId:
        """Return a fresh id. Any thread may ask."""
        with self._lock:
            while True:
                if self._next == self._reserved:
                    self._reserve()
                short_id = _spell(self._next * _STEP % _SPACE)
                self._next += 1
                if not short_id.isdigit() and not self._is_taken(short_id):
                    return short_id

    def _load(self) -> int:
        try:
            value = json.loads(self._folder.read(_FILE, 1_024, one_link=False))["next"]
            return int(value)
        except (OSError, ValueError, KeyError, TypeError):
            return secrets.randbelow(_SPACE)

    def _reserve(self) -> None:
        reserved = self._next + _STRIDE
        self._folder.replace(_FILE, json.dumps({"next": reserved}).encode())
        self._reserved = reserved


def _spell(number: int) -> ShortId:
    letters = ""
    for _ in range(LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        letters += ALPHABET[digit]
    return ShortId(letters)
