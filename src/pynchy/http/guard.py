"""What every HTTP request must pass: a known Host, the token, and a body of bounded size.

The Host header is checked first (a page that rebinds its name to 127.0.0.1 gets nothing), the token
is compared in constant time, and a body is cut off at its cap before it is read whole.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 256 * 1024
BODY_SECONDS = 10.0
_LONGEST_NUMBER = 18
_OPEN_PATHS = frozenset({"/healthz"})


class Guard:
    """Wraps the application; plain ASGI, since event streams must not be buffered."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a reason."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _Capped(receive), send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if _host_name(headers.get("host", "")) not in self._hosts:
            return _error(421, "this host name is not allowed; see http.allowed_hosts")
        if scope["path"] not in _OPEN_PATHS and not self._has_token(headers):
            return _error(401, "a token is needed: Authorization: Bearer …, from the data folder")
        length = headers.get("content-length", "0")
        if not _is_number(length) or int(length) > MAX_BODY_BYTES:
            return _error(413, f"a body may have at most {MAX_BODY_BYTES} bytes")
        return None

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(given.encode(), self._token)


class BodyTooLarge(Exception):
    """More came than a body may have."""


class _Capped:
    """Receives a body up to its cap and, all of it, within its time."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        self._left = MAX_BODY_BYTES
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        async with asyncio.timeout_at(self._deadline):
            message = await self._receive()
        self._left -= len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._left < 0:
            raise BodyTooLarge
        return message


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def _host_name(header: str) -> str:
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _error(status: int, text: str) -> JSONResponse:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004 - HTTP
    return JSONResponse({"error": text}, status, headers)
