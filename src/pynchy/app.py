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
from pynchy.bridge.answer import Answering
from pynchy.bridge.ask import PREFIX, Asking
from pynchy.bridge.cards import Cards
from pynchy.bridge.caretaker import Caretaker, Crew
from pynchy.bridge.deliver import Delivery, LateSettings, Patience, Sessions
from pynchy.bridge.desk import Desk
from pynchy.bridge.expire import Expiry
from pynchy.bridge.liveness import Liveness
from pynchy.bridge.reception import Reception
from pynchy.bridge.register import Register
from pynchy.bridge.restating import Restating
from pynchy.bridge.roll import Roll
from pynchy.bridge.starting import SESSION_PREFIX, Starting
from pynchy.channels.base import Channel
from pynchy.channels.factory import make_channels
from pynchy.clock import SteadyClock
from pynchy.config import Settings
from pynchy.datafolder import DataFolder
from pynchy.errors import ChannelUnavailable, HostError
from pynchy.http.api import make_api
from pynchy.http.guard import Guard, Pass, host_name
from pynchy.http.inbox import Inbox
from pynchy.http.office import Office, cookie_name, make_link
from pynchy.http.server import Server, listen, url_of
from pynchy.http.sessions import Floor
from pynchy.inbox.agents import LiveRunner
from pynchy.inbox.signin import SignIn
from pynchy.ipc.intake import Intake, Rate
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.ipc.registry import Registry
from pynchy.ipc.watcher import Watcher
from pynchy.model import GroupName, Session
from pynchy.origin import Origin
from pynchy.pending.files import FileStore
from pynchy.pending.index import PendingIndex
from pynchy.pending.short_ids import ShortIds
from pynchy.sessions.base import Launcher
from pynchy.sessions.factory import Place, make_launcher
from pynchy.sessions.files import FileSessions
from pynchy.sessions.output import Piece, read_output

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
    origin: Origin | None = None,
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
        origin: Origin | None = None,
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
        self._desk = Desk(self._store, self._index, self._audit, self._clock.now)
        self._mailboxes = Mailboxes(data.ipc, lambda group: settings.group(group).agent_uid)
        self._leases = Leases(settings.lease_ttl.total_seconds())
        self._launchers = self._make_launchers()
        self._roll = self._make_roll()
        self._restating = Restating(self._roll, self._desk, self._store, self._mailboxes)
        self._cards = Cards(
            self._desk,
            channels,
            settings.send_timeout.total_seconds(),
            settings.http.public_url,
        )
        self._delivery = Delivery(
            self._desk,
            self._mailboxes,
            Sessions(self._roll, self._restating),
            self._late(),
            Patience(settings.receipt_grace, settings.max_resumes, settings.answer_ttl),
        )
        self._expiry = Expiry(self._desk, self._store, self._mailboxes, self._roll, settings)
        self._asking = Asking(
            self._desk,
            self._store,
            self._mailboxes,
            ShortIds(data.folder, self._index.has_short_id),
            settings,
        )
        self._asking.on_sign_of_life = self._restating.sign_of_life
        self._starting = Starting(
            self._roll, self._restating, self._mailboxes, settings, without_secrets(settings)
        )
        self._starting.halt_resumes = self._delivery.halt
        self._answering = Answering(self._desk, self._store, channels, settings)
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
            crew = Crew(self._cards, self._delivery, self._expiry)
            caretaker = Caretaker(self._desk, crew, self._settings, tasks)
            for launcher in self._launchers.values():
                await launcher.adopt()
            # Before the channels: the first click may be on a card of an earlier host.
            loaded = await caretaker.load(self._store)
            await self._roll.load(tasks)
            await self._open_channels(stack)
            caretaker.resume(loaded)
            self._watch(tasks, caretaker)
            tasks.create_task(self._roll.run(), name="sessions")
            tasks.create_task(self._expiry.run(), name="expiry")
            tasks.create_task(self._expiry.report_orphans(), name="orphans")
            office = await stack.enter_async_context(self._http(tasks))
            yield Running(office.url, len(loaded), lambda: _link(office))

    def _watch(self, tasks: asyncio.TaskGroup, caretaker: Caretaker) -> None:
        reception = Reception(self._settings, self._mailboxes, self._asking, self._desk)
        registry = Registry()

        async def ask(group: GroupName, envelope: wire.Envelope) -> None:
            key = await self._asking.handle(group, envelope)
            if key is not None:
                caretaker.asked(key)

        registry.register_prefix(PREFIX, ask)
        registry.register_prefix(SESSION_PREFIX, self._starting.handle)
        rate = self._settings.requests_per_second
        burst = self._settings.request_burst
        intake = Intake(self._mailboxes, registry, reception, tasks, lambda: Rate(rate, burst))
        self._watcher = Watcher(self._data.ipc, intake)
        tasks.create_task(self._watcher.run(), name="watcher")

    async def _open_channels(self, stack: AsyncExitStack) -> None:
        for name, channel in self._channels.items():
            problem = await self._try(name, channel.open(self._answering))
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
            log.warning("a channel is down", extra={"channel": name, "why": str(exc)})
        except TimeoutError:
            log.warning("a channel does not come to an end", extra={"channel": name})
            return "it took too long"
        except Exception as exc:
            log.exception("a channel failed", extra={"channel": name})
            return type(exc).__name__
        return None

    @asynccontextmanager
    async def _http(self, tasks: asyncio.TaskGroup) -> AsyncIterator[Office]:
        http = self._settings.http
        with listen(http.host, http.port) as sock:
            token = self._data.token()
            office = self._office(url_of(sock), cookie_name(token))
            server = Server(_guarded(office, token, self._hosts(sock)))
            serving = tasks.create_task(_serve(server, sock), name="http")
            self._data.announce(office.url, self._origin)
            try:
                yield office
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

    def _office(self, url: str, cookie: str) -> Office:
        web = self._settings.web
        return Office(
            url=url,
            cookie=cookie,
            settings=self._settings,
            desk=self._desk,
            answering=self._answering,
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
            floor=Floor(self._roll, self._starting, self._output, self._settings),
        )

    def _live_runners(self) -> list[LiveRunner]:
        found = []
        for group in self._mailboxes.groups():
            try:
                live = self._leases.live(self._mailboxes.of(group))
            except OSError as exc:
                log.warning("a group cannot be seen", extra={"group": group, "why": exc.strerror})
                continue
            found += [LiveRunner(group, lease, session_id) for lease, session_id in live]
        return found

    async def _output(self, session: Session, after: int) -> Piece:
        return await asyncio.to_thread(read_output, self._data.path, session, after)

    def problems(self) -> list[str]:
        """Say what is wrong just now, in words for a person."""
        found = [self._audit.problem, *self._unopened.values()]
        if self._watcher is not None:
            found += [self._watcher.problem, *self._watcher.troubled.values()]
        found += [f"{name}: {text}" for name, c in self._channels.items() if (text := c.problem())]
        found += [f"a damaged record was left alone: {path}" for path in self._store.damaged]
        found += [self._group_problem(group) for group in sorted({p.group for p in self._index})]
        found += [self._clock.problem(), self._data.disk_problem()]
        return [problem for problem in found if problem]

    def _group_problem(self, group: GroupName) -> str | None:
        try:
            if self._mailboxes.of(group).exists():
                return None
        except OSError as exc:
            return f"group {group}: its folder cannot be looked at ({exc.strerror})"
        return f"group {group}: its folder is gone while it has open questions; see pynchy sweep"

    def _make_launchers(self) -> dict[GroupName, Launcher]:
        environ = without_secrets(self._settings)
        launchers: dict[GroupName, Launcher] = {}
        own = None if self._origin is None else self._origin.path
        for name, group in self._settings.groups.items():
            if group.launcher is not None:
                place = Place(self._data.path, GroupName(name), own)
                launchers[GroupName(name)] = make_launcher(place, group, environ)
        return launchers

    def _make_roll(self) -> Roll:
        liveness = Liveness(self._mailboxes, self._leases, self._launchers)
        most = self._settings.retention.sessions
        register = Register(FileSessions(self._data.path), most)
        register.on_forgotten = self._forget_initial
        return Roll(register, self._desk, liveness)

    def _forget_initial(self, session: Session) -> None:
        if session.launches and wire.usable_id(session.session_id):
            with suppress(OSError):
                self._mailboxes.of(session.group).forget_initial(session.session_id)

    def _late(self) -> dict[GroupName, LateSettings]:
        late = {}
        for name, launcher in self._launchers.items():
            settings = self._settings.group(name).launcher
            if settings is not None:
                late[name] = LateSettings(launcher, settings.attempts, settings.backoff)
        return late


def _guarded(office: Office, token: str, hosts: list[str]) -> Guard:
    inbox = Inbox(office)
    passes = Pass(token, office.cookie, office.sign_in.browser)
    return Guard(make_api(office, inbox), inbox.doorman, passes, hosts)


async def _link(office: Office) -> str:
    url, _ = await make_link(office)
    return url


async def _serve(server: Server, sock: socket.socket) -> None:
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
        log.debug("stopped")
