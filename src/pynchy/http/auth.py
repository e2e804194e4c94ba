"""What every HTTP request must pass: a known Host, a sign that it may, a body of bounded size.

The Host header is checked first (a page that rebinds its name to 127.0.0.1 gets nothing), the token
is compared in constant time, and a body is cut off at its cap before it is read whole. A browser
that is signed in may answer, but only on behalf of our own pages: its cookie reaches every port of
this machine, so a request must also be signed with the page key, which stays with our origin.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pynchy.http.context import BROWSER, HttpContext, host_name
from pynchy.http.hook_keys import HOOK_GROUP, HOOK_PATH
from pynchy.http_connections import KNOWN
from pynchy.inbox.render import ASSETS, BUILD, Renderer, media_type
from pynchy.inbox.sign_in import NONCE, PROOF, SIGNATURE, Browser, holds_key, read_signature
from pynchy.model import GroupName

MAX_BODY_BYTES = 256 * 1024
BODY_SECONDS = 10.0
# In the scope of a request: the browser that is signed in, and one that only has the cookie.
VISITOR = "pynchy.visitor"
PAGE_KEY = "pynchy-page-key"
# In the scope of a request: what is told with the reply, and what its body must be.
TOLD = "pynchy.told"
BODY_HASH = "pynchy.body_hash"
_MAX_NUMBER_LENGTH = 18
_NONCE_BYTES = 16
_SAFE_METHODS = frozenset({"GET", "HEAD"})
# What a page may load before anybody is signed in; nothing of it tells of a question.
_OPEN_PATHS = frozenset({"/healthz", "/sign-in", "/manifest.webmanifest", "/sw.js"})
_OPEN_FOLDER = "/static/"
# What only scripts ask for: they are told by a status, not by a page.
_SCRIPTS_FOLDERS = ("/api/", "/inbox/")
_NOT_SIGNED_IN = (
    "a token is needed: Authorization: Bearer …, from the data folder; "
    "from a browser, its cookie and what its page key signs"
)
_NO_HOOK_KEY = "a hook's key is needed: run pynchy connect claude again, and start Claude Code anew"
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

_MAX_NAME = 100
_NO_STORE = {"cache-control": "no-store"}
_FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What lets a request in: the token, or the cookie of a browser whose page key signed it.

    A hook's key lets the group that it belongs to in, to the hooks' path and nowhere else.
    """

    token: str
    cookie: str
    browser: Callable[[str], Browser | None]
    hook_group: Callable[[str], GroupName | None] = lambda _key: None


