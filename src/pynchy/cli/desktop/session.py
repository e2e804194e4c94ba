"""A browser's sign-in, without a browser: by a link, with a cookie and a key that signs.

What our pages do holds here too: the key is never sent, and a reply without the host's proof is
taken for no reply at all.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from pynchy.errors import HostError, PynchyError
from pynchy.inbox.sign_in import NONCE, PROOF, SIGNATURE
from pynchy.own_program import own_call

_TIMEOUT_SECONDS = 20.0
# The host pings every ten seconds: a connection that says nothing for longer is none any more.
_SILENCE_SECONDS = 30.0
_MAX_BODY = 8 * 2**20
_ENTRY = re.compile(r'<script type="application/json" id="entry">(.+?)</script>')


class SignedOut(PynchyError):
    """The host does not know this session: signed out, or never signed in."""


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """What a sign-in gave: where the host is, the cookie, and what signs."""

    url: str
    cookie: str
    page_key: str


def sign_in(link: str, by: str) -> SessionKeys:
    """Spend a link of `pynchy inbox --open`. Raise SignedOut if it is none, or HostError."""
    parts = urlsplit(link)
    key = parse_qs(parts.query).get("key", [""])[0]
    if parts.scheme not in {"http", "https"} or not parts.netloc or not key:
        raise SignedOut(f"this is no link to sign in with: get one with {own_call()} inbox --open")
    url = f"{parts.scheme}://{parts.netloc}"
    body = urlencode({"key": key, "by": by, "next": "/"}).encode()
    headers = {"Origin": url, "Content-Type": "application/x-www-form-urlencoded"}
    with _sent(_connect(url, _TIMEOUT_SECONDS), "POST", "/sign-in", body, headers) as reply:
        try:
            page = reply.read(_MAX_BODY).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as exc:
            raise HostError(f"the host at {url} does not answer") from exc
        entry = _ENTRY.search(page)
        cookie = (reply.getheader("set-cookie") or "").partition(";")[0]
    if entry is None or not cookie:
        raise SignedOut(
            "this link does not work: it was used already, or its time is up;"
            f" get a new one with {own_call()} inbox --open"
        )
    return SessionKeys(url, cookie, str(json.loads(entry[1])["key"]))


class HostSession:
    """Signed requests to one host. Every one may raise HostError, and SignedOut."""

    def __init__(self, keys: SessionKeys) -> None:
        self.url = keys.url
        self._cookie = keys.cookie
        self._key = hashlib.sha256(keys.page_key.encode()).hexdigest()
        self._nonce = "-"
        self._socket: socket.socket | None = None
        self._stops = 0

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status of the reply, and what it says."""
        data = b"" if body is None else json.dumps(body).encode()
        with self._request(method, path, data, _TIMEOUT_SECONDS) as reply:
            try:
                return reply.status, json.loads(reply.read(_MAX_BODY) or b"null")
            except (OSError, ValueError, http.client.HTTPException) as exc:
                raise HostError(f"the host at {self.url} does not answer") from exc

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield what the inbox is told, until the connection ends or `stop` is called."""
        stops = self._stops
        with self._request("GET", "/inbox/stream", b"", _SILENCE_SECONDS) as reply:
            kind, self._socket = "", reply.socket
            if self._stops != stops:
                return  # while it was being opened
            with suppress(OSError, ValueError, http.client.HTTPException):
                while line := reply.readline():
                    name, _, value = line.decode().strip().partition(": ")
                    if name == "event":
                        kind = value
                    elif name == "data":
                        yield kind, json.loads(value)

    def stop(self) -> None:
        """End the stream for the thread that reads or opens it; any thread may call this."""
        self._stops += 1
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _request(self, method: str, path: str, body: bytes, seconds: float) -> _Reply:
        for _ in range(2):
            connection, challenge = _connect(self.url, seconds), secrets.token_urlsafe(16)
            # Another thread may learn the host's new one before our reply is here.
            signed_with = self._nonce
            headers = self._signed(method, path, body, signed_with, challenge)
            reply = _sent(connection, method, path, body, headers)
            if reply.status != http.client.UNAUTHORIZED:
                self._check(reply, challenge)
                return reply
            nonce = reply.getheader(NONCE)
            reply.close()
            if not nonce or nonce == signed_with:
                break
            self._nonce = nonce
        raise SignedOut(f"the host at {self.url} has signed this session out")

    def _signed(
        self, method: str, path: str, body: bytes, nonce: str, challenge: str
    ) -> dict[str, str]:
        said = hashlib.sha256(body).hexdigest()
        mac = self._mac("request", nonce, challenge, method, path, said)
        return {
            "Cookie": self._cookie,
            "Origin": self.url,
            "Content-Type": "application/json",
            SIGNATURE: f"{nonce} {challenge} {said} {mac}",
        }

    def _check(self, reply: _Reply, challenge: str) -> None:
        proof = reply.getheader(PROOF) or ""
        if not hmac.compare_digest(proof.encode(), self._mac("reply", challenge).encode()):
            reply.close()
            raise HostError(f"what answers at {self.url} is not the host that was signed in to")

    def _mac(self, *parts: str) -> str:
        return hmac.new(self._key.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()


class _Reply:
    """A reply with its connection, which ends with it."""

    def __init__(
        self, connection: http.client.HTTPConnection, reply: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._reply = reply
        # The connection forgets its socket when the reply is to end with it.
        self.socket: socket.socket | None = connection.sock
        self.status, self.read, self.readline = reply.status, reply.read, reply.readline
        self.getheader = reply.getheader

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._reply.close()
        self._connection.close()


def _connect(url: str, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=seconds)


def _sent(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes,
    headers: dict[str, str],
) -> _Reply:
    try:
        connection.request(method, path, body or None, headers)
        sock = connection.sock
        reply = _Reply(connection, connection.getresponse())
    except (OSError, http.client.HTTPException) as exc:
        connection.close()
        raise HostError(f"no host answers at {connection.host}:{connection.port}") from exc
    reply.socket = sock
    return reply
