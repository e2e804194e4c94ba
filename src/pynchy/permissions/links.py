"""Where paths lead once their links are followed, with so many steps and no more.

An agent may name thousands of paths, and make links that lead to links without end. What has not
been followed to its end is said, never guessed.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence

# Of all paths of one call together: some hundred files of usual depth.
MAX_STEPS = 5_000
# As many as Linux follows before it refuses to open the file.
_MAX_LINKS = 40
# All else (no right to look, a disk that fails) tells nothing of what is there.
_NO_LINK = frozenset({errno.EINVAL, errno.ENOENT, errno.ENOTDIR})
_MAX_NAME = 255
# A process, and what it has open: other files for each program that looks, and tomorrow.
_OF_PROCESS = re.compile(
    r"/proc/(?:[0-9]+|self|thread-self)(?:/|\Z)|/dev/(?:fd|std(?:in|out|err))\b"
)
# What parts a path from others in a text, and is seldom part of a name: ending one there is a try.
MARK = re.compile(r"[^\w./-]")


class LostTrack(Exception):
    """Where a path leads cannot be told; says why."""


class TooManySteps(LostTrack):
    """The call names more than is looked at."""

    def __init__(self) -> None:
        super().__init__("it names more files than rules look at")


class LinkReader:
    """Follows the links of one call's paths; each name is looked up on the disk once."""

    def __init__(self, most_steps: int = MAX_STEPS) -> None:
        self._steps_left = most_steps
        self._targets: dict[str, str | None] = {}
        self._missing: set[str] = set()
        self._folders: dict[str, str] = {}

    def real(self, path: str, folder: str = "") -> str:
        """Return where the path leads, from that folder if it is relative. Raise LostTrack."""
        return self._follow("" if path.startswith("/") else self._real_folder(folder), path)

    def beginnings(self, names: Sequence[str], start: int, folder: str = "") -> Iterator[str]:
        """Yield where a path of these names leads from `start` on, if it ends at any of its marks.

        Nothing is behind a name that is not there, so that prose costs little. Raise LostTrack.
        """
        real = self._real_folder(folder)
        for at in range(start, len(names)):
            for mark in MARK.finditer(names[at][: _MAX_NAME + 1]):
                yield self._follow(real, names[at][: mark.start()])
            real = self._follow(real, names[at]).rstrip("/")
            if real in self._missing:
                break
        yield real or "/"

    def _real_folder(self, folder: str) -> str:
        """Return where the folder leads, without a slash at its end."""
        if folder and folder not in self._folders:
            self._folders[folder] = self._follow("", folder).rstrip("/")
        return self._folders.get(folder, "")

    def _follow(self, real: str, path: str) -> str:
        left, links = path.split("/")[::-1], 0
        while left:
            self._step()
            name = left.pop()
            if name == "..":
                real = real.rpartition("/")[0]
            elif name not in {"", "."}:
                if _OF_PROCESS.match(f"{real}/{name}"):
                    raise LostTrack("a path in it leads through a process, to files of its own")
                target = self._target(f"{real}/{name}")
                if target is None:
                    real = f"{real}/{name}"
                    continue
                links += 1
                if links > _MAX_LINKS:
                    raise LostTrack("a path in it leads through too many links")
                real = "" if target.startswith("/") else real
                left += target.split("/")[::-1]
        return real or "/"

    def _step(self) -> None:
        if self._steps_left <= 0:
            raise TooManySteps
        self._steps_left -= 1

    def _target(self, path: str) -> str | None:
        """Return what the link says; None for what is no link, or not there."""
        if path not in self._targets:
            try:
                self._targets[path] = os.readlink(path)  # noqa: PTH115 - of the very text
            except (OSError, ValueError) as exc:
                if not isinstance(exc, OSError) or not _is_no_link(exc, path):
                    raise LostTrack("a path in it cannot be looked up") from exc
                self._targets[path] = None
                self._missing |= {path} if exc.errno != errno.EINVAL else set()
        return self._targets[path]


def _is_no_link(exc: OSError, path: str) -> bool:
    """True if the error says that no link is there."""
    if exc.errno == errno.ENAMETOOLONG:
        # No file has so long a name: it is a message, or another text. A path may be too long from
        # the root, though, and be there from the agent's folder.
        return len(path.rpartition("/")[2].encode(errors="surrogatepass")) > _MAX_NAME
    return exc.errno in _NO_LINK
