"""The way in and out: links that are spent, secrets that are given, what anybody may load.

Looking at a link, as previews do, spends nothing. Nobody is led to another site. Who has only the
cookie sees an empty frame, whose script asks for the page with the key that it keeps.
"""

from __future__ import annotations

import getpass
import hashlib
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pynchy.http.auth import BROWSER, VISITOR, host_name
from pynchy.http.context import HttpContext
from pynchy.inbox.render import ASSETS, BUILD, Renderer, media_type
from pynchy.inbox.sign_in import Browser

_MAX_NAME = 100
_NO_STORE = {"cache-control": "no-store"}
_FOR_GOOD = "public, max-age=31536000, immutable"


class SignInRoutes:
    """Lets browsers in."""

    def __init__(self, context: HttpContext, renderer: Renderer) -> None:
        self._context = context
        self._renderer = renderer

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/sign-in", self.door),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/inbox/sign-out", self.sign_out, methods=["POST"]),
            Route("/static/{name}", self.static),
            Route("/static/{build}/{name}", self.static),
            Route("/manifest.webmanifest", self.manifest),
            Route("/sw.js", self.worker),
        ]

    async def door(self, request: Request) -> Response:
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
            key, by, instead_of=before if isinstance(before, Browser) else None
        )
        if entry is None:
            return self._closed_door()
        html = self._renderer.entered(entry.page_key, _own_path(onward))
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
        """Give a browser with a cookie the frame of a page; tell any other how it gets in."""
        if scope.get(VISITOR) is not None:
            await HTMLResponse(self._renderer.frame(), headers=_NO_STORE)(scope, receive, send)
            return
        html = self._renderer.sign_in(
            key="",
            title="You are not signed in",
            why="This is the inbox of a pynchy host. Only who has a link of it may look inside.",
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
        """Let the browser's time begin anew, now and then."""
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