class AuthMiddleware:
    """Wraps the application; plain ASGI, since event streams must not be buffered.

    `ask_to_sign_in` answers a browser that would like to see a page and has not shown all it needs.
    """

    def __init__(
        self, app: ASGIApp, ask_to_sign_in: ASGIApp, credentials: Credentials, hosts: Iterable[str]
    ) -> None:
        self._app = app
        self._ask_to_sign_in = ask_to_sign_in
        self._credentials = credentials
        self._token = credentials.token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a reason."""
        if scope["type"] != "http":
            return
        answer = self._refusal(scope) or self._app
        body = _Capped(receive, scope.get(BODY_HASH))
        await answer(scope, body, _with_headers(send, scope.get(TOLD, {})))

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
        if scope["path"] == HOOK_PATH:
            scope[HOOK_GROUP] = self._credentials.hook_group(_bearer(headers))
            return None if scope[HOOK_GROUP] else _error(401, _NO_HOOK_KEY)
        scope[KNOWN] = self._has_token(headers)
        if scope[KNOWN]:
            return None
        path, visitor = scope["path"], self._browser(scope, headers)
        known = visitor is not None and self._has_key(scope, headers, visitor)
        scope[VISITOR], scope[BROWSER], scope[KNOWN] = visitor, visitor if known else None, known
        is_open = path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)
        if (visitor is not None or is_open) and not _is_ours(scope, headers):
            return _error(403, "this came from another site")
        if known or is_open:
            return None
        return self._ask_to_sign_in if _wants_page(scope, headers) else _error(401, _NOT_SIGNED_IN)

    def _has_token(self, headers: Headers) -> bool:
        return secrets.compare_digest(_bearer(headers).encode(), self._token)

    def _browser(self, scope: Scope, headers: Headers) -> Browser | None:
        token = cookie_parser(headers.get("cookie", "")).get(self._credentials.cookie)
        browser = self._credentials.browser(token) if token else None
        if browser is not None and browser.port not in {0, _own_port(scope)}:
            return None
        return browser

    def _has_key(self, scope: Scope, headers: Headers, browser: Browser) -> bool:
        signature = read_signature(headers.get(SIGNATURE, ""))
        if signature is not None and signature.fits(scope, browser.key_hash, self._nonce):
            scope[TOLD] = {PROOF: signature.proof(browser.key_hash)}
            scope[BODY_HASH] = signature.body_hash
            return True
        scope[TOLD] = {NONCE: self._nonce}
        return signature is None and holds_key(browser, headers.get(PAGE_KEY, ""))


class BodyTooLarge(Exception):
    """More came than a body may have."""


class BodyTooSlow(Exception):
    """It was not whole within its time."""


class _Capped:
    """Receives a body up to its cap, within its time, and only the one that was signed."""

    def __init__(self, receive: Receive, body_hash: str | None) -> None:
        self._receive = receive
        self._body_hash = body_hash
        self._hash = hashlib.sha256()
        self._deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        self._left = MAX_BODY_BYTES
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError as exc:
            raise BodyTooSlow from exc
        self._left -= len(message.get("body", b""))
        self._hash.update(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._left < 0:
            raise BodyTooLarge
        if self._whole and self._body_hash not in {None, self._hash.hexdigest()}:
            raise HTTPException(400, "this is not the body that was signed")
        return message


def _bearer(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given if scheme.lower() == "bearer" else ""


def _own_port(scope: Scope) -> int:
    _, port = scope.get("server") or ("", 0)
    return port or 0


def _direct_port(request: Request) -> int:
    """Return our port if the browser has the same one in its address bar, else 0."""
    _, _, port = request.headers.get("host", "").strip().rpartition(":")
    return _own_port(request.scope) if port == str(_own_port(request.scope)) else 0


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
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").strip().lower()
    except ValueError:  # as for http://[
        return False


def _wants_page(scope: Scope, headers: Headers) -> bool:
    """True if a person looks, to whom it can be said how to get in."""
    looks = scope["method"] in _SAFE_METHODS and "text/html" in headers.get("accept", "")
    return looks and not scope["path"].startswith(_SCRIPTS_FOLDERS)


def _with_headers(send: Send, told: Mapping[str, str]) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in (*_HEADERS.items(), *told.items()):
                headers.setdefault(name, value)
        await send(message)

    return wrapped


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER_LENGTH


def _error(status: int, text: str) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004 - HTTP
    return JSONResponse({"error": text}, status, headers)


class SignInRoutes:
    """Lets browsers in."""

    def __init__(self, context: HttpContext, renderer: Renderer) -> None:
        self._context = context
        self._renderer = renderer

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/sign-in", self.sign_in_page),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/inbox/sign-out", self.sign_out, methods=["POST"]),
            Route("/static/{name}", self.static),
            Route("/static/{build}/{name}", self.static),
            Route("/manifest.webmanifest", self.manifest),
            Route("/sw.js", self.worker),
        ]

    async def sign_in_page(self, request: Request) -> Response:
        """Show the form that spends a link. Looking at it, as previews do, spends nothing."""
        key = request.query_params.get("key", "")
        if not self._context.sign_in.is_good(key):
            return self._closed_door()
        html = self._renderer.sign_in(
            key=key, next=_own_path(request.query_params.get("next", "")), by=_user_name()
        )
        return HTMLResponse(html, headers=_NO_STORE)

    async def sign_in(self, request: Request) -> Response:
        """Spend a link, and let the browser in."""
        text = (await request.body()).decode("utf-8", "replace")
        try:
            fields = parse_qs(text, max_num_fields=10)
        except ValueError as exc:
            raise HTTPException(400, "this is not the form that signs in") from exc
        key, by, onward = (fields.get(name, [""])[0] for name in ("key", "by", "next"))
        by = " ".join(by.split())[:_MAX_NAME] or _user_name()
        before = request.scope.get(VISITOR)
        entry = await self._context.sign_in.spend(
            key,
            by,
            instead_of=before if isinstance(before, Browser) else None,
            port=_direct_port(request),
        )
        if entry is None:
            return self._closed_door()
        html = self._renderer.after_sign_in(entry.page_key, _own_path(onward))
        response = HTMLResponse(html, headers=_NO_STORE)
        self._set_cookie(request, response, entry.token)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Sign this browser out."""
        browser = request.scope.get(BROWSER)
        if isinstance(browser, Browser):
            await self._context.sign_in.sign_out(browser)
        response = JSONResponse({})
        response.delete_cookie(self._context.cookie)
        return response

    async def welcome(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give a browser with a cookie the page that loads itself; tell any other how to get in."""
        if scope.get(VISITOR) is not None:
            html = self._renderer.bootstrap(scope[TOLD].get(NONCE, ""))
            await HTMLResponse(html, headers=_NO_STORE)(scope, receive, send)
            return
        html = self._renderer.sign_in(
            key="",
            title="You are not signed in",
            why="This is a pynchy host's inbox. Only people who were given a link can open it.",
        )
        await HTMLResponse(html, 401, _NO_STORE)(scope, receive, send)

    async def static(self, request: Request) -> Response:
        """Send a file of ours; it may be kept where its address says which one it is."""
        is_this = request.path_params.get("build") == BUILD
        return self._asset(
            request, request.path_params["name"], _FOR_GOOD if is_this else "no-cache"
        )

    async def manifest(self, request: Request) -> Response:
        """Send what makes the page installable."""
        return self._asset(request, "manifest.webmanifest")

    async def worker(self, request: Request) -> Response:
        """Send the service worker, from where it may serve every page."""
        return self._asset(request, "sw.js")

    async def renew(self, request: Request, response: Response) -> None:
        """Start the browser's time again, now and then."""
        browser = request.scope.get(BROWSER)
        if isinstance(browser, Browser) and await self._context.sign_in.renew(browser):
            self._set_cookie(request, response, request.cookies[self._context.cookie])

    def _asset(self, request: Request, name: str, caching: str = "no-cache") -> Response:
        body = ASSETS.get(name)
        if body is None:
            raise HTTPException(404, "there is no such file")
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        headers = {"etag": etag, "cache-control": caching}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=media_type(name))

    def _closed_door(self) -> Response:
        html = self._renderer.sign_in(
            key="",
            title="This link does not work",
            why="It has been used already, its time is up, or everybody was signed out.",
        )
        return HTMLResponse(html, 410, _NO_STORE)

    def _set_cookie(self, request: Request, response: Response, token: str) -> None:
        public = urlsplit(self._context.settings.http.public_url)
        here = host_name(request.headers.get("host", ""))
        response.set_cookie(
            self._context.cookie,
            token,
            max_age=round(self._context.settings.web.sign_in_ttl.total_seconds()),
            httponly=True,
            # Not strict: a link in a chat leads here from another site.
            samesite="lax",
            secure=public.scheme == "https" and here == host_name(public.netloc),
        )


def _own_path(path: str) -> str:
    """Return the path if it is one of this host, else the inbox's."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if inside and path.isprintable() else "/"


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"
