"""Who may look at the inbox: one-time links, the browsers that came in by one, what pages sign.

Only hashes are kept, so the file lets nobody in. A link is spent once, by whoever presents it
first; a browser stays signed in over restarts until its time is up or everybody is signed out.
A browser has two secrets: a cookie, which it shows to every port of this machine, and a page key,
which our pages sign with and nobody is sent. Only both together are a sign-in. Whoever takes the
port of a host that is down hears requests which the next host refuses, since each start has a nonce
of its own, and can reply nothing that a page takes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from pynchy.safe_folder import Folder, UnsafeFile

if TYPE_CHECKING:
    from starlette.types import Scope

log = logging.getLogger(__name__)

FILE_NAME = "inbox.json"
_CAP = 1024 * 1024
_KEY_BYTES = 18
_TOKEN_BYTES = 32
_MAX_LINKS = 50
_MAX_BROWSERS = 200
_RENEW_AFTER = timedelta(hours=6)
# Headers: of a request, of a refusal to one that has not got this start's nonce, and of a reply.
SIGNATURE = "pynchy-signature"
NONCE = "pynchy-nonce"
PROOF = "pynchy-proof"
_FIELDS = 4


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """A one-time link that nobody has used."""

    hash: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that is signed in, and as whom its answers count.

    Its pages sign with `key_hash`. `port` is the host's, where nothing stood between them: to the
    browser another port is another place, so that whoever comes from there is not that browser.
    """

    hash: str
    by: str
    until: datetime
    key_hash: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class BrowserKeys:
    """What a browser that has just come in is given: the cookie's content and the page key."""

    token: str
    page_key: str


@dataclass(slots=True)
class _Kept:
    links: list[OneTimeLink] = field(default_factory=list)
    browsers: list[Browser] = field(default_factory=list)


_KEPT = TypeAdapter(_Kept)


class SignIn:
    """The links and browsers of one data folder."""

    def __init__(
        self,
        folder: Folder,
        now: Callable[[], datetime],
        *,
        link_ttl: timedelta,
        browser_ttl: timedelta,
    ) -> None:
        self._folder = folder
        self._now = now
        self._link_ttl = link_ttl
        self._browser_ttl = browser_ttl
        self._lock = asyncio.Lock()
        self._kept = _read(folder)

    async def make_link(self) -> tuple[str, datetime]:
        """Return the key of a new link, and until when it can be used."""
        key = secrets.token_urlsafe(_KEY_BYTES)
        link = OneTimeLink(_hash(key), self._now() + self._link_ttl)
        async with self._lock:
            await self._keep([*self._kept.links, link][-_MAX_LINKS:], self._kept.browsers)
        return key, link.until

    def is_good(self, key: str) -> bool:
        """True if the link could still be spent; looking does not spend it."""
        return any(
            link.hash == _hash(key) and link.until > self._now() for link in self._kept.links
        )

    async def spend(
        self, key: str, by: str, instead_of: Browser | None = None, port: int = 0
    ) -> BrowserKeys | None:
        """Use the link up and return a browser's secrets; None if the link is none any more.

        `instead_of` is the same browser as it was signed in before; that ends. See Browser for
        `port`.
        """
        async with self._lock:
            if not self.is_good(key):
                return None
            entry = BrowserKeys(
                secrets.token_urlsafe(_TOKEN_BYTES), secrets.token_urlsafe(_TOKEN_BYTES)
            )
            until = self._now() + self._browser_ttl
            browser = Browser(_hash(entry.token), by, until, _hash(entry.page_key), port)
            links = [link for link in self._kept.links if link.hash != _hash(key)]
            others = [b for b in self._kept.browsers if not instead_of or b.hash != instead_of.hash]
            await self._keep(links, [*others, browser][-_MAX_BROWSERS:])
            return entry

    def browser(self, token: str) -> Browser | None:
        """Return the browser that has the cookie, if it is still signed in."""
        wanted, now = _hash(token), self._now()
        return next((b for b in self._kept.browsers if b.hash == wanted and b.until > now), None)

    def is_in(self, browser: Browser) -> bool:
        """True while the browser that once was signed in still is."""
        now = self._now()
        return any(b.hash == browser.hash and b.until > now for b in self._kept.browsers)

    async def renew(self, browser: Browser) -> bool:
        """Start the browser's time again, now and then. Return True if it did."""
        until = self._now() + self._browser_ttl
        if until - browser.until < min(_RENEW_AFTER, self._browser_ttl / 2):
            return False
        async with self._lock:
            if browser not in self._kept.browsers:
                return False
            fresh = replace(browser, until=until)
            await self._keep(
                self._kept.links, [fresh if b is browser else b for b in self._kept.browsers]
            )
        return True

    async def sign_out(self, browser: Browser) -> None:
        """Sign one browser out."""
        async with self._lock:
            others = [b for b in self._kept.browsers if b.hash != browser.hash]
            await self._keep(self._kept.links, others)

    async def sign_out_all(self) -> int:
        """Sign every browser out and void every link. Return how many browsers there were."""
        async with self._lock:
            count = sum(b.until > self._now() for b in self._kept.browsers)
            await self._keep([], [])
        return count

    async def _keep(self, links: list[OneTimeLink], browsers: list[Browser]) -> None:
        now = self._now()
        kept = _Kept([x for x in links if x.until > now], [x for x in browsers if x.until > now])
        await asyncio.to_thread(self._folder.replace, FILE_NAME, _dump(kept))
        self._kept = kept


def holds_key(browser: Browser, page_key: str) -> bool:
    """True if the page key is the one that the browser was given with its cookie.

    Pages that are open since before an update still send it.
    """
    return secrets.compare_digest(browser.key_hash, _hash(page_key))


def forget_all(folder: Folder) -> int:
    """Do what `sign_out_all` does, where no host runs."""
    count = sum(b.until > datetime.now(UTC) for b in _read(folder).browsers)
    folder.remove(FILE_NAME)
    return count


def _read(folder: Folder) -> _Kept:
    try:
        return _KEPT.validate_json(folder.read(FILE_NAME, _CAP))
    except FileNotFoundError:
        return _Kept()
    except (OSError, UnsafeFile, ValidationError):
        log.warning("sign_in.records_damaged")
        return _Kept()


def _dump(kept: _Kept) -> bytes:
    body: dict[str, Any] = _KEPT.dump_python(kept, mode="json")
    return json.dumps(body).encode()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class PageSignature:
    """What a page says of its request, signed; `challenge` is what the reply has to prove."""

    nonce: str
    challenge: str
    body_hash: str
    mac: str

    def fits(self, scope: Scope, key: str, nonce: str) -> bool:
        """True if the request was signed with the key, for the host's start with that nonce."""
        if not key or not hmac.compare_digest(self.nonce, nonce):
            return False
        query = scope["query_string"].decode("latin-1")
        address = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        signed = (self.nonce, self.challenge, scope["method"], address, self.body_hash)
        return hmac.compare_digest(self.mac, _mac(key, "request", *signed))

    def proof(self, key: str) -> str:
        """Return what only a host can reply that knows the browser."""
        return _mac(key, "reply", self.challenge)


def read_signature(header: str) -> PageSignature | None:
    """Return what the header says; None if it is not one of ours."""
    fields = header.split(" ")
    if len(fields) != _FIELDS or not header.isascii():
        return None
    return PageSignature(*fields)


def _mac(key: str, *parts: str) -> str:
    # No part has a line break in it: they are parts of a request's head.
    return hmac.new(key.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()
