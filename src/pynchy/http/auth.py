"""What every HTTP request must pass: a known Host, a sign that it may, a body of bounded size.

The Host header is checked first (a page that rebinds its name to 127.0.0.1 gets nothing), the token
is compared in constant time, and a body is cut off at its cap before it is read whole. A browser
that is signed in may answer, but only on behalf of our own pages: its cookie reaches every port of
this machine, so a request must also have the page key, which stays with our origin.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pynchy.inbox.sign_in import Browser, holds_key

MAX_BODY_BYTES = 256 * 1024
BODY_SECONDS = 10.0
# In the scope of a request: the browser that is signed in, and one that only has the cookie.
BROWSER = "pynchy.browser"
VISITOR = "pynchy.visitor"
PAGE_KEY = "pynchy-page-key"
# In the scope of a request from somebody who may see everything.
KNOWN = "pynchy.known"
_MAX_NUMBER_LENGTH = 18
_SAFE_METHODS = frozenset({"GET", "HEAD"})
# What a page may load before anybody is signed in; nothing of it tells of a question.
_OPEN_PATHS = frozenset({"/healthz", "/sign-in", "/manifest.webmanifest", "/sw.js"})
_OPEN_FOLDER = "/static/"
# What only scripts ask for: they are told by a status, not by a page.
_SCRIPTS_FOLDERS = ("/api/", "/inbox/")
_NOT_SIGNED_IN = (
    "a token is needed: Authorization: Bearer …, from the data folder; "
    "from a browser, its cookie and its page key"
)
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not no-referrer: our own forms would then be sent with Origin: null.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What lets a request in: the token, or the cookie and page key of a signed-in browser."""

    token: str
    cookie: str
    browser: Callable[[str], Browser | None]


class AuthMiddleware:
    """Wraps the application; plain ASGI, since event streams must not be buffered.

    `doorman` answers a browser that would like to see a page and has not shown all it needs.
    """

    def __init__(
        self, app: ASGIApp, doorman: ASGIApp, passes: Credentials, hosts: Iterable[str]
    ) -> None:
        self._app = app
        self._doorman = doorman
        self._passes = passes
        self._token = passes.token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a reason."""
        if scope["type"] != "http":
            return
        answer = self._refusal(scope) or self._app
        await answer(scope, _Capped(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if host_name(headers.get("host", "")) not in self._hosts:
            return _error(421, "this host name is not allowed; see http.allowed_hosts")
        if refusal := self._not_let_in(scope, headers):
            return refusal
        length = headers.get("content-length", "0")
        if not _is_number(length) or int(length) > MAX_BODY_BYTES:
            return _error(413, f"a body may have at most {MAX_BODY_BYTES} bytes")
        return None

    def _not_let_in(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        scope[KNOWN] = self._has_token(headers)
        if scope[KNOWN]:
            return None
        path, visitor = scope["path"], self._browser(headers)
        known = visitor is not None and holds_key(visitor, headers.get(PAGE_KEY, ""))
        scope[VISITOR], scope[BROWSER], scope[KNOWN] = visitor, visitor if known else None, known
        is_open = path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)
        if (visitor is not None or is_open) and not _is_ours(scope, headers):
            return _error(403, "this came from another site")
        if known or is_open:
            return None
        return self._doorman if _wants_page(scope, headers) else _error(401, _NOT_SIGNED_IN)

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(given.encode(), self._token)

    def _browser(self, headers: Headers) -> Browser | None:
        token = cookie_parser(headers.get("cookie", "")).get(self._passes.cookie)
        return self._passes.browser(token) if token else None


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


def host_name(header: str) -> str:
    """Return the name in a Host header, without the port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _is_ours(scope: Scope, headers: Headers) -> bool:
    """True if one of our own pages sent the request, or somebody follows a link to a page.

    Browsers say where a request comes from in Sec-Fetch-Site, except over plain http from another
    machine; there, whatever can change something has an Origin.
    """
    site = headers.get("sec-fetch-site")
    follows_link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in _SAFE_METHODS
    if site is not None:
        return site in {"same-origin", "none"} or follows_link
    origin = headers.get("origin")
    if origin is None:
        return scope["method"] in _SAFE_METHODS
    return urlsplit(origin).netloc.lower() == headers.get("host", "").strip().lower()


def _wants_page(scope: Scope, headers: Headers) -> bool:
    """True if a person looks, to whom it can be said how to get in."""
    looks = scope["method"] in _SAFE_METHODS and "text/html" in headers.get("accept", "")
    return looks and not scope["path"].startswith(_SCRIPTS_FOLDERS)


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER_LENGTH


def _error(status: int, text: str) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004 - HTTP
    return JSONResponse({"error": text}, status, headers)
