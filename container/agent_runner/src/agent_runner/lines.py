"""Carry connections out of a box over lines: pairs of sockets that were there before the box was.

No descriptor is sent, since the kernel counts those on their way for all boxes of a user together.
A line carries one connection at a time, as messages with their kind in the first byte:

    open · data … · end · done, and stop where nobody takes any more data

Each side says `end` when it has no more data, and `done` when it has said and heard that: nothing
follows, and the line is free for the next connection.
"""

import contextlib
import queue
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence

# More than a client has open at once; one that opens connections without end waits.
COUNT = 128
_CHUNK = 64 * 1024
_NO_THREAD_SECONDS = 0.1
# Else one who waits for room to send could wait for a minute.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class _Say:
    """The kinds of message."""

    OPEN, DATA, END, STOP, DONE = b"o", b"d", b"e", b"s", b"f"


def make_lines() -> list[tuple[socket.socket, socket.socket]]:
    """Return pairs of sockets: one end for outside, the other for the box."""
    return [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(COUNT)]


def send_over(listener: socket.socket, lines: Sequence[socket.socket]) -> None:
    """In the box: take connections in a thread of its own, and carry each over a free line."""
    free: queue.LifoQueue[socket.socket] = queue.LifoQueue()
    for line in lines:
        free.put(line)

    def serve(near: socket.socket, line: socket.socket) -> None:
        with near:
            if _Connection(line, near).carry(first=_Say.OPEN):
                free.put(line)

    def accept() -> None:
        while True:
            line = free.get()
            try:
                near, _ = listener.accept()
            except OSError:
                return
            if not _is_started(threading.Thread(target=serve, args=(near, line), daemon=True)):
                # The next one may fit.
                near.close()
                free.put(line)

    threading.Thread(target=accept, daemon=True).start()


def receive_from(
    lines: Sequence[socket.socket], connect: Callable[[], socket.socket]
) -> threading.Thread:
    """Outside: connect each line that the box opens.

    The thread that does so, which is returned, ends when the box has let go of all lines.
    """
    thread = threading.Thread(target=_wait_for_lines, args=(lines, connect), daemon=True)
    thread.start()
    return thread


def _wait_for_lines(lines: Sequence[socket.socket], connect: Callable[[], socket.socket]) -> None:
    by_fd = {line.fileno(): line for line in lines}
    waiting, wake = socket.socketpair()
    served: queue.SimpleQueue[tuple[int, bool]] = queue.SimpleQueue()

    def serve(fd: int) -> None:
        served.put((fd, _answer(by_fd[fd], connect)))
        wake.send(b".")

    with waiting, wake:
        poll = select.poll()
        for fd in (waiting.fileno(), *by_fd):
            poll.register(fd, select.POLLIN)
        while by_fd:
            for fd, _ in poll.poll():
                if fd == waiting.fileno():
                    waiting.recv(1)
                    done, is_free = served.get()
                    if is_free:
                        poll.register(done, select.POLLIN)
                    else:
                        del by_fd[done]
                elif _is_started(threading.Thread(target=serve, args=(fd,), daemon=True)):
                    poll.unregister(fd)
                else:
                    time.sleep(_NO_THREAD_SECONDS)


def _is_started(thread: threading.Thread) -> bool:
    """Start the thread. Return False if there are as many as there may be."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _answer(line: socket.socket, connect: Callable[[], socket.socket]) -> bool:
    """Carry what the box sends over the line. Return True if it is free again."""
    try:
        said = line.recv(_CHUNK + 1)
    except OSError:
        return False
    if said != _Say.OPEN:
        # An agent can say anything; only a box that has ended says nothing.
        return bool(said)
    try:
        far = connect()
    except OSError:
        far, gone = socket.socketpair()
        gone.close()
    with far:
        return _Connection(line, far).carry()


class _Connection:
    """One connection, as long as it lasts, and the line that carries it."""

    def __init__(self, line: socket.socket, end: socket.socket) -> None:
        self._line = line
        self._end = end
        self._open_sides = 2
        self._is_stopped = False
        self._lock = threading.Lock()

    def carry(self, first: bytes = b"") -> bool:
        """Carry it to its end. Return True if the line is free again."""
        outgoing = threading.Thread(target=self._send_all, args=(first,), daemon=True)
        if not (is_started := _is_started(outgoing)):
            if first:
                return True  # nobody has heard of it yet
            self._close()
            self._send_all(first)
        is_free = self._receive_all()
        if not is_free:
            self._close()
        if is_started:
            outgoing.join()
        return is_free

    def _send_all(self, first: bytes) -> None:
        with contextlib.suppress(OSError):
            if first:
                self._line.send(first)
            with contextlib.suppress(OSError):
                while (data := self._end.recv(_CHUNK)) and not self._is_stopped:
                    self._line.send(_Say.DATA + data)
            self._line.send(_Say.END)
        self._close_side()

    def _receive_all(self) -> bool:
        is_taken, is_ended = True, False
        while True:
            try:
                said = self._line.recv(_CHUNK + 1)
            except OSError:
                return False
            match said[:1]:
                case _Say.DATA if is_taken:
                    is_taken = self._take(said[1:])
                case _Say.DATA:
                    pass
                case _Say.STOP:
                    self._stop()
                case _Say.END if not is_ended:
                    is_ended = True
                    with contextlib.suppress(OSError):
                        self._end.shutdown(socket.SHUT_WR)
                    self._close_side()
                case _Say.DONE:
                    return is_ended
                case _:
                    return False

    def _take(self, data: bytes) -> bool:
        try:
            self._end.sendall(data)
        except OSError:
            with contextlib.suppress(OSError):
                self._line.send(_Say.STOP)
            return False
        return True

    def _stop(self) -> None:
        """Read no more, and let whoever sends know it: it is as if its peer had gone."""
        self._is_stopped = True
        with contextlib.suppress(OSError):
            self._end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._end.shutdown(socket.SHUT_RD)

    def _close_side(self) -> None:
        with self._lock:
            self._open_sides -= 1
            is_done = not self._open_sides
        if is_done:
            with contextlib.suppress(OSError):
                self._line.send(_Say.DONE)

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
