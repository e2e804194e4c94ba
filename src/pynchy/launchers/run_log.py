"""What a session's runners have printed, one after another, as one text."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, replace
from pathlib import Path

from pynchy.safe_folder import Folder, UnsafeFile
from pynchy.session import Session

CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of the text, and where the next one begins."""

    text: str
    next: int


def read_output(data: Path, session: Session, after: int, most: int = CHUNK) -> LogChunk:
    """Return what was printed after so many bytes; nothing if nothing was."""
    folder = Folder(data, "runners", session.group)
    start = 0
    for stem in session.launches:
        name = f"{stem}.log"
        try:
            size = folder.stat(name).st_size
            if after < start + size:
                is_last = stem == session.launches[-1]
                piece = _piece(folder, name, after - start, most, may_grow=is_last)
                return replace(piece, next=start + piece.next)
        except (OSError, UnsafeFile):
            continue
        start += size
    # Less than was read before: the log was too long, and has been started again.
    return LogChunk("", min(max(after, 0), start))


def _piece(folder: Folder, name: str, offset: int, most: int, *, may_grow: bool) -> LogChunk:
    with os.fdopen(folder.open_file(name), "rb") as file:
        file.seek(offset)
        raw = file.read(most)
    # A letter that is only half there stays for the next piece, if there can be one: a runner that
    # was killed in the middle of a letter must not hide what the next one prints.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(raw, final=len(raw) < most and not may_grow)
    left = len(decoder.getstate()[0])
    return LogChunk(text, offset + len(raw) - left)
