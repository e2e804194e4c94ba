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
import time
import tty
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from pynchy.errors import PynchyError
from pynchy.terminals import keeper
from pynchy.terminals.asks import bytes_of
from pynchy.terminals.foreground import Foreground, group_in_front, look_at
from pynchy.terminals.input_queue import READ_SECONDS, count_unread, drop_unread
from pynchy.terminals.keeper import OuterTerminal
from pynchy.terminals.keys import KeyReader
from pynchy.terminals.output import OutputReader, TerminalNotice, Title
from pynchy.typed_line import Typed, TypingResult

_CHUNK = 65_536
# A terminal that says that it takes something takes at least about so much.
_PIECE = 2_048
_MAX_TYPED_AHEAD = 1024 * 1024
_LAST_WORDS_MS = 200
_LAST_WORDS_SECONDS = 2.0
_LOOK_MS = 2
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


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A line that was typed, and not read yet as far as we know."""

    asker: Foreground
    size: int
    ends: float
    reply: Callable[[TypingResult], None]


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
        self._unwritten = bytearray()
        self._keys = KeyReader()
        self._code: int | None = None
        self._failed = 0
        self._in_flight: _InFlight | None = None
        self._has_input = True
        self._is_mid_line = False
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._master, self._slave_name, self._keeper = self._start()

    def _start(self) -> tuple[int, str, socket.socket]:
        master, slave = pty.openpty()
        if self._outer is not None:
            termios.tcsetattr(slave, termios.TCSANOW, self._outer.attributes)
        else:
            # What comes from a file or a pipe is not shown a second time.
            attributes = termios.tcgetattr(slave)
            attributes[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, attributes)
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
        handlers = {
            one: signal.getsignal(one) for one in (*_PASSED_ON, signal.SIGWINCH, signal.SIGCONT)
        }
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

    @property
    def has_output(self) -> bool:
        """True if the program has written what we have not looked at: it may ask another thing."""
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        return any(event & select.POLLIN for _, event in poll.poll(0)) or bool(self._unwritten)

    def may_type(self, asker: Foreground) -> bool:
        """True if nothing stands between a line and the group that asked. From any thread."""
        is_free = (
            not self.is_being_written and not self.has_output and not count_unread(self._slave_name)
        )
        return is_free and look_at(self.in_front) == asker

    def type_line(
        self, line: str, asker: Foreground, reply: Callable[[TypingResult], None]
    ) -> None:
        """Type the line and Enter for the group that asked; `reply` hears what became of it.

        Only from `tick`. What it does not read soon is taken back: the next shell would.
        """
        data = bytes_of(line, is_pasted=self.pastes)
        if not self.may_type(asker):
            reply(TypingResult(Typed.NO, "another program is in front, or somebody types there"))
            return
        try:
            written = os.write(self._master, data)
        except OSError as exc:
            reply(TypingResult(Typed.NO, f"the terminal takes nothing: {exc.strerror}"))
            return
        ends = time.monotonic() + (READ_SECONDS if written == len(data) else 0)
        self._in_flight = _InFlight(asker, len(data), ends, reply)

    def _follow_typing(self) -> None:
        """See whether what was typed has been read by who asked."""
        line = self._in_flight
        if line is None:
            return
        left, is_there = count_unread(self._slave_name), look_at(self.in_front) == line.asker
        is_late = time.monotonic() >= line.ends
        if left and is_there and not is_late:
            return
        self._in_flight = None
        if not left and is_there:
            line.reply(TypingResult(Typed.YES))
            return
        drop_unread(self._slave_name)
        is_unread = left >= line.size
        why = "the program did not read it" if is_there else "the program ended over it"
        line.reply(TypingResult(Typed.NO if is_unread else Typed.MAYBE, why))

    def _copy(self, listener: Listener) -> None:
        while self._code is None:
            ready = self._ready(listener)
            if self._input in ready:
                self._has_input = self._copy_in()
            if self._typed_ahead and self._in_flight is None:
                self._write_ahead()
            if self._unwritten:
                self._write_out()
            if ready.get(self._master, 0) & (select.POLLIN | select.POLLHUP):
                self._copy_out(listener)
            if self._woken in ready:
                os.read(self._woken, _CHUNK)
            if self._keeper.fileno() in ready:
                self._hear_keeper()
            self._follow_typing()
            listener.tick()
        self._copy_last_words(listener)
        if self._in_flight is not None:
            self._in_flight.reply(TypingResult(Typed.MAYBE, "the program ended over it"))
        self._keeper.close()

    def _ready(self, listener: Listener) -> dict[int, int]:
        """Wait until something can be done, and return where.

        Who is slow is waited for, and what is not wanted is not asked for: of what nobody reads,
        and of what has ended, a poll would tell without end.
        """
        poll = select.poll()
        poll.register(self._keeper, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        waits = self._typed_ahead and self._in_flight is None
        wants = 0 if len(self._unwritten) > _CHUNK else select.POLLIN
        poll.register(self._master, wants | (select.POLLOUT if waits else 0))
        if self._has_input and len(self._typed_ahead) < _MAX_TYPED_AHEAD:
            poll.register(self._input, select.POLLIN)
        if self._unwritten:
            poll.register(self._output, select.POLLOUT)
        return dict(poll.poll(self._pause(listener)))

    def _pause(self, listener: Listener) -> int | None:
        """Return for how many milliseconds nothing has to happen."""
        if self._in_flight is not None:
            return _LOOK_MS
        return _CHECK_MS if listener.is_waiting else None

    def _copy_last_words(self, listener: Listener) -> None:
        """Copy all that the program wrote; who writes on behind it is not waited for."""
        ends = time.monotonic() + _LAST_WORDS_SECONDS
        last = select.poll()
        last.register(self._master, select.POLLIN)
        while time.monotonic() < ends and last.poll(_LAST_WORDS_MS) and self._copy_out(listener):
            pass
        self._write_out(None)

    def _copy_in(self) -> bool:
        """Copy what the person types. Return False at its end."""
        try:
            data = os.read(self._input, _CHUNK)
        except OSError:
            data = b""
        if data:
            self._keys.feed(data)
            self._typed_ahead += data
            self._is_mid_line = not data.endswith((b"\n", b"\r"))
        elif self._outer is None:
            # In the middle of a line, the first sends only that.
            self._typed_ahead += _END_OF_FILE * (2 if self._is_mid_line else 1)
        else:
            self._pass_on(signal.SIGHUP)
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
        self._unwritten += data
        self._write_out()
        for told in self._reader.feed(data):
            if isinstance(told, Title):
                listener.titled(told.text, look_at(asker))
            else:
                listener.noticed(told)
        if self._outer is not None:
            self._outer.note(self._reader.modes)
        return bool(data)

    def _write_out(self, milliseconds: int | None = 0) -> None:
        """Write what the terminal takes now: keys do not wait for one that is slow. None: all."""
        poll = select.poll()
        poll.register(self._output, select.POLLOUT)
        while self._unwritten and poll.poll(milliseconds):
            try:
                written = os.write(self._output, self._unwritten[:_PIECE])
            except BlockingIOError:
                return
            except OSError:
                # Whoever read us is gone: so is the program's terminal.
                self._unwritten.clear()
                self._pass_on(signal.SIGHUP)
                return
            del self._unwritten[:written]

    def _hear_keeper(self) -> None:
        try:
            message = self._keeper.recv(keeper.MESSAGE_BYTES)
        except OSError:
            return  # it has ended with words of ours unread; its own come next
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
        with suppress(termios.error):
            if self._outer is not None:
                self._outer.attributes[:] = termios.tcgetattr(self._input)
        self._make_raw()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, self._size())
        with suppress(OSError):
            self._keeper.send(keeper.CONTINUE)

    def _make_raw(self) -> None:
        with suppress(termios.error):
            if self._outer is not None:
                tty.setraw(self._input, termios.TCSADRAIN)

    def _handle_signals(self) -> None:
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGWINCH, self._resized)
        signal.signal(signal.SIGCONT, lambda *_: self._make_raw())
        for one in _PASSED_ON:
            signal.signal(one, self._pass_on)

    def _resized(self, *_: object) -> None:
        with suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, self._size())

    def _pass_on(self, number: int, _: object = None) -> None:
        with suppress(OSError):
            self._keeper.send(keeper.SIGNAL + bytes([number]))

    def _size(self) -> bytes:
        for handle in (self._output, self._input, 2):
            with suppress(OSError):
                size = fcntl.ioctl(handle, termios.TIOCGWINSZ, bytes(_SIZE.size))
                if any(_SIZE.unpack(size)[:2]):
                    return size
        return _SIZE.pack(*_USUAL_SIZE)
