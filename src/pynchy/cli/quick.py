"""One GET to the host with a bare socket: http.client alone would be a third of the start-up.

For `pynchy status`, which a status bar runs every few seconds. Everything else uses `client`.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from pynchy.datafolder import HostAddress
from pynchy.errors import HostError

_MOST_BYTES = 1024 * 1024


def get_object(address: HostAddress, path: str, seconds: float) -> dict[str, Any]:
    """Return the JSON object that the host answers with. Raise HostError if it does not."""
    name, _, port = address.url.removeprefix("http://").rstrip("/").rpartition(":")
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n"
        f"Authorization: Bearer {address.token}\r\n\r\n"
    )
    try:
        # Not create_connection: it has the name looked at by a codec that is slow to import.
        with socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET) as host:
            host.settimeout(seconds)
            host.connect((name.strip("[]"), int(port)))
            host.sendall(request.encode())
            return _parse(_read_all(host))
    except (OSError, ValueError) as exc:
        raise HostError(f"the pynchy host does not answer ({exc}); see its log") from exc


def _read_all(host: socket.socket) -> bytes:
    reply = b""
    while len(reply) < _MOST_BYTES and (some := host.recv(65_536)):
        reply += some
    return reply


def _parse(reply: bytes) -> dict[str, Any]:
    head, _, body = reply.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")[1:2]
    value = json.loads(body) if body else None
    if status != [b"200"] or not isinstance(value, dict):
        raise ValueError("it said something else: is it of another version?")
    return value
