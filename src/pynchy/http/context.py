"""What the routes work with, where they are reached, and what they tell of questions and agents."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge.answer import AnswerService
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.expire import Expiry
from pynchy.bridge.ledger import QuestionLedger
from pynchy.config import HttpSettings, Settings
from pynchy.errors import HostError, UnknownQuestion
from pynchy.fair_order import fair_order
from pynchy.http.hooks import TerminalPermissions
from pynchy.http.sessions import SessionContext
from pynchy.http_connections import bind
from pynchy.inbox.agents import AgentView, LiveRunner, ToolView
from pynchy.inbox.sign_in import Browser, SignIn
from pynchy.inbox.views import order_of
from pynchy.model import GroupName, PendingQuestion, RequestId, SessionId, State
from pynchy.pending.base import History
from pynchy.permissions.rulebook import RuleBook
from pynchy.sources.base import SeenAgent

log = logging.getLogger(__name__)

# Where a request says which signed-in browser it comes from.
BROWSER = "pynchy.browser"


@dataclass(frozen=True, slots=True)
class HttpContext:
    """The parts of a host that HTTP shows, and where it is found."""

    url: str
    cookie: str
    settings: Settings
    ledger: QuestionLedger
    answers: AnswerService
    delivery: Delivery
    expiry: Expiry
    history: History
    audit: AuditLog
    rules: RuleBook
    sign_in: SignIn
    problems: Callable[[], Awaitable[list[str]]]
    warnings: Callable[[], list[str]]
    groups: Callable[[], list[GroupName]]
    remove_group: Callable[[GroupName], bool]
    live_runners: Callable[[], Awaitable[list[LiveRunner]]]
    seen_agents: Callable[[], list[SeenAgent]]
    session_context: SessionContext
    terminal: TerminalPermissions

    @property
    def public_url(self) -> str:
        """Where people reach the pages."""
        return self.settings.http.public_url or self.url


def cookie_name(token: str) -> str:
    """Return the cookie's name: hosts on one machine share their cookies whatever the port."""
    return f"pynchy-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


async def make_link(context: HttpContext) -> tuple[str, datetime]:
    """Return a link that signs one browser in, and until when it can be used."""
    key, until = await context.sign_in.make_link()
    return f"{context.public_url}/sign-in?key={key}", until


def waiting_questions(context: HttpContext) -> list[PendingQuestion]:
    """Return what waits for a person, most urgent first; no group takes all of the first places."""
    waiting = [p for p in context.ledger.index if p.state.waits_for_person]
    return fair_order(waiting, order_of, lambda pending: pending.group)


def can_retry(context: HttpContext, key: str) -> bool:
    """True if a failed delivery of the question with that key (`group/id`) may be tried again."""
    group, _, request_id = key.partition("/")
    pending = context.ledger.index.get((GroupName(group), RequestId(request_id)))
    return pending is not None and context.delivery.route(pending).why_no_retry(pending) is None


def question_view(context: HttpContext, pending: PendingQuestion) -> dict[str, object]:
    """Return the question, with why a retry cannot help an answer that did not arrive."""
    failed = pending.state is State.UNDELIVERED
    why = context.delivery.route(pending).why_no_retry(pending) if failed else None
    return {**wire.pending_view(pending), "unreachable": why}


async def question_view_whole(context: HttpContext, pending: PendingQuestion) -> dict[str, object]:
    """Return the question; if it is open, with who would be brought an answer, and why nobody.

    `agent_gone`: nothing lives that works for who asked, so that an answer has to resume it.
    """
    view = question_view(context, pending)
    if pending.ending is None:
        liveness = context.session_context.tracker.liveness
        asked_here = bool(pending.lease) and not pending.source
        view["agent_gone"] = asked_here and not await liveness.is_session_busy(pending)
        route = context.delivery.route(pending)
        gone = await asyncio.to_thread(route.unreachable, pending)
        view["unreachable"] = gone.why if gone else None
    return view


