"""Cards and pages as HTML, and the files that the pages load."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from pynchy.inbox import keys
from pynchy.inbox.agents import OURS, AgentView, by_source
from pynchy.inbox.views import (
    MAX_LISTED_HTML,
    OUTCOMES,
    card_view,
    is_too_long,
    revision_of,
)
from pynchy.model import PendingQuestion
from pynchy.wire import timestamp

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
# No script imports these, so loading them ahead would be for nothing.
_NOT_PRELOADED = frozenset({"after-sign-in.js", "bootstrap.js", "sw.js"})

ASSETS = {
    path.name: path.read_bytes()
    for path in sorted((files("pynchy.inbox") / "static").iterdir(), key=lambda path: path.name)
    if path.is_file()
}
BUILD = hashlib.sha256(b"\0".join([*map(str.encode, ASSETS), *ASSETS.values()])).hexdigest()[:16]
_PRELOADED = [name for name in ASSETS if name.endswith(".js") and name not in _NOT_PRELOADED]

_MAX_CACHED = 5_000


def media_type(name: str) -> str:
    """Return the type of one of our files."""
    return TYPES["." + name.rpartition(".")[2]]


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pynchy.inbox"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["iso"] = timestamp
    environment.filters["stamp"] = _stamp
    environment.globals["hint"] = {b.action.value: b.hint for b in keys.BINDINGS}
    environment.globals["build"] = BUILD
    environment.globals["static"] = f"/static/{BUILD}"
    environment.globals["bindings"] = keys.BINDINGS
    environment.globals["snoozes"] = keys.SNOOZES
    environment.globals["ours"] = OURS
    environment.globals["by_source"] = by_source
    environment.globals["outcomes"] = {kind.value: word for kind, word in OUTCOMES.items()}
    return environment


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and what the page must know to work for them."""

    by: str
    undo_ms: int
    undo_high_ms: int
    now: datetime

    def page_data(self) -> dict[str, object]:
        """Return what the page's scripts read."""
        return {
            "by": self.by,
            "undo": {"high": self.undo_high_ms, "normal": self.undo_ms, "low": self.undo_ms},
            "now": timestamp(self.now),
            "keys": {key: b.action for b in keys.BINDINGS for key in b.keys},
            "snoozes": [
                {
                    "text": snooze.text,
                    "seconds": snooze.length.total_seconds() if snooze.length else None,
                    "hour": snooze.until_hour,
                }
                for snooze in keys.SNOOZES
            ],
        }


@dataclass(frozen=True, slots=True)
class RenderedCard:
    """A card as the page gets it; `revision` changes when the card does."""

    key: str
    order: str
    revision: str
    html: str

    def as_message(self) -> dict[str, str]:
        """Return it as the page's scripts read it."""
        return asdict(self)


class Renderer:
    """Renders cards and pages. Safe to use from several threads: at worst it renders twice."""

    def __init__(
        self, host: str = "pynchy", can_retry: Callable[[str], bool] = lambda _: True
    ) -> None:
        """`host` tells this host's pages from those of another one at the same address.

        `can_retry` says of a question's key whether a delivery that failed can be tried again.
        """
        self._environment = _environment()
        self._environment.globals["host"] = host
        self._environment.globals["can_retry"] = can_retry
        self._cards: dict[tuple[str, str], tuple[PendingQuestion, RenderedCard]] = {}

    def card(self, pending: PendingQuestion) -> RenderedCard:
        """Return the card of the question as it is now, as a list has it.

        One that is too long for a list says how it begins, and where the whole is.
        """
        known = self._cards.get(pending.key)
        if known is not None and known[0] is pending:
            return known[1]
        printed = self._print(pending)
        if pending.ending is not None:
            self._cards.pop(pending.key, None)
        else:
            # What ended while no page was open is still in here; start again now and then.
            if len(self._cards) >= _MAX_CACHED:
                self._cards.clear()
            self._cards[pending.key] = (pending, printed)
        return printed

    def whole_card(self, pending: PendingQuestion) -> RenderedCard:
        """Return the card with all that the agent wrote."""
        return self._card(pending, is_excerpt=False)

    def page(self, name: str, viewer: Viewer, **values: object) -> str:
        """Return a page for somebody who is signed in."""
        template = self._environment.get_template(f"{name}.html")
        return template.render(viewer=viewer, page=name, **values)

    def bootstrap(self, nonce: str) -> str:
        """Return a page without anything in it, whose script asks for its content.

        `nonce` is what it signs its requests with, beside the page key.
        """
        template = self._environment.get_template("bootstrap.html")
        return template.render(preloaded=_PRELOADED, nonce=nonce)

    def after_sign_in(self, page_key: str, onward: str) -> str:
        """Return the page that gives a browser its page key and leads it on."""
        entry = {"key": page_key, "next": onward}
        return self._environment.get_template("after_sign_in.html").render(entry=entry)

    def sign_in(self, **values: object) -> str:
        """Return the page for somebody who is not."""
        return self._environment.get_template("sign_in.html").render(**values)

    def agents(self, agents: Sequence[AgentView], revision: str) -> str:
        """Return the list of agents alone."""
        template = self._environment.get_template("agents_list.html")
        return template.render(agents=agents, revision=revision)

    def _print(self, pending: PendingQuestion) -> RenderedCard:
        if not is_too_long(pending):
            card = self._card(pending, is_excerpt=False)
            if len(card.html) <= MAX_LISTED_HTML:
                return card
        return self._card(pending, is_excerpt=True)

    def _card(self, pending: PendingQuestion, *, is_excerpt: bool) -> RenderedCard:
        view = card_view(pending, is_excerpt=is_excerpt)
        html = self._environment.get_template("card.html").render(card=view)
        return RenderedCard(view.key, view.order, revision_of(pending), html)


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%d %b %Y, %H:%M UTC")
