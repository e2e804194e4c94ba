"""`pynchy watch -- COMMAND`: a program in a terminal of ours, inside of the person's.

Bytes are copied in both directions before anything looks at them. One thread does that and nothing
else that takes time; asking people is done in another, and what is to be typed comes back here.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from pynchy.errors import PynchyError
from pynchy.terminals import keeper
from pynchy.terminals.asks import bytes_of
from pynchy.terminals.foreground import Foreground, group_in_front, look_at, why_not_typed
from pynchy.terminals.keeper import OuterTerminal
from pynchy.terminals.keys import KeyReader
from pynchy.terminals.output import OutputReader, TerminalNotice, Title
from pynchy.typed_line import Typed, TypingResult

_CHUNK = 65_536
_MAX_TYPED_AHEAD = 1024 * 1024
_LAST_WORDS_MS = 200
_CHECK_MS = 100
_SIZE = struct.Struct("HHHH")
_USUAL_SIZE = (24, 80, 0, 0)
_END_OF_FILE = b"\x04"
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


class CannotRun(PynchyError):
    """The program cannot be started; `code` is what a shell would end with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Listener(Protocol):
    """Who hears what the program tells its terminal. It is called between two copies: be quick."""

    def titled(self, title: str, asker: Foreground) -> None:
        """The program has given the terminal a title; that group was in front then."""

    def noticed(self, notice: TerminalNotice) -> None:
        """The program wants a person to be notified."""

    def tick(self) -> None:
        """Something has happened, or some time has gone by."""

    @property
    def is_waiting(self) -> bool:
        """True if `tick` is wanted after some time although nothing happens."""


