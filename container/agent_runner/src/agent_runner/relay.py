"""Carry connections from one socket to one other address, and to no third.

A connection that cannot be made is closed, as a proxy that is down would close it.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

_CHUNK = 64 * 1024
# More than a client has open at once; one that opens connections without end waits.
_MAX_CONNECTIONS = 256


def relay(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    """Take connections in a thread of its own, until the listener is closed."""
    free = threading.BoundedSemaphore(_MAX_CONNECTIONS)

    def serve(near: socket.socket) -> None:
        try:
            _carry(near, connect)
        finally:
            free.release()

    def accept() -> None:
        while True:
            free.acquire()
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                threading.Thread(target=serve, args=(near,), daemon=True).start()
            except RuntimeError:  # the box has as many threads as it may: the next one may fit
                near.close()
                free.release()

    threading.Thread(target=accept, daemon=True).start()


def _carry(near: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with near:
        try:
            far = connect()
        except OSError:
            return
        with far:
            back = threading.Thread(target=_pump, args=(far, near), daemon=True)
            back.start()
            _pump(near, far)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Copy until the source has no more, and tell the sink so."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        # Who no longer listens need not be read from; an ended source says so by itself.
        source.shutdown(socket.SHUT_RD)
