"""What an agent works on, by the folder that it works in."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

_BRANCH = re.compile(rb"ref: refs/heads/([^\x00-\x20\x7f]{1,200})\s*\Z")
_MAX_HEAD = 300
_MAX_PARENTS = 30
_MAX_TASK = 500


def describe_folder(cwd: str) -> str:
    """Return "repository @ branch" for a folder in one, else the folder's name."""
    folder = Path(cwd)
    if not cwd or not folder.is_absolute():
        return ""
    for place in [folder, *folder.parents][:_MAX_PARENTS]:
        with suppress(OSError, ValueError):
            if found := _BRANCH.match(_read_head(place / ".git" / "HEAD")):
                return f"{place.name} @ {found[1].decode(errors='replace')}"[:_MAX_TASK]
    return folder.name[:_MAX_TASK]


def _read_head(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.read(fd, _MAX_HEAD) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
