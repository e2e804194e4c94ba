"""Which settings file a host has read, and whether it still says what it said then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """Where settings come from: `path` is None where the defaults count.

    `digest` is empty where the file cannot be read twice, such as a pipe.
    """

    path: Path | None = None
    digest: str = ""

    @classmethod
    def of(cls, path: Path | None) -> Self:
        """Return the file as it is now. To be asked before the file is read, not after."""
        return cls() if path is None else cls(path.absolute(), _digest(path))

    def has_changed(self) -> bool:
        """Whether the file says something else now, or is gone."""
        return self.path is not None and bool(self.digest) and _digest(self.path) != self.digest

    def is_file(self, path: Path | None) -> bool:
        """Whether the settings come from that file, whatever links lead to it."""
        if self.path is None or path is None:
            return self.path is path
        return self.path.resolve() == path.resolve()


def _digest(path: Path) -> str:
    from hashlib import sha256  # noqa: PLC0415 - commands that only look for the host need none

    try:
        return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError:
        return ""
