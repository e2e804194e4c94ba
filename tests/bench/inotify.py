"""inotify as bare as Python allows: the limit that waiting for a file is held against."""

import asyncio
import ctypes
import os
import struct
from pathlib import Path

_IN_MOVED_TO = 0x80
_EVENT = struct.Struct("iIII")


class RawInotify:
    """One watch on one folder; wakes the coroutine that waits for a name."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc.inotify_add_watch(self._fd, os.fsencode(folder), _IN_MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        self._expected: dict[bytes, asyncio.Future[None]] = {}
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def expect(self, name: str) -> asyncio.Future[None]:
        """Return what is done when the name appears."""
        appeared = asyncio.get_running_loop().create_future()
        self._expected[name.encode()] = appeared
        return appeared

    def _read(self) -> None:
        data = os.read(self._fd, 4096)
        while data:
            _, _, _, length = _EVENT.unpack_from(data)
            name = data[_EVENT.size : _EVENT.size + length].rstrip(b"\0")
            data = data[_EVENT.size + length :]
            if name in self._expected:
                self._expected.pop(name).set_result(None)
