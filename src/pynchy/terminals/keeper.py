"""The process between us and the program: it leads the program's session on its terminal.

    pynchy watch ──socket── keeper (session leader) ── the program, in a group of its own

With it the program can be stopped: a group whose parent is outside of its session is never stopped
by Ctrl-Z. And it lives on when `watch` is killed, for as long as it takes to give the person's
terminal back as it was.

It is forked before there is any thread, and runs next to nothing of ours.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import signal
import socket
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pynchy.terminals.output import ALTERNATE_SCREEN, PASTE

CONTINUE, SIGNAL = b"C", b"K"
EXITED, STOPPED, FAILED = b"E", b"S", b"F"
MESSAGE_BYTES = 3

_NOT_FOUND, _NOT_RUNNABLE = 127, 126
# What a program may have switched on, with the byte of the shared memory that says so.
UNDONE_BY = {
    ALTERNATE_SCREEN: b"\x1b[?1049l",
    47: b"\x1b[?47l",
    1047: b"\x1b[?1047l",
    PASTE: b"\x1b[?2004l",
    1: b"\x1b[?1l",
    1000: b"\x1b[?1000l",
    1002: b"\x1b[?1002l",
    1003: b"\x1b[?1003l",
    1004: b"\x1b[?1004l",
    1006: b"\x1b[?1006l",
}
# Whoever started us may have had them ignored on purpose, as `nohup` does. (A handler of ours does
# not outlive the start of a program.) The others are as in a new terminal.
_LEFT_IGNORED = {signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}
_CURSOR_AND_COLOURS = b"\x1b[?25h\x1b[0m\r\n"


@dataclass(frozen=True, slots=True)
class OuterTerminal:
    """The person's terminal, as it was before us; `modes` is shared with who reads the output."""

    handle: int
    attributes: list[Any]
    modes: mmap.mmap

    @classmethod
    def of(cls, handle: int) -> OuterTerminal:
        """Return the terminal as it is now. Raise termios.error if it is none."""
        return cls(handle, termios.tcgetattr(handle), mmap.mmap(-1, mmap.PAGESIZE))

    def note(self, modes: set[int]) -> None:
        """Let the keeper know what the program has switched on."""
        self.modes[: len(UNDONE_BY)] = bytes(mode in modes for mode in UNDONE_BY)

    def restore(self, *, undo: bool) -> None:
        """Give the terminal back as it was; with what the program has switched on undone."""
        on = zip(UNDONE_BY.values(), self.modes[: len(UNDONE_BY)], strict=True)
        undone = [sequence for sequence, is_on in on if is_on]
        with suppress(OSError):
            if undo:
                os.write(self.handle, b"".join([*undone, _CURSOR_AND_COLOURS]))
        with suppress(termios.error):
            termios.tcsetattr(self.handle, termios.TCSADRAIN, self.attributes)


def start(
    command: Sequence[str], terminal: tuple[int, int], outer: OuterTerminal | None
) -> socket.socket:
    """Run the command on the terminal, a master and a slave. Return the link to its keeper."""
    master, slave = terminal
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() == 0:
        try:
            ours.close()
            os.close(master)
            _Keeper(theirs, slave, outer).run(command)
        finally:
            os._exit(0)
    theirs.close()
    return ours


class _Keeper:
    def __init__(self, link: socket.socket, slave: int, outer: OuterTerminal | None) -> None:
        self._link, self._slave, self._outer = link, slave, outer
        self._program = 0

    def run(self, command: Sequence[str]) -> None:
        os.setsid()
        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._program = os.fork()
        if self._program == 0:
            self._become(command)
        with suppress(OSError):  # it may have done so itself, and be running
            os.setpgid(self._program, self._program)
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
            signal.signal(one, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._follow(woken)

    def _become(self, command: Sequence[str]) -> None:
        """Turn into the program."""
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(self._slave, os.getpgrp())
            for one in signal.valid_signals() - _LEFT_IGNORED:
                with suppress(OSError, ValueError):
                    signal.signal(one, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            for handle in range(3):
                os.dup2(self._slave, handle)
            os.execvp(command[0], list(command))  # noqa: S606 - it is what the person wants to run
        except OSError as exc:
            is_missing = isinstance(exc, FileNotFoundError | NotADirectoryError)
            self._say(FAILED, exc.errno or 0)
            os._exit(_NOT_FOUND if is_missing else _NOT_RUNNABLE)
        finally:
            os._exit(_NOT_RUNNABLE)

    def _follow(self, woken: int) -> None:
        """Tell what becomes of the program until it has ended, or `watch` has."""
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        poll.register(self._link, select.POLLIN)
        while True:
            if self._tell_of_program():
                return
            ready = dict(poll.poll())
            with suppress(BlockingIOError):
                os.read(woken, 512)
            if self._link.fileno() in ready and not self._obey():
                self._clean_up()
                return

    def _tell_of_program(self) -> bool:
        """Say what has happened to the program. Return True if it has ended."""
        pid, status = os.waitpid(self._program, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return False
        if os.WIFSTOPPED(status):
            self._say(STOPPED, os.WSTOPSIG(status))
            return False
        is_killed = os.WIFSIGNALED(status)
        code = 128 + os.WTERMSIG(status) if is_killed else os.WEXITSTATUS(status)
        self._say(EXITED, code)
        return True

    def _obey(self) -> bool:
        """Do what `watch` says. Return False if it is gone."""
        message = self._link.recv(MESSAGE_BYTES)
        if not message:
            return False
        number = signal.SIGCONT if message[:1] == CONTINUE else message[1]
        with suppress(OSError):
            os.killpg(self._program, number)
        return True

    def _clean_up(self) -> None:
        """`watch` was killed: give the terminal back, and let the program know."""
        if self._outer is not None:
            self._outer.restore(undo=True)
        for one in (signal.SIGHUP, signal.SIGCONT):
            with suppress(OSError):
                os.killpg(self._program, one)

    def _say(self, word: bytes, number: int) -> None:
        with suppress(OSError):
            self._link.send(word + bytes([number & 0xFF]))