def agent_json(context: HttpContext, view: AgentView) -> dict[str, Any]:
    """Return the agent as the HTTP interface tells it."""
    session = context.session_context.tracker.get(GroupName(view.group), SessionId(view.session_id))
    return {
        "group": view.group,
        "agent": view.name,
        "task": view.task,
        "session_id": view.session_id,
        "lives": view.lives,
        "standing": view.status,
        "isolation": context.session_context.isolation(session),
        "questions": [
            {
                "request_id": item.key.partition("/")[2],
                "short_id": item.short_id,
                "brief": item.brief,
                "asked_at": wire.timestamp(item.asked_at),
                "error": item.error,
            }
            for item in view.items
        ],
        "source": view.source,
        "state": view.state,
        "guessed": view.guessed,
        "since": _moment(view.since),
        "title": view.title,
        "tools": [_tool_json(tool, context.ledger.now()) for tool in view.tools],
        "todos": view.todos,
        "asks": [
            {
                "kind": ask.kind,
                "title": ask.title,
                "since": _moment(ask.since),
                "group": ask.key.partition("/")[0] or None,
                "request_id": ask.key.partition("/")[2] or None,
                "short_id": ask.short_id or None,
                "text": ask.text,
                "options": ask.options,
                "agent": ask.agent,
                "urgency": ask.urgency,
            }
            for ask in view.asks
        ],
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else wire.timestamp(at)


def _tool_json(tool: ToolView, now: datetime) -> dict[str, Any]:
    ran = None if tool.started is None else max(0.0, (now - tool.started).total_seconds())
    return {
        "tool": tool.tool,
        "argument": tool.argument,
        "elapsed_seconds": None if ran is None else round(ran, 1),
        "may_need_permission": tool.may_need_permission,
    }


def last_ended_first(over: Iterable[PendingQuestion]) -> list[PendingQuestion]:
    """Return what is over by when it ended, which is what is shown of it.

    History goes by when a question was closed, which an answer that arrived late delays.
    """
    ended = [(p.ending.at if p.ending else p.timestamp, p) for p in over]
    return [pending for _, pending in sorted(ended, key=lambda pair: pair[0], reverse=True)]


async def find_question(
    context: HttpContext, group: str, request_id: str
) -> PendingQuestion | None:
    """Return the question of that group, open or over, if there is one."""
    if not (wire.usable_group(group) and wire.usable_id(request_id)):
        return None
    try:
        return await context.answers.find(RequestId(request_id), GroupName(group))
    except UnknownQuestion:
        return None


def who(request: Request, otherwise: str) -> str:
    """Return as whom the browser is signed in, if one sent the request."""
    browser = request.scope.get(BROWSER)
    return browser.by if isinstance(browser, Browser) else otherwise


def listen(http: HttpSettings) -> socket.socket:
    """Return a listening socket at the port; at a free one if nobody chose it and it is taken.

    Raise HostError if the address is not one of this machine, or a port that was chosen is taken.
    """
    try:
        return bind(http.host, http.port)
    except OSError as exc:
        if http.port == 0 or exc.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise HostError(f"http.host: {http.host} cannot be used ({exc.strerror})") from exc
        if "port" in http.model_fields_set:
            why = "is taken" if exc.errno == errno.EADDRINUSE else "is not for this user"
            raise HostError(
                f"port {http.port} of {http.host} {why}: stop what listens there, or choose "
                "another with --port or http.port in the settings (0: any free one)"
            ) from exc
    log.warning("http.port_taken", extra={"port": http.port})
    try:
        return bind(http.host, 0)
    except OSError as exc:
        raise HostError(f"http.host: {http.host} cannot be used ({exc.strerror})") from exc


def url_of(sock: socket.socket) -> str:
    """Return the address under which the socket is reached from this machine."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def names_of(sock: socket.socket, http: HttpSettings) -> list[str]:
    """Return the names under which a request may ask for us: anything else is refused."""
    bound = str(sock.getsockname()[0])
    bound = f"[{bound}]" if ":" in bound else bound
    public = host_name(urlsplit(http.public_url).netloc)
    return ["127.0.0.1", "localhost", "[::1]", bound, public or bound, *http.allowed_hosts]


def host_name(header: str) -> str:
    """Return the name in a Host header, without the port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]
