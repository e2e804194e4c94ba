"""The only place that wires: build a host from its settings, run it, stop it in order.

Start: lock the folder, load what was open, open the channels, watch the mailboxes, answer HTTP,
and only then finish what an earlier host left undone. Stop: the other way round.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge.answer import AnswerService
from pynchy.bridge.ask import PREFIX, AskHandler
from pynchy.bridge.cards import Cards
from pynchy.bridge.deliver import Delivery, DeliveryLimits, MailboxRoute
from pynchy.bridge.expire import Expiry
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.resume import LateDelivery, LateSettings
from pynchy.bridge.retention import Retention
from pynchy.bridge.workers import QuestionServices, QuestionWorkers
from pynchy.channels.base import Channel
from pynchy.channels.loading import OwnReplies, make_channels
from pynchy.clock import SteadyClock
from pynchy.config import Settings
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.errors import ChannelUnavailable, HostError
from pynchy.http.api import make_api
from pynchy.http.auth import AuthMiddleware, Credentials, host_name
from pynchy.http.context import HttpContext, cookie_name, make_link
from pynchy.http.pages import InboxPages
from pynchy.http.server import HttpServer, listen, url_of
from pynchy.http.sessions import SessionContext
from pynchy.inbox.agents import LiveRunner
from pynchy.inbox.sign_in import SignIn
from pynchy.ipc.intake import Intake, Rate, Registry
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.ipc.watcher import Watcher
from pynchy.launchers.base import Launcher
from pynchy.launchers.kinds import LauncherContext, make_launcher
from pynchy.launchers.run_log import LogChunk, read_output
from pynchy.model import GroupName
from pynchy.pending.files import FileStore
from pynchy.pending.index import PendingIndex, ShortIds
from pynchy.session import Session
from pynchy.sources.base import MAILBOX
from pynchy.tracking.control import SESSION_PREFIX, SessionControl
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.table import FileSessions, SessionTable
from pynchy.tracking.tracker import SessionTracker

log = logging.getLogger(__name__)

_OURS = "PYNCHY_"


@dataclass(frozen=True, slots=True)
class Running:
    """A host that is ready."""

    url: str
    recovered: int
    make_link: Callable[[], Awaitable[str]]


@asynccontextmanager
async def running_host(
    settings: Settings,
    data: DataFolder,
    extra_channels: Mapping[str, Channel] | None = None,
    origin: SettingsSource | None = None,
) -> AsyncIterator[Running]:
    """Run a host for as long as the context lasts.

    The file that the settings come from is told to whoever asks, and kept from agents in boxes.
    """
    async with AsyncExitStack() as stack:
        try:
            data.make()
            stack.enter_context(data.locked())
            channels = {**make_channels(settings, os.environ, data.path), **(extra_channels or {})}
            host = Host(settings, data, channels, origin)
            running = await stack.enter_async_context(host.running())
        except (OSError, ExceptionGroup) as exc:
            raise _why_not_started(exc, data) from exc
        yield running


class Host:
    """Everything that runs for one data folder."""

    def __init__(
        self,
        settings: Settings,
        data: DataFolder,
        channels: Mapping[str, Channel],
        origin: SettingsSource | None = None,
    ) -> None:
        self._settings = settings
        self._origin = origin
        self._data = data
        self._channels = channels
        self._clock = SteadyClock()
        self._store = FileStore(data.ipc)
        self._index = PendingIndex()
        retention = settings.retention
        self._audit = AuditLog(
            data.audit, max_bytes=retention.audit_size, max_files=retention.audit_files
        )
        self._ledger = QuestionLedger(self._store, self._index, self._audit, self._clock.now)
        self._mailboxes = Mailboxes(data.ipc, lambda group: settings.group(group).agent_uid)
        self._leases = Leases(settings.lease_ttl.total_seconds())
        self._launchers = self._make_launchers()
        self._tracker = self._make_tracker()
        self._ledger.subscribe(self._tracker)
        self._lost_answers = LostAnswers(self._tracker, self._index, self._store, self._mailboxes)
        self._cards = Cards(
            self._ledger,
            channels,
            settings.send_timeout.total_seconds(),
            settings.http.public_url,
        )
        late = LateDelivery(
            self._ledger,
            self._mailboxes,
            self._lost_answers,
            self._late_settings(),
            settings.max_resumes,
        )
        limits = DeliveryLimits(settings.receipt_grace, settings.answer_ttl)
        mailbox_route = MailboxRoute(
            self._ledger, self._mailboxes, self._tracker.liveness, late, limits
        )
        self._delivery = Delivery(self._ledger, {MAILBOX: mailbox_route})
        self._expiry = Expiry(
            self._ledger,
            self._delivery,
            Retention(self._ledger, self._mailboxes, self._tracker, retention),
        )
        self._ask_handler = AskHandler(
            self._ledger,
            self._mailboxes,
            self._lost_answers,
            ShortIds(data.folder, self._index.has_short_id).make,
            settings,
        )
        self._control = SessionControl(
            self._lost_answers, late.halt, self._mailboxes, settings, without_secrets(settings)
        )
        self._answers = AnswerService(self._ledger, channels, settings)
        self._watcher: Watcher | None = None
        self._unopened: dict[str, str] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Running]:
        """Start everything, and stop it at the end."""
        async with AsyncExitStack() as stack:
            self._audit.open()
            stack.callback(self._audit.close)
            for launcher in self._launchers.values():
                stack.push_async_callback(launcher.close)
            tasks = await stack.enter_async_context(_background())
            services = QuestionServices(self._cards, self._delivery, self._expiry)
            workers = QuestionWorkers(self._ledger, services, self._settings, tasks)
            self._ledger.subscribe(workers)
            for launcher in self._launchers.values():
                await launcher.adopt()
            # Before the channels: the first click may be on a card of an earlier host.
            loaded = await self._ledger.load()
            await self._tracker.load(tasks)
            await self._open_channels(stack)
            workers.resume(loaded)
            tasks.create_task(self._ledger.follow(), name="store")
            self._watch(tasks)
            tasks.create_task(self._tracker.run(), name="sessions")
            tasks.create_task(self._expiry.run(), name="expiry")
            tasks.create_task(self._expiry.report_orphans(), name="orphans")
            context = await stack.enter_async_context(self._http(tasks))
            yield Running(context.url, len(loaded), lambda: _link(context))

    def _watch(self, tasks: asyncio.TaskGroup) -> None:
        registry = Registry()
        registry.register_prefix(PREFIX, self._ask_handler.handle)
        registry.register_prefix(SESSION_PREFIX, self._control.handle)
        rate = self._settings.requests_per_second
        burst = self._settings.request_burst
        intake = Intake(
            self._mailboxes, registry, self._ask_handler, tasks, lambda: Rate(rate, burst)
        )
        self._watcher = Watcher(self._data.ipc, intake)
        tasks.create_task(self._watcher.run(), name="watcher")

    async def _open_channels(self, stack: AsyncExitStack) -> None:
        for name, channel in self._channels.items():
            problem = await self._try(name, channel.open(OwnReplies(name, self._answers)))
            if problem is not None:
                self._unopened[name] = f"{name} could not be opened: {problem}"
            stack.push_async_callback(self._close_channel, name, channel)

    async def _close_channel(self, name: str, channel: Channel) -> None:
        await self._try(name, channel.close())

    async def _try(self, name: str, work: Awaitable[None]) -> str | None:
        """Open or close a channel. Return what is broken there; it stops nobody else."""
        try:
            async with asyncio.timeout(self._settings.send_timeout.total_seconds()):
                await work
        except ChannelUnavailable as exc:
            # It is up to the channel to connect later, and to say so until then.
            log.warning("channel.unavailable", extra={"channel": name, "why": str(exc)})
        except TimeoutError:
            log.warning("channel.timeout", extra={"channel": name})
            return "it took too long"
        except Exception as exc:
            log.exception("channel.failed", extra={"channel": name})
            return type(exc).__name__
        return None

    @asynccontextmanager
    async def _http(self, tasks: asyncio.TaskGroup) -> AsyncIterator[HttpContext]:
        http = self._settings.http
        with listen(http.host, http.port) as sock:
            token = self._data.token()
            context = self._context(url_of(sock), cookie_name(token))
            server = HttpServer(_guarded(context, token, self._hosts(sock)))
            serving = tasks.create_task(_serve(server, sock), name="http")
            self._data.announce(context.url, self._origin)
            try:
                yield context
            finally:
                self._data.retract()
                self._audit.dismiss()
                server.should_exit = True
                await serving

    def _hosts(self, sock: socket.socket) -> list[str]:
        bound = str(sock.getsockname()[0])
        bound = f"[{bound}]" if ":" in bound else bound
        http = self._settings.http
        public = host_name(urlsplit(http.public_url).netloc)
        return ["127.0.0.1", "localhost", "[::1]", bound, public or bound, *http.allowed_hosts]

    def _context(self, url: str, cookie: str) -> HttpContext:
        web = self._settings.web
        return HttpContext(
            url=url,
            cookie=cookie,
            settings=self._settings,
            ledger=self._ledger,
            answers=self._answers,
            delivery=self._delivery,
            expiry=self._expiry,
            history=self._store,
            audit=self._audit,
            sign_in=SignIn(
                self._data.folder,
                self._clock.now,
                link_ttl=web.link_ttl,
                browser_ttl=web.sign_in_ttl,
            ),
            problems=self.problems,
            groups=self._mailboxes.groups,
            live_runners=self._live_runners,
            session_context=SessionContext(
                self._tracker, self._control, self._output, self._settings
            ),
        )

    def _live_runners(self) -> list[LiveRunner]:
        found = []
        for group in self._mailboxes.groups():
            try:
                live = self._leases.live(self._mailboxes.of(group))
            except OSError as exc:
                log.warning("group.unreadable", extra={"group": group, "why": exc.strerror})
                continue
            found += [LiveRunner(group, lease, session_id) for lease, session_id in live]
        return found

    async def _output(self, session: Session, after: int) -> LogChunk:
        return await asyncio.to_thread(read_output, self._data.path, session, after)

    def problems(self) -> list[str]:
        """Say what is wrong just now, in words for a person."""
        found = [self._audit.problem, *self._unopened.values()]
        if self._watcher is not None:
            found += [self._watcher.problem, *self._watcher.troubled.values()]
        found += [f"{name}: {text}" for name, c in self._channels.items() if (text := c.problem())]
        found += self._store.problems()
        routes = sorted({(p.group, p.source): self._delivery.route(p) for p in self._index}.items())
        found += [route.problem(group) for (group, _), route in routes]
        found += [self._clock.problem(), self._data.disk_problem()]
        return [problem for problem in found if problem]

    def _make_launchers(self) -> dict[GroupName, Launcher]:
        environ = without_secrets(self._settings)
        launchers: dict[GroupName, Launcher] = {}
        own = None if self._origin is None else self._origin.path
        for name, group in self._settings.groups.items():
            if group.launcher is not None:
                place = LauncherContext(self._data.path, GroupName(name), own)
                launchers[GroupName(name)] = make_launcher(place, group, environ)
        return launchers

    def _make_tracker(self) -> SessionTracker:
        liveness = Liveness(self._mailboxes, self._leases, self._launchers)
        most = self._settings.retention.sessions
        table = SessionTable(FileSessions(self._data.path), most, self._forget_initial)
        return SessionTracker(table, self._index, self._audit, self._clock.now, liveness)

    def _forget_initial(self, session: Session) -> None:
        if session.launches and wire.usable_id(session.session_id):
            with suppress(OSError):
                self._mailboxes.of(session.group).forget_initial(session.session_id)

    def _late_settings(self) -> dict[GroupName, LateSettings]:
        late = {}
        for name, launcher in self._launchers.items():
            settings = self._settings.group(name).launcher
            if settings is not None:
                late[name] = LateSettings(launcher, settings.attempts, settings.backoff)
        return late


def _guarded(context: HttpContext, token: str, hosts: list[str]) -> AuthMiddleware:
    inbox = InboxPages(context)
    passes = Credentials(token, context.cookie, context.sign_in.browser)
    return AuthMiddleware(make_api(context, inbox), inbox.doorman, passes, hosts)


async def _link(context: HttpContext) -> str:
    url, _ = await make_link(context)
    return url


async def _serve(server: HttpServer, sock: socket.socket) -> None:
    """Answer HTTP until the host stops. A host that nobody can reach is of no use: raise."""
    await server.serve([sock])
    if not server.should_exit:
        raise HostError("the HTTP interface has ended by itself")


def without_secrets(settings: Settings) -> dict[str, str]:
    """Return our environment as agents may see it: without the channels' secrets and what is ours.

    An agent that knew the host's data folder would, as the host's own user, speak as a person.
    """
    secrets = {name for channel in settings.channels.values() for name in channel.secrets()}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in secrets and not name.startswith(_OURS)
    }


def _why_not_started(exc: Exception, data: DataFolder) -> Exception:
    """Return what to tell of a start that failed, taken out of the task group's exception."""
    cause = exc
    while isinstance(cause, ExceptionGroup):
        cause = cause.exceptions[0]
    if not isinstance(cause, OSError):
        return cause
    return HostError(
        f"{data.path}: the host cannot start ({cause.strerror or cause}); "
        "see pynchy doctor, or choose another folder with --data-dir"
    )


class _Stopped(Exception):
    """Ends the background tasks."""


@asynccontextmanager
async def _background() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose tasks are cancelled when the context ends."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
            raise _Stopped  # noqa: TRY301 - the way to end a task group
    except* _Stopped:
        log.debug("host.stopped")
