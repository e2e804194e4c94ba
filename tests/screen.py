"""A person's terminal as tests have it: a pty whose output is kept, and that is typed at."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until


class Screen:
    """A program that was started in a terminal of its own; `output` is all that it has written.

    `has_ended`: it will write no more.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> None:
        self.output = bytearray()
        self.code: int | None = None
        self.has_ended = False
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                if cwd is not None:
                    os.chdir(cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
                words = [str(word) for word in command]
                given = {"TERM": "xterm-256color", **os.environ, **(env or {})}
                os.execvpe(words[0], words, given)  # noqa: S606 - what the test is about
            finally:
                os._exit(99)
        os.set_blocking(self._master, False)
        fcntl.fcntl(self._master, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # not for other programs
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.output += data
        else:
            asyncio.get_running_loop().remove_reader(self._master)
            self.has_ended = True

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")

    async def shows(self, text: str, times: int = 1) -> None:
        """Wait until the text was written so often."""
        try:
            await until(lambda: self.text.count(text) >= times, repr(text))
        except AssertionError as exc:
            exc.add_note(f"the terminal shows: {self.text[-1_000:]!r}")
            raise

    def type(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                continue

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Read nothing meanwhile, as a slow terminal does."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._master)
        try:
            yield
        finally:
            loop.add_reader(self._master, self._read)

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    @property
    def is_raw(self) -> bool:
        """True if the terminal hands on each key as it is."""
        return not termios.tcgetattr(self._master)[3] & termios.ICANON

    @property
    def in_front(self) -> int:
        return os.tcgetpgrp(self._master)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def ends(self) -> int:
        """Wait for the program's end, and return how it ended: negative for a signal."""
        await until(self._has_ended, "the end of the program")
        assert self.code is not None
        return self.code

    def _has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def is_stopped(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        return bool(pid) and os.WIFSTOPPED(status)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        if not self._has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._master)
