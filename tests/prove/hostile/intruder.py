"""Connections without a client library, so that anything at all can be sent."""

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.support import Host

SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One response as it came over the line."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        """The text of a refusal, which is always JSON."""
        assert self.headers["content-type"] == "application/json", self
        return str(json.loads(self.body)["error"])


def connect(host: Host, *, receive_buffer: int | None = None) -> socket.socket:
    address = urlsplit(host.url)
    sock = socket.socket()
    sock.settimeout(SECONDS)
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.connect((address.hostname, address.port))
    return sock


def head(line: str, *headers: str, token: str | None = None, name: str = "127.0.0.1") -> bytes:
    """Return a request's head, ready to be followed by a body."""
    named = [f"Host: {name}", *headers]
    if token is not None:
        named.append(f"Authorization: Bearer {token}")
    return "\r\n".join([f"{line} HTTP/1.1", *named, "", ""]).encode("utf-8", "surrogateescape")


def say(host: Host, data: bytes, *, then_hang_up: bool = False) -> bytes:
    """Send the bytes on a connection of their own, and return all that comes back."""
    with connect(host) as sock:
        try:
            sock.sendall(data)
            if then_hang_up:
                sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has answered, or hung up, before we were done
        return listen(sock)


def listen(sock: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    heard = b""
    try:
        while chunk := sock.recv(65_536):
            heard += chunk
    except ConnectionResetError:
        pass
    return heard


def ask(host: Host, line: str, *headers: str, body: bytes = b"", **options: Any) -> Heard:
    """Make one request and return its response."""
    sized = [*headers, f"Content-Length: {len(body)}"] if body else list(headers)
    [heard] = parse(say(host, head(line, *sized, "Connection: close", **options) + body))
    return heard


def parse(data: bytes) -> list[Heard]:
    """Return the responses in the bytes; all of ours have a length."""
    found: list[Heard] = []
    while data:
        first, _, rest = data.partition(b"\r\n\r\n")
        status, *lines = first.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", len(rest)))
        found.append(Heard(int(status.split()[1]), headers, rest[:length]))
        data = rest[length:]
    return found
