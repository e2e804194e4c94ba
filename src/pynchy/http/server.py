"""Run the HTTP interface on a socket of its own, and stop it in order."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

log = logging.getLogger(__name__)

_BACKLOG = 2_048
_MOST_CONNECTIONS = 1_200


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: the host decides when to stop."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=3,
                h11_max_incomplete_event_size=32 * 1024,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket: at the port, or at a free one if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for choice in (port, 0):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, choice))
        except OSError:
            sock.close()
            if choice == 0:
                raise
            log.warning("the port is taken; using a free one", extra={"port": port})
            continue
        sock.listen(_BACKLOG)
        return sock
    raise AssertionError("unreachable: port 0 binds or raises")


def url_of(sock: socket.socket) -> str:
    """Return the address under which the socket is reached from this machine."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