class Pump:
    """Runs one program, and copies between its terminal and ours."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._input, self._output = 0, 1
        self._outer: OuterTerminal | None = None
        with suppress(termios.error):
            self._outer = OuterTerminal.of(self._input)
        self._reader = OutputReader()
        self._typed_ahead = bytearray()
        self._keys = KeyReader()
        self._code: int | None = None
        self._failed = 0
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._master, self._slave_name, self._keeper = self._start()

    def _start(self) -> tuple[int, str, socket.socket]:
        master, slave = pty.openpty()
        if self._outer is not None:
            termios.tcsetattr(slave, termios.TCSANOW, self._outer.attributes)
        fcntl.ioctl(master, termios.TIOCSWINSZ, self._size())
        name = os.ttyname(slave)
        link = keeper.start(self._command, (master, slave), self._outer)
        os.close(slave)
        os.set_blocking(master, False)
        return master, name, link

    def wake(self) -> None:
        """Let `tick` be called soon. From any thread."""
        with suppress(BlockingIOError):
            os.write(self._wake, b"\0")

    def run(self, listener: Listener) -> int:
        """Copy until the program has ended. Return its exit code. Raise CannotRun."""
        handlers = {one: signal.getsignal(one) for one in (*_PASSED_ON, signal.SIGWINCH)}
        self._handle_signals()
        try:
            self._make_raw()
            self._copy(listener)
        finally:
            if self._outer is not None:
                self._outer.restore(undo=False)
            signal.set_wakeup_fd(-1)
            for one, handler in handlers.items():
                signal.signal(one, handler)
        if self._failed:
            raise CannotRun(f"{self._command[0]}: {os.strerror(self._failed)}", self._code or 1)
        return self._code or 0

    @property
    def pastes(self) -> bool:
        """True while the program wants to know where pasted text begins and ends."""
        return self._reader.pastes

    @property
    def in_front(self) -> int:
        """The process group that reads from the terminal, 0 if none does."""
        return group_in_front(self._master)

    @property
    def is_being_written(self) -> bool:
        """True if the person in front of the terminal has begun a line, or typed ahead."""
        return self._keys.has_begun_line or bool(self._typed_ahead)

    def type_line(self, line: str, asker: Foreground) -> TypingResult:
        """Type the line and Enter if the group is in front that asked. Only from `tick`."""
        if look_at(self.in_front) != asker:
            return TypingResult(Typed.NO, "another program is in front of the terminal")
        if why := why_not_typed(asker.group):
            return TypingResult(Typed.NO, why)
        data = bytes_of(line, is_pasted=self.pastes)
        try:
            written = os.write(self._master, data)
        except OSError as exc:
            return TypingResult(Typed.NO, f"the terminal takes nothing: {exc.strerror}")
        self._typed_ahead += data[written:]
        if look_at(self.in_front) == asker:
            return TypingResult(Typed.YES)
        # It has ended in this very moment: what it has not read is taken away from the next.
        self._typed_ahead.clear()
        self._flush_input()
        return TypingResult(Typed.MAYBE, "the program ended while it was typed")

    def _flush_input(self) -> None:
        with suppress(OSError, termios.error):
            slave = os.open(self._slave_name, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                termios.tcflush(slave, termios.TCIFLUSH)
            finally:
                os.close(slave)

    def _copy(self, listener: Listener) -> None:
        poll = select.poll()
        poll.register(self._input, select.POLLIN)
        poll.register(self._keeper, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        poll.register(self._master, select.POLLIN)
        has_input = True
        while self._code is None:
            wants = select.POLLIN | (select.POLLOUT if self._typed_ahead else 0)
            poll.modify(self._master, wants)
            # Who types more than a program reads is waited for.
            has_room = len(self._typed_ahead) < _MAX_TYPED_AHEAD
            if has_input:
                poll.modify(self._input, select.POLLIN if has_room else 0)
            ready = dict(poll.poll(_CHECK_MS if listener.is_waiting else None))
            if has_room and self._input in ready and not self._copy_in():
                poll.unregister(self._input)
                has_input = False
            if self._typed_ahead:
                self._write_ahead()
            if self._master in ready:
                self._copy_out(listener)
            if self._woken in ready:
                os.read(self._woken, _CHUNK)
            if self._keeper.fileno() in ready:
                self._hear_keeper()
            listener.tick()
        last = select.poll()
        last.register(self._master, select.POLLIN)
        while last.poll(_LAST_WORDS_MS) and self._copy_out(listener):
            pass
        self._keeper.close()

    def _copy_in(self) -> bool:
        """Copy what the person types. Return False at its end."""
        try:
            data = os.read(self._input, _CHUNK)
        except OSError:
            data = b""
        if data:
            self._keys.feed(data)
            self._typed_ahead += data
        elif self._outer is None:
            self._typed_ahead += _END_OF_FILE
        else:
            self._keeper.send(keeper.SIGNAL + bytes([signal.SIGHUP]))
        return bool(data)

    def _write_ahead(self) -> None:
        with suppress(BlockingIOError, OSError):
            written = os.write(self._master, self._typed_ahead[:_CHUNK])
            del self._typed_ahead[:written]

    def _copy_out(self, listener: Listener) -> bool:
        """Copy what the program writes. Return False at its end."""
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        asker = self.in_front
        _write_all(self._output, data)
        for told in self._reader.feed(data):
            if isinstance(told, Title):
                listener.titled(told.text, look_at(asker))
            else:
                listener.noticed(told)
        if self._outer is not None:
            self._outer.note(self._reader.modes)
        return bool(data)

    def _hear_keeper(self) -> None:
        message = self._keeper.recv(keeper.MESSAGE_BYTES)
        match message[:1]:
            case keeper.EXITED:
                self._code = message[1]
            case keeper.STOPPED:
                self._stop()
            case keeper.FAILED:
                self._failed = message[1]
            case _:
                self._code = self._code if self._code is not None else 128 + signal.SIGHUP

    def _stop(self) -> None:
        """Stop as the program has, and go on with it."""
        if self._outer is not None:
            self._outer.restore(undo=False)
        os.kill(0, signal.SIGTSTP)
        # Whoever goes on with us may have changed the terminal, and its size.
        if self._outer is not None:
            self._outer.attributes[:] = termios.tcgetattr(self._input)
        self._make_raw()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, self._size())
        self._keeper.send(keeper.CONTINUE)

    def _make_raw(self) -> None:
        if self._outer is not None:
            tty.setraw(self._input, termios.TCSADRAIN)

    def _handle_signals(self) -> None:
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGWINCH, self._resized)
        for one in _PASSED_ON:
            signal.signal(one, self._pass_on)

    def _resized(self, *_: object) -> None:
        with suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, self._size())

    def _pass_on(self, number: int, _: object) -> None:
        with suppress(OSError):
            self._keeper.send(keeper.SIGNAL + bytes([number]))

    def _size(self) -> bytes:
        for handle in (self._output, self._input, 2):
            with suppress(OSError):
                size = fcntl.ioctl(handle, termios.TIOCGWINSZ, bytes(_SIZE.size))
                if any(_SIZE.unpack(size)[:2]):
                    return size
        return _SIZE.pack(*_USUAL_SIZE)


def _write_all(handle: int, data: bytes) -> None:
    """Write all of it; a terminal that is gone takes nothing."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(handle, rest) :]
        except BlockingIOError:
            select.select([], [handle], [])
        except OSError:
            return
