"""OpenCode's servers, those of the settings and those that are found: see Source.

    a session waits ─► shown in the list of agents
                    └─ forwarded ─► card ─┬─ a person answers ─► the server is told, and decides
                                          └─ answered there ─► the card is cleared

Only a server of the settings is handed an answer or a password: whatever else listens on this
machine may be anything.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath
from urllib.parse import SplitResult, urlsplit

import aiohttp
import psutil

from pynchy.config import OpenCodeSourceSettings, is_loopback
from pynchy.events import AskedQuestion, Event, EventKind
from pynchy.model import GroupName, RequestId, SessionId
from pynchy.sources.base import (
    OPENCODE,
    AnswerRoute,
    SeenAgent,
    SeenAsk,
    SourceHandler,
    SourceServices,
    open_of,
)
from pynchy.sources.budget import EventBudget, configured_rate, found_rate
from pynchy.sources.opencode.forward import (
    ENDED_SECONDS,
    Forwarding,
    ForwardingContext,
    folder_name,
)
from pynchy.sources.opencode.reading import Notice
from pynchy.sources.opencode.requests import request_id, server_mark
from pynchy.sources.opencode.server import Credential, OpenCodeFailed, OpenCodeServer, new_http
from pynchy.sources.opencode.state import OpenAsk, RowOptions, WatchOptions, rows
from pynchy.sources.opencode.watch import ServerWatch

log = logging.getLogger(__name__)

NOT_FOLLOWED = "its OpenCode server is not in the settings any more"

_DISCOVER_SECONDS = 5.0
_NAME = "opencode"
_MAX_SERVERS = 20
# An OpenCode listens on one port.
_MAX_OF_PROCESS = 2
_RECENT_SECONDS = 24 * 3_600.0
_MAX_EVENT_TEXT = 500
_MAX_OPTIONS = 20
_MAX_TOLD_PER_MINUTE = 60


@dataclass(slots=True)
class _Followed:
    """A server. `forwarding` is None for one that is handed no answers."""

    watch: ServerWatch
    task: asyncio.Task[None]
    forwarding: Forwarding | None
    told: dict[str, OpenAsk] = field(default_factory=dict)
    lately: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_TOLD_PER_MINUTE))

    def may_tell(self) -> bool:
        """True if it has not asked too often lately: each is a line of the event log."""
        now = time.monotonic()
        if len(self.lately) == _MAX_TOLD_PER_MINUTE and now - self.lately[0] < 60:  # noqa: PLR2004 - a minute
            return False
        self.lately.append(now)
        return True


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """How a server stands. `why`: it cannot be followed, and why not."""

    url: str
    is_trusted: bool
    is_exact: bool = False
    why: str = ""


async def look_around(
    settings: OpenCodeSourceSettings, environ: Mapping[str, str]
) -> list[ServerCheck]:
    """Look once at every server that would be followed."""
    found = await asyncio.to_thread(find_servers) if settings.discover else []
    async with new_http() as http:
        checks = []
        for url in dict.fromkeys((*settings.urls, *found)):
            is_trusted = url in settings.urls
            credential = _credential(settings, environ) if is_trusted else None
            server = OpenCodeServer(url, http, credential)
            try:
                is_exact = await server.tells_exactly()
                checks.append(ServerCheck(url, is_trusted, is_exact))
            except OpenCodeFailed as exc:
                checks.append(ServerCheck(url, is_trusted, why=str(exc)))
        return checks


class OpenCodeSource:
    """See Source."""

    name = OPENCODE

    def __init__(
        self,
        settings: OpenCodeSourceSettings,
        environ: Mapping[str, str],
        services: SourceServices,
    ) -> None:
        self._settings = settings
        self._services = services
        self._group = GroupName(settings.group)
        self._credential = _credential(settings, environ)
        self._servers: dict[str, _Followed] = {}
        self._names: dict[str, str] = {}

    @property
    def route(self) -> AnswerRoute:
        """See Source."""
        return self._services.route

    @property
    def problem(self) -> str | None:
        """See Source: what a server does that was only found is no problem."""
        trusted = [one.watch for url, one in self._servers.items() if url in self._settings.urls]
        problems = [watch.problem for watch in trusted]
        problems += [watch.events.problem for watch in trusted]
        return next(filter(None, problems), None)

    @property
    def warnings(self) -> list[str]:
        """See Source: any agent can start a server that is found, and let it flood."""
        found = (one for url, one in self._servers.items() if url not in self._settings.urls)
        return [told for one in found if (told := one.watch.events.problem)]

    def agents(self) -> list[SeenAgent]:
        """See Source."""
        options = RowOptions(
            self._group,
            self._services.now().timestamp(),
            self._settings.permission_threshold.total_seconds(),
            _RECENT_SECONDS,
        )
        found = []
        for server in self._servers.values():
            if not server.watch.has_read:
                continue
            asks = [(ask, _seen(server, ask)) for ask in server.watch.asks()]
            found += rows(server.watch.state, asks, options)
        return [replace(row, task=self._names.get(row.task, "")) for row in found]

    async def run(self, handler: SourceHandler) -> None:
        """See Source."""
        services = self._services
        try:
            async with new_http() as http, asyncio.TaskGroup() as tasks:
                context = ForwardingContext(
                    self._group, services.route, services.index, handler, tasks
                )
                self._end_unknown(context)
                for url in self._settings.urls:
                    self._follow(url, http, context)
                while True:
                    await self._look_around(http, context)
                    await asyncio.sleep(_DISCOVER_SECONDS)
        finally:
            self._servers.clear()

    def _end_unknown(self, context: ForwardingContext) -> None:
        marks = tuple(server_mark(url) for url in self._settings.urls)
        for pending in open_of(context.index, OPENCODE):
            if pending.group != self._group or not pending.request_id.startswith(marks):
                context.end_later(pending, NOT_FOLLOWED)

    async def _look_around(self, http: aiohttp.ClientSession, context: ForwardingContext) -> None:
        """Find out which servers there are, and what the folders of sessions are called."""
        try:
            if self._settings.discover:
                self._attend(await asyncio.to_thread(find_servers), http, context)
            self._names = await asyncio.to_thread(_name_folders, self._folders())
        except Exception:  # those of the settings are followed all the same
            log.exception("opencode.not_looked_around")

    def _attend(
        self, found: list[str], http: aiohttp.ClientSession, context: ForwardingContext
    ) -> None:
        """Follow the servers that have appeared, and leave those that are gone."""
        for url in set(self._servers) - set(found) - set(self._settings.urls):
            gone = self._servers.pop(url)
            gone.task.cancel()
            self._tell(gone, ())
        for url in found:
            if url not in self._servers and not self._is_configured(url):
                self._follow(url, http, context)

    def _is_configured(self, found: str) -> bool:
        """True if the server that was found is in the settings, under whichever name."""
        ours = [urlsplit(url) for url in self._settings.urls]
        port = urlsplit(found).port
        return any(is_loopback(one.hostname or "") and _port_of(one) == port for one in ours)

    def _follow(self, url: str, http: aiohttp.ClientSession, context: ForwardingContext) -> None:
        is_trusted = url in self._settings.urls
        credential = self._credential if is_trusted else None
        budget = EventBudget(self._configured_rate if is_trusted else self._found_rate)
        server = OpenCodeServer(url, http, credential, budget, is_trusted=is_trusted)
        options = WatchOptions(
            self._settings.poll.total_seconds(), self._settings.ask_timeout.total_seconds()
        )
        watch = ServerWatch(server, options, self._changed)
        task = context.tasks.create_task(watch.run(), name="opencode-server")
        forwards = is_trusted and bool(self._settings.forward)
        self._servers[url] = _Followed(
            watch, task, Forwarding(watch, context) if forwards else None
        )

    def _configured_rate(self) -> float:
        return configured_rate(len(self._settings.urls))

    def _found_rate(self) -> float:
        configured = len(self._settings.urls)
        return found_rate(configured, len(self._servers) - configured)

    def _changed(self, watch: ServerWatch) -> None:
        """Take up what a server has been seen to do."""
        server = self._servers.get(watch.url)
        if server is None:
            return
        asks = watch.asks()
        if server.forwarding is not None:
            wanted = [ask for ask in asks if self._is_forwarded(ask)]
            server.forwarding.update(wanted)
        if watch.is_sure or watch.refused_for > ENDED_SECONDS:
            shown = server.forwarding is None
            self._tell(server, [a for a in asks if shown or not self._is_forwarded(a)])

    def _is_forwarded(self, ask: OpenAsk) -> bool:
        if ask.kind.value not in self._settings.forward:
            return False
        return self._settings.reply_by_prompt or not isinstance(ask.asked, Notice)

    def _tell(self, server: _Followed, asks: Iterable[OpenAsk]) -> None:
        """Publish what has been asked and cleared that is no question of ours."""
        now = {ask.id: ask for ask in asks}
        url = server.watch.url
        for ask in now.values():
            if ask.id not in server.told and server.may_tell():
                server.told[ask.id] = ask
                self._services.publish(self._event(EventKind.ASKED, url, ask))
        for ask_id, ask in list(server.told.items()):
            if ask_id not in now:
                del server.told[ask_id]
                self._services.publish(self._event(EventKind.CLEARED, url, ask))

    def _event(self, kind: EventKind, url: str, ask: OpenAsk) -> Event:
        event = Event(
            kind,
            self._services.now(),
            self._group,
            request_id=RequestId(request_id(url, ask)),
            agent=ask.agent[:_MAX_EVENT_TEXT] or OPENCODE,
            session_id=SessionId(ask.session_id),
            source=OPENCODE,
        )
        if kind is not EventKind.ASKED:
            return event
        title = ask.title[:_MAX_EVENT_TEXT]
        options = tuple(one[:_MAX_EVENT_TEXT] for one in ask.options[:_MAX_OPTIONS])
        asked = (AskedQuestion(ask.text[:_MAX_EVENT_TEXT] or title, options),)
        return replace(event, asked=asked, asked_kind=ask.kind, title=title, urgency=ask.urgency)

    def _folders(self) -> set[tuple[str, str]]:
        """Return the folders of all sessions, each with its server's address."""
        return {
            (url, session.directory)
            for url, server in self._servers.items()
            for session in server.watch.state.sessions.values()
        }


