"""What an agent can do while we look: put one thing in the place of another."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

# Whatever finds its way by a path.
_LOOKS = ("chown", "lstat", "mkdir", "open", "readlink", "stat")


class Exchange:
    """Two paths that change places just before a chosen look at the first of them."""

    def __init__(self, path: Path, other: Path) -> None:
        self._path = path
        self._other = other
        self._left = -1

    def now(self) -> None:
        """Let them change places."""
        aside = self._path.with_name("aside")
        self._path.rename(aside)
        self._other.rename(self._path)
        aside.rename(self._other)

    @contextmanager
    def before(self, look: int) -> Iterator[Callable[[], bool]]:
        """Let them change places before that look, the first being 0; yield whether they have."""
        self._left = look
        watched = {name: self._watched(getattr(os, name)) for name in _LOOKS}
        with patch.multiple(os, **watched):
            yield lambda: self._left < 0

    def _watched(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def run(path: Any, *args: Any, **options: Any) -> Any:
            # By the name alone: it may be looked up in a folder that is open.
            if not isinstance(path, int) and self._path.name in Path(os.fsdecode(path)).parts:
                self._left -= 1
                if self._left == -1:
                    self.now()
            return look(path, *args, **options)

        return run
