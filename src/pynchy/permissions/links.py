"""Where paths lead once their links are followed, with so many steps and no more.

An agent may name thousands of paths, and make links that lead to links without end. What has not
been followed to its end is said, never guessed.
"""

from __future__ import annotations

import errno
import os

# Of all paths of one call together: some hundred files of usual depth.
MAX_STEPS = 5_000
# As many as Linux follows before it refuses to open the file.
_MAX_LINKS = 40
# All else (no right to look, a disk that fails) tells nothing of what is there.
_NO_LINK = frozenset({errno.EINVAL, errno.ENOENT, errno.ENOTDIR})
_MAX_NAME = 255


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
        self._folders: dict[str, str] = {}

    def real(self, path: str, folder: str = "") -> str:
        """Return where the path leads, from that folder if it is relative. Raise LostTrack."""
        if path.startswith("/") or not folder:
            return self._follow("", path)
        if folder not in self._folders:
            self._folders[folder] = self._follow("", folder)
        return self._follow(self._folders[folder].rstrip("/"), path)

    def _follow(self, real: str, path: str) -> str:
        left, links = path.split("/")[::-1], 0
        while left:
            self._step()
            name = left.pop()
            if name == "..":
                real = real.rpartition("/")[0]
            elif name not in {"", "."}:
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
                if not _is_no_link(exc, path):
                    raise LostTrack("a path in it cannot be looked up") from exc
                self._targets[path] = None
        return self._targets[path]


def _is_no_link(exc: Exception, path: str) -> bool:
    """True if the error says that no link is there."""
    if not isinstance(exc, OSError):
        return False
    if exc.errno == errno.ENAMETOOLONG:
        # No file has so long a name: it is a message, or another text. A path may be too long from
        # the root, though, and be there from the agent's folder.
        return len(path.rpartition("/")[2].encode(errors="surrogatepass")) > _MAX_NAME
    return exc.errno in _NO_LINK