def _name_folders(folders: set[tuple[str, str]]) -> dict[str, str]:
    return {folder: folder_name(url, folder) for url, folder in folders}


def _port_of(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _seen(server: _Followed, ask: OpenAsk) -> SeenAsk:
    key = None if server.forwarding is None else server.forwarding.key_of(ask)
    return SeenAsk(
        ask.kind, ask.title, ask.since, key, ask.text, ask.options, ask.agent, ask.urgency
    )


def _credential(settings: OpenCodeSourceSettings, environ: Mapping[str, str]) -> Credential | None:
    password = environ.get(settings.password_env, "")
    return Credential(settings.username, password) if password else None


def find_servers() -> list[str]:
    """Return the addresses of the servers that our own user runs. Not for the loop.

    What calls itself OpenCode may be anything: nothing but questions may be sent there.
    """
    ours = sorted(filter(_is_ours, psutil.process_iter()), key=_began)
    # Those that were there first: nobody drives them out by listening on many ports.
    found = dict.fromkeys(
        url for process in ours for url in islice(_urls(process), _MAX_OF_PROCESS)
    )
    return list(found)[:_MAX_SERVERS]


def _began(process: psutil.Process) -> float:
    with suppress(psutil.Error, OSError):
        return process.create_time()
    return math.inf


def _is_ours(process: psutil.Process) -> bool:
    """True if it is an OpenCode that our own user runs."""
    with suppress(psutil.Error, OSError):
        if not process.name().lower().startswith((_NAME, "node", "bun")):
            return False
        if process.uids().real != os.getuid():
            return False
        names = [PurePath(part).name.lower() for part in (process.exe(), *process.cmdline()[:2])]
        return any(name.split(".")[0] == _NAME for name in names)
    return False


def _urls(process: psutil.Process) -> Iterator[str]:
    with suppress(psutil.Error, OSError):
        for connection in process.net_connections(kind="tcp"):
            if connection.status != psutil.CONN_LISTEN or not connection.laddr:
                continue
            address = ipaddress.ip_address(connection.laddr.ip)
            if address.is_unspecified:
                address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")  # noqa: PLR2004
            if address.is_loopback:
                host = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004
                yield f"http://{host}:{connection.laddr.port}"
