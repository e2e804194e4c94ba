"""The HTTP interface, guard and all, under requests that are nearly right.

Never a 500, always an `error` in JSON or a page, and a question that was not answered is as it was.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes, unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core import make_core
from tests.prove.conftest import SEED, Proof
from tests.prove.hostile.fuzzing import TEXTS, Draw, Drawn, Seeded, corpus, mutate

from pynchy.calls import ToolCall
from pynchy.channels.base import LocalChannel, WebChannel
from pynchy.config import Settings
from pynchy.http.api import make_api
from pynchy.http.auth import AuthMiddleware, Credentials
from pynchy.http.context import HttpContext
from pynchy.http.hook_keys import HOOK_PATH
from pynchy.http.hooks import TerminalPermissions
from pynchy.http.pages import InboxPages
from pynchy.http.sessions import SessionContext
from pynchy.inbox.agents import LiveRunner
from pynchy.inbox.sign_in import BrowserKeys, SignIn
from pynchy.launchers.run_log import LogChunk
from pynchy.model import GroupName, Kind, Option, PendingQuestion, Question
from pynchy.permissions.card import approval_question, is_granted, permission_question
from pynchy.safe_folder import Folder
from pynchy.session import Session
from pynchy.testing import FakeClock, MemorySessions, MemoryStore, make_pending

TOKEN = "the-token"  # noqa: S105 - of a host that exists only here
HOOK_KEY = "the-key-of-a-hook"
QUESTIONS = (
    Question("Deploy?", options=(Option("Yes"), Option("No"))),
    Question("Where?", options=(Option("a"), Option("b"), Option("c")), multi_select=True),
    Question("Why?"),
)
KINDS = (Kind.QUESTION, Kind.PERMISSION, Kind.APPROVAL)
CALL = ToolCall("claude", "Bash", {"command": "git push"}, "/srv/app")
# One of these is in whatever says yes: its word, its label, or the number of an option ticked.
YES = (b"pprove", b"lways", b"llow", b"option")
HEADERS = (
    "content-length",
    "last-event-id",
    "content-type",
    "expect",
    "range",
    "host",
    "authorization",
    "cookie",
    "pynchy-page-key",
    "accept",
    "x-forwarded-for",
    "origin",
    "sec-fetch-site",
    "sec-fetch-mode",
    "if-none-match",
)
PATHS = (
    *("/api/questions/{id}/answer",) * 16,
    *(f"/api/questions/{{id}}{tail}" for tail in ("", "/decline", "/retry", "/dismiss", "/x")),
    *("/healthz", "/api/pending", "/api/history", "/api/events", "/api/sweep", "/", "//", "/api"),
    "/api/history?limit={x}&group={x}&outcome={x}",
    "/api/events?after={x}",
    *("/agents", "/api/agents", "/sign-in", "/sign-in?key={x}&next={x}", "/api/inbox/link"),
    *("/history?q={x}&group={x}&outcome={x}&after={x}", "/q/g1/{id}", "/q/{x}/{x}"),
    *("/inbox/stream", "/inbox/agents", "/inbox/sign-out", "/inbox/cards?key=g1/{id}&key={x}"),
    *("/static/inbox-page.js", "/static/{x}", "/sw.js", "/manifest.webmanifest"),
    *("/api/sessions", "/api/sessions/{x}", "/api/sessions/{x}/log?after={x}"),
    "/api/sessions/{x}/stop",
    *("/api/rules", "/api/rules?group={x}", "/api/rules/{x}/revoke"),
    *(HOOK_PATH,) * 3,
)
METHODS = (*("POST",) * 14, "GET", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "X", "")


@dataclass
class Reply:
    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""


async def _no_output(_session: Session, after: int) -> LogChunk:
    return LogChunk("", after)


def _hook_group(key: str) -> GroupName | None:
    return GroupName("g1") if key == HOOK_KEY else None


async def _nobody() -> list[LiveRunner]:
    return []


async def _no_problems() -> list[str]:
    return []


class House:
    """The application with its guard, one open question, and nothing that runs by itself."""

    def __init__(self, folder: Path) -> None:
        clock = FakeClock()
        options = Settings()
        self._store = MemoryStore()
        channels = {"local": LocalChannel(), "web": WebChannel()}
        parts = {"store": self._store, "sessions": MemorySessions()}
        core = make_core(folder, clock, options, channels, **parts)
        self.ledger = core.ledger
        sign_in = SignIn(
            Folder(folder), clock.now, link_ttl=options.web.link_ttl, browser_ttl=options.answer_ttl
        )
        context = HttpContext(
            url="http://127.0.0.1",
            cookie="c",
            settings=options,
            ledger=self.ledger,
            answers=core.answers,
            delivery=core.delivery,
            expiry=core.expiry,
            history=self._store,
            audit=core.audit,
            rules=core.rules,
            sign_in=sign_in,
            problems=_no_problems,
            warnings=list,
            groups=list,
            live_runners=_nobody,
            seen_agents=list,
            remove_group=lambda _: True,
            session_context=SessionContext(
                core.tracker, core.control, _no_output, options, core.index
            ),
            terminal=TerminalPermissions(core.connected, core.ask_handler, Folder(folder), options),
        )
        inbox = InboxPages(context)
        passes = Credentials(TOKEN, "c", sign_in.browser, _hook_group)
        self._app = AuthMiddleware(
            make_api(context, inbox), inbox.ask_to_sign_in, passes, ["127.0.0.1"]
        )
        self._loop = asyncio.new_event_loop()
        self._sign_in = sign_in
        self._count = 0
        self.kind = Kind.QUESTION
        self._open = {kind: self._ask(kind) for kind in KINDS}

    def close(self) -> None:
        self._loop.close()

    def call(self, scope: dict[str, Any], body: list[bytes]) -> Reply:
        """Make the request; the client is gone once its body was read."""
        reply = Reply()
        messages = [{"type": "http.request", "body": b, "more_body": True} for b in body]
        messages += [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert reply.status == 0
                reply.status = message["status"]
                reply.headers = dict(message["headers"])
            reply.body += message.get("body", b"")

        self._loop.run_until_complete(self._app(scope, receive, send))
        return reply

    def signed_in(self) -> dict[bytes, bytes]:
        """Return what a browser that has just signed in sends along."""

        async def sign_in() -> BrowserKeys | None:
            key, _ = await self._sign_in.make_link()
            return await self._sign_in.spend(key, "ana")

        entry = self._loop.run_until_complete(sign_in())
        assert entry
        return {b"cookie": f"c={entry.token}".encode(), b"pynchy-page-key": entry.page_key.encode()}

    def is_unchanged(self) -> bool:
        """Say whether the question is as it was; if it is over, ask another."""
        now = self.ledger.index.get(self.question.key)
        same = now == self.question
        if now is None or now.ending is not None:
            now = self._ask(self.kind)
        self._open[self.kind] = now
        return same

    def was_granted(self, asked: PendingQuestion) -> bool:
        """Say whether the permission or approval has been given."""
        found = self._loop.run_until_complete(self.ledger.find(asked.key))
        return found is not None and is_granted(found)

    @property
    def question(self) -> PendingQuestion:
        """What the next request is about."""
        return self._open[self.kind]

    def _ask(self, kind: Kind) -> PendingQuestion:
        self._count += 1
        request_id = f"q{self._count}"
        pending = make_pending(request_id, questions=QUESTIONS)
        if kind is Kind.PERMISSION:
            asked, offered = permission_question(CALL, "git push"), "Bash(git push)"
            pending = replace(pending, questions=(asked,), call=CALL, offered_rule=offered)
        elif kind is Kind.APPROVAL:
            asked = approval_question("Deploy?", "To all.", "-a", "high")
            pending = replace(pending, questions=(asked,), approvals_needed=2)
        pending = replace(pending, kind=kind)
        self._loop.run_until_complete(self.ledger.record(pending))
        return pending


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


def attempt(house: House, chance: Draw) -> int:
    """Make one request that is nearly right, judge what comes of it, and return its status."""
    house.kind = KINDS[chance.below(len(KINDS))]
    scope = draw_scope(house, chance)
    body = mutate(chance, corpus("bodies"))
    cut = chance.below(len(body) + 1)
    pieces = [body] if chance.below(4) else [body[:cut], body[cut:], b" " * chance.below(300_000)]

    reply = house.call(scope, pieces)

    assert 200 <= reply.status < 500, (scope, pieces)
    if reply.status >= 400 and reply.body:
        if reply.headers[b"content-type"].startswith(b"text/html"):
            assert b"<h1>" in reply.body
        else:
            assert reply.headers[b"content-type"] == b"application/json"
            assert json.loads(reply.body)["error"]
    asked = house.question
    assert house.is_unchanged() or reply.status in {200, 202}
    if asked.kind is not Kind.QUESTION and house.was_granted(asked):
        assert any(word in body for word in YES), f"taken for a yes: {body!r}"
    return reply.status


def draw_scope(house: House, chance: Draw) -> dict[str, Any]:
    """Return a request that has a right Host and token, most of the time."""
    text = TEXTS[chance.below(len(TEXTS))]
    filled = PATHS[chance.below(len(PATHS))].replace("{x}", _quoted(text))
    target = house.question.request_id if chance.below(8) else _quoted(text)
    raw, _, query = filled.replace("{id}", target).partition("?")
    headers = {b"host": b"127.0.0.1", b"authorization": f"Bearer {TOKEN}".encode()}
    if not chance.below(3):
        headers = {b"host": b"127.0.0.1"} | house.signed_in()
        headers |= {b"sec-fetch-site": b"same-origin", b"accept": b"text/html"}
    if raw == HOOK_PATH and chance.below(8):
        headers[b"authorization"] = f"Bearer {HOOK_KEY}".encode()
    for _ in range(chance.below(3)):
        name = HEADERS[chance.below(len(HEADERS))]
        headers[name.encode()] = TEXTS[chance.below(len(TEXTS))].encode("utf-8", "replace")
    if not chance.below(20):
        headers[b"content-length"] = b"9" * chance.below(6_000)
    return {
        "type": "http",
        "method": METHODS[chance.below(len(METHODS))],
        "path": unquote(raw),
        "raw_path": raw.encode("ascii", "replace"),
        "query_string": query.encode("ascii", "replace"),
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2),
        "headers": list(headers.items()),
        "state": {},
    }


def _quoted(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")


@pytest.mark.timeout(3_600)
def test_no_request_is_a_500_or_changes_what_it_did_not_answer(house: House, proof: Proof) -> None:
    count = proof.choose(sample=600, prove=20_000, everything=200_000)

    statuses = [attempt(house, Seeded(SEED * 31 + number)) for number in range(count)]

    found = {status: statuses.count(status) for status in sorted(set(statuses))}
    assert {200, 401, 404, 405, 413, 421, 422} <= set(found)
    proof.report("fuzz: http", inputs=count, statuses=found, seed=SEED)


@pytest.mark.timeout(3_600)
def test_hypothesis_finds_no_500(house: House, proof: Proof) -> None:
    count = proof.choose(sample=100, prove=3_000, everything=50_000)

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=proof.scale == "sample",
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def search(data: st.DataObject) -> None:
        attempt(house, Drawn(data.draw))

    search()
    proof.report("fuzz: http", hypothesis_inputs=count)
