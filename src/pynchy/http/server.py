"""Where the HTTP interface listens, and the names under which it is reached."""

from __future__ import annotations

import errno
import logging
import socket
from urllib.parse import urlsplit

from pynchy.config import HttpSettings
from pynchy.errors import HostError
from pynchy.http.auth import host_name
from pynchy.http_connections import bind

log = logging.getLogger(__name__)


def listen(http: HttpSettings) -> socket.socket:
    """Return a listening socket at the port; at a free one if nobody chose it and it is taken.

    Raise HostError if the address is not one of this machine, or a port that was chosen is taken.
    """
    try:
        return bind(http.host, http.port)
    except OSError as exc:
        if http.port == 0 or exc.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise HostError(f"http.host: {http.host} cannot be used ({exc.strerror})") from exc
        if "port" in http.model_fields_set:
            why = "is taken" if exc.errno == errno.EADDRINUSE else "is not for this user"
            raise HostError(
                f"port {http.port} of {http.host} {why}: stop what listens there, or choose "
                "another with --port or http.port in the settings (0: any free one)"
            ) from exc
    log.warning("http.port_taken", extra={"port": http.port})
    try:
        return bind(http.host, 0)
    except OSError as exc:
        raise HostError(f"http.host: {http.host} cannot be used ({exc.strerror})") from exc


def url_of(sock: socket.socket) -> str:
    """Return the address under which the socket is reached from this machine."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def names_of(sock: socket.socket, http: HttpSettings) -> list[str]:
    """Return the names under which a request may ask for us: anything else is refused."""
    bound = str(sock.getsockname()[0])
    bound = f"[{bound}]" if ":" in bound else bound
    public = host_name(urlsplit(http.public_url).netloc)
    return ["127.0.0.1", "localhost", "[::1]", bound, public or bound, *http.allowed_hosts]
