"""What lies in a terminal's input that nobody has read: the next to read would take it."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# A program that waits for input reads it at once. What it has not read by then is taken back.
READ_SECONDS = 0.5

_NUMBER = struct.Struct("i")


def count_unread(tty: str) -> int:
    """Return how many bytes lie there; 0 if that cannot be known."""
    with suppress(OSError), _opened(tty) as handle:
        told = fcntl.ioctl(handle, termios.FIONREAD, bytes(_NUMBER.size))
        return int(_NUMBER.unpack(told)[0])
    return 0


def drop_unread(tty: str) -> None:
    """Take away what nobody has read."""
    with suppress(OSError, termios.error), _opened(tty) as handle:
        termios.tcflush(handle, termios.TCIFLUSH)


@contextmanager
def _opened(tty: str) -> Iterator[int]:
    handle = os.open(tty, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
