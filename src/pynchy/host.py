"""The only place that wires: build a host from its settings, run it, stop it in order.

Start: lock the folder, load what was open, open the channels, finish what an earlier host left
undone, watch the mailboxes, answer HTTP. Stop: the other way round.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pynchy.aio import HostLoop, Rate, SteadyClock, cancelled_at_end, first_in
from pynchy.bridge.announce import ANNOUNCE_PREFIX
from pynchy.bridge.ask import PREFIX
from pynchy.channels.base import Channel
from pynchy.channels.loading import OpenChannels, make_channels
from pynchy.config import OpenCodeSourceSettings, Settings
from pynchy.core import Core, CoreContext
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.errors import ConfigError, HostError, PynchyError
from pynchy.http.api import make_api
from pynchy.http.auth import AuthMiddleware, Credentials
from pynchy.http.context import HttpContext, cookie_name, listen, make_link, names_of, url_of
from pynchy.http.hook_keys import HookKeys
from pynchy.http.hooks import TerminalPermissions
from pynchy.http.pages import InboxPages
from pynchy.http.sessions import SessionContext
from pynchy.http_connections import HttpServer
from pynchy.inbox.agents import LiveRunner
from pynchy.inbox.sign_in import SignIn
from pynchy.ipc.intake import Intake, Registry
from pynchy.ipc.watcher import Watcher
from pynchy.launchers.base import Launcher
from pynchy.launchers.kinds import LauncherContext, make_launcher
from pynchy.launchers.run_log import LogChunk, read_output
from pynchy.model import GroupName, SessionId
from pynchy.pending.files import FileStore
from pynchy.session import Session
from pynchy.sources.base import HELD_SOURCES, Source, SourceServices, let_go
from pynchy.sources.codex import CodexSource
from pynchy.sources.phux import PhuxSource
from pynchy.sources.running import RunningSources, keep_trying
from pynchy.tracking.control import SESSION_PREFIX
from pynchy.wire import DESK_ANSWER

log = logging.getLogger(__name__)

_OURS = "PYNCHY_"
_LEASE_THREADS = 2
# How soon it is noticed that the data folder may be another host's.
_GUARD_SECONDS = 0.5


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
    try:
        async with AsyncExitStack() as stack:
            try:
                data.make()
                stack.enter_context(data.locked())
                made = make_channels(settings, os.environ, data.path)
                host = Host(settings, data, {**made, **(extra_channels or {})}, origin)
                running = await stack.enter_async_context(host.running())
            except (OSError, ExceptionGroup) as exc:
                raise _why_not_started(exc, data) from exc
            yield running
    except ExceptionGroup as exc:
        if isinstance(cause := first_in(exc), HostError):
            raise cause from exc
        raise


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
        self._clock = SteadyClock()
        environ = without_secrets(settings)
        self._launchers = self._make_launchers(environ)
        self._lease_pool = ThreadPoolExecutor(_LEASE_THREADS, "leases")
        now = self._clock.now
        file = None if origin is None else origin.path
        context = CoreContext(data.path, settings, channels, now, self._launchers, environ, file)
        store = FileStore(data.ipc, data.is_ours)
        self._core = Core(replace(context, lease_pool=self._lease_pool, store=store))
        self._watcher: Watcher | None = None
        self._sources = RunningSources(self._make_sources(environ))
        self._open_channels = OpenChannels(
            channels, self._core.answers, settings.send_timeout.total_seconds()
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Running]:
        """Start everything, and stop it at the end."""
        core = self._core
        async with AsyncExitStack() as stack:
            core.audit.open()
            stack.callback(core.audit.close)
            stack.callback(self._lease_pool.shutdown, wait=False, cancel_futures=True)
            for launcher in self._launchers.values():
                stack.push_async_callback(launcher.close)
            tasks = await stack.enter_async_context(cancelled_at_end())
            for launcher in self._launchers.values():
                await launcher.adopt()
            # Before the channels: the first click may be on a card of an earlier host.
            workers = await core.load(tasks)
            await stack.enter_async_context(self._open_channels.opened())
            recovered = workers.resume()
            tasks.create_task(self._guard_folder(), name="lock")
            tasks.create_task(core.ledger.follow(), name="store")
            await asyncio.to_thread(core.mailboxes.finish_removals)
            self._watch(tasks)
            tasks.create_task(core.tracker.run(), name="sessions")
            tasks.create_task(core.expiry.run(), name="expiry")
            tasks.create_task(core.typed.run(core.ask_handler), name="terminals")
            tasks.create_task(core.retention.run(), name="retention")
            tasks.create_task(core.expiry.report_orphans(), name="orphans")
            self._let_go_of_sources(tasks)
            self._sources.start(core.ask_handler, tasks)
            context = await stack.enter_async_context(self._http(tasks))
            yield Running(context.url, recovered, lambda: _link(context))

    def _let_go_of_sources(self, tasks: asyncio.TaskGroup) -> None:
        """End what an earlier host was to ask for a source that is not set up any more."""
        core = self._core
        for name in HELD_SOURCES.keys() - self._sources.names:
            why = f"{HELD_SOURCES[name]} is not in the settings any more"
            work = partial(let_go, name, core.held[name], core.index, core.ask_handler, why)
            tasks.create_task(keep_trying(work, "source.not_let_go"), name=f"end {name}")

    async def _guard_folder(self) -> None:
        """Raise HostError when another host may take the folder for its own."""
        while True:
            await asyncio.sleep(_GUARD_SECONDS)
            if not self._data.is_ours():
                raise HostError(
                    f"{self._data.path}: host.lock was removed or the folder was moved, so that "
                    "another host may use it; this one stops. Start it again where the folder is"
                )

    def _watch(self, tasks: asyncio.TaskGroup) -> None:
        registry = Registry()
        registry.register_prefix(PREFIX, self._core.ask_handler.handle)
        registry.register_prefix(DESK_ANSWER, self._core.desk_answers.handle)
        registry.register_prefix(SESSION_PREFIX, self._core.control.handle)
        registry.register_prefix(ANNOUNCE_PREFIX, self._core.announcements.handle)
        rate = self._settings.requests_per_second
        burst = self._settings.request_burst
        intake = Intake(
            self._core.mailboxes, registry, self._core.ask_handler, tasks, lambda: Rate(rate, burst)
        )
        self._watcher = Watcher(self._data.ipc, intake)
        tasks.create_task(self._watcher.run(), name="watcher")

    @asynccontextmanager
    async def _http(self, tasks: asyncio.TaskGroup) -> AsyncIterator[HttpContext]:
        http = self._settings.http
        with listen(http) as sock:
            token = self._data.token()
            context = self._context(url_of(sock), cookie_name(token))
            await context.terminal.begin(self._core.index)
            tasks.create_task(context.terminal.run(), name="terminal")
            hooks = HookKeys(self._data).group_of
            credentials = Credentials(token, context.cookie, context.sign_in.browser, hooks)
            server = HttpServer(_guarded(context, credentials, names_of(sock, http)))
            serving = tasks.create_task(server.serve_on(sock), name="http")
            self._data.announce(context.url, self._origin)
            try:
                yield context
            finally:
                self._data.retract()
                self._core.audit.send_home()
                self._core.connected.release()
                server.should_exit = True
                await serving

    def _remove_group(self, group: GroupName) -> bool:
        """Remove what the group has, unless it has just asked something. Not for the loop."""
        if not self._core.mailboxes.of(group).remove():
            return False
        try:
            HookKeys(self._data).drop(group)
        except PynchyError as exc:  # a file that cannot be used lets nobody in
            log.warning("group.key_not_dropped", extra={"group": group, "why": str(exc)})
        return True

    def _context(self, url: str, cookie: str) -> HttpContext:
        web, now = self._settings.web, self._clock.now
        return HttpContext(
            url=url,
            cookie=cookie,
            settings=self._settings,
            ledger=self._core.ledger,
            answers=self._core.answers,
            delivery=self._core.delivery,
            expiry=self._core.expiry,
            history=self._core.store,
            audit=self._core.audit,
            rules=self._core.rules,
            sign_in=SignIn(
                self._data.folder, now, link_ttl=web.link_ttl, browser_ttl=web.sign_in_ttl
            ),
            problems=self.problems,
            warnings=self._sources.warnings,
            groups=self._core.mailboxes.groups,
            remove_group=self._remove_group,
            live_runners=self._live_runners,
            seen_agents=self._sources.agents,
            session_context=SessionContext(
                self._core.tracker,
                self._core.control,
                self._output,
                self._settings,
                self._core.index,
            ),
            terminal=TerminalPermissions(
                self._core.connected, self._core.ask_handler, self._data.folder, self._settings
            ),
        )

    async def _live_runners(self) -> list[LiveRunner]:
        found = []
        for group in await asyncio.to_thread(self._core.mailboxes.groups):
            try:
                live = await self._core.liveness.live_leases(group)
            except OSError as exc:
                log.warning("group.unreadable", extra={"group": group, "why": exc.strerror})
                continue
            found += [
                LiveRunner(group, lease, SessionId(said.session_id), said.agent, said.task)
                for lease, said in live
            ]
        return found

    async def _output(self, session: Session, after: int) -> LogChunk:
        return await asyncio.to_thread(read_output, self._data.path, session, after)

    async def problems(self) -> list[str]:
        """Say what is wrong just now, in words for a person."""
        core = self._core
        found = [core.audit.problem, await core.rules.look(), *self._open_channels.problems()]
        if isinstance(loop := asyncio.get_running_loop(), HostLoop):
            found.append(loop.problem)
        found += self._sources.problems()
        if self._watcher is not None:
            found += [self._watcher.problem, *self._watcher.troubled.values()]
        found += [*core.store.problems(), *core.leases.problems()]
        found.append(self._clock.problem())
        found += await asyncio.to_thread(self._disk_problems)
        return [problem for problem in found if problem]

    def _disk_problems(self) -> list[str | None]:
        some = {(p.group, p.source): p for p in self._core.index if p.delivered is None}
        found = [self._core.delivery.route(some[key]).problem(key[0]) for key in sorted(some)]
        return [*found, self._data.disk_problem()]

    def _make_sources(self, environ: Mapping[str, str]) -> list[Source]:
        tables, core = self._settings.sources, self._core
        made: list[Source] = []
        if tables.codex is not None:
            made.append(CodexSource(tables.codex, core.rejoined, core.index, environ))
        if tables.opencode is not None:
            made.append(_opencode(tables.opencode, core, self._clock.now))
        if tables.phux is not None:
            made.append(PhuxSource(tables.phux, core.phux, core.index, core.ledger.find, environ))
        return made

    def _make_launchers(self, environ: Mapping[str, str]) -> dict[GroupName, Launcher]:
        own = None if self._origin is None else self._origin.path
        launchers: dict[GroupName, Launcher] = {}
        every = self._settings.launchers()
        for name, group in self._settings.groups.items():
            if group.launcher is not None:
                context = LauncherContext(self._data.path, GroupName(name), own, every)
                launchers[GroupName(name)] = make_launcher(context, group, environ)
        return launchers


def _guarded(context: HttpContext, credentials: Credentials, hosts: list[str]) -> AuthMiddleware:
    inbox = InboxPages(context)
    return AuthMiddleware(make_api(context, inbox), inbox.ask_to_sign_in, credentials, hosts)


async def _link(context: HttpContext) -> str:
    url, _ = await make_link(context)
    return url


def _opencode(table: OpenCodeSourceSettings, core: Core, now: Callable[[], datetime]) -> Source:
    try:
        from pynchy.sources.opencode.source import OpenCodeSource  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ConfigError(
            f"[sources.opencode] needs libraries that are not installed ({exc.name}): "
            "pip install '.[opencode]'"
        ) from exc
    services = SourceServices(core.rejoined, core.index, core.audit.publish, now)
    return OpenCodeSource(table, os.environ, services)


def without_secrets(settings: Settings) -> dict[str, str]:
    """Return our environment as agents may see it: without the channels' secrets and what is ours.

    An agent that knew the host's data folder would, as the host's own user, speak as a person.
    """
    secrets = {name for channel in settings.channels.values() for name in channel.secrets()}
    secrets |= set(settings.sources.secrets())
    return {
        name: value
        for name, value in os.environ.items()
        if name not in secrets and not name.startswith(_OURS)
    }


def _why_not_started(exc: Exception, data: DataFolder) -> Exception:
    """Return what to tell of a start that failed, taken out of the task group's exception."""
    cause = first_in(exc)
    if not isinstance(cause, OSError):
        return cause
    return HostError(
        f"{data.path}: the host cannot start ({cause.strerror or cause}); "
        "see pynchy doctor, or choose another folder with --data-dir"
    )
