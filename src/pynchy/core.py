"""The core of a host: everything between mailboxes and channels, wired.

It has no lock, no HTTP and no clock of its own: a test builds one on a folder and moves its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge.announce import Announcements
from pynchy.bridge.answer import AnswerService, DeskAnswers
from pynchy.bridge.ask import AskHandler
from pynchy.bridge.cards import Cards
from pynchy.bridge.connected import ConnectedRoute, RejoinedRoute
from pynchy.bridge.deliver import Delivery, DeliveryLimits, MailboxRoute
from pynchy.bridge.expire import Expiry
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.permissions import PermissionRules
from pynchy.bridge.phux import PhuxRoute
from pynchy.bridge.resume import LateDelivery, LateSettings
from pynchy.bridge.retention import Retention
from pynchy.bridge.terminals import TerminalRoute
from pynchy.bridge.workers import QuestionServices, QuestionWorkers
from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.launchers.base import Launcher
from pynchy.model import GroupName
from pynchy.pending.base import QuestionStore
from pynchy.pending.files import FileStore
from pynchy.pending.index import PendingIndex, ShortIds
from pynchy.permissions.rulebook import RuleBook
from pynchy.safe_folder import Folder
from pynchy.session import Session
from pynchy.sources.base import CLAUDE_TERMINAL, HELD_SOURCES, MAILBOX, AnswerRoute, KeptRoute
from pynchy.tracking.control import SessionControl
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.table import FileSessions, SessionStore, SessionTable
from pynchy.tracking.tracker import SessionTracker


@dataclass(frozen=True, slots=True)
class CoreContext:
    """What the core stands on. A test puts its own in the place of some of it."""

    folder: Path
    settings: Settings
    channels: Mapping[str, Channel]
    now: Callable[[], datetime]
    launchers: Mapping[GroupName, Launcher] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    settings_file: Path | None = None
    host: str = ""
    store: QuestionStore | None = None
    sessions: SessionStore | None = None
    leases: Leases | None = None
    lease_pool: Executor | None = None
    limits: DeliveryLimits | None = None
    routes: Mapping[str, AnswerRoute] = field(default_factory=dict)


class Core:
    """The parts between mailboxes and channels, from the ask handler to the workers."""

    def __init__(self, context: CoreContext) -> None:
        settings, ipc = context.settings, context.folder / "ipc"
        retention = settings.retention
        self.settings = settings
        self.audit = AuditLog(
            context.folder / "audit",
            max_bytes=retention.audit_size,
            max_files=retention.audit_files,
        )
        own = context.settings_file
        self.rules = RuleBook(settings, self.audit, context.now, context.folder, own)
        self.index = PendingIndex()
        self.store = context.store or FileStore(ipc)
        self.ledger = QuestionLedger(self.store, self.index, self.audit, context.now, context.host)
        self.mailboxes = Mailboxes(ipc, lambda group: settings.group(group).agent_uid)
        self.leases = context.leases or Leases(settings.lease_ttl.total_seconds())
        sessions = context.sessions or FileSessions(context.folder)
        table = SessionTable(sessions, retention.sessions, self._forget_initial, self._is_group)
        self.liveness = Liveness(self.mailboxes, self.leases, context.launchers, context.lease_pool)
        self.tracker = SessionTracker(table, self.index, self.audit, context.now, self.liveness)
        self.ledger.subscribe(self.tracker)
        lost = LostAnswers(self.tracker, self.index, self.store, self.mailboxes)
        self.ledger.subscribe(lost)
        late = _late_settings(settings, context.launchers)
        self.late = LateDelivery(self.ledger, self.mailboxes, lost, late, settings.max_resumes)
        limits = context.limits or DeliveryLimits(settings.receipt_grace, settings.answer_ttl)
        route = MailboxRoute(self.ledger, self.mailboxes, lost, self.late, limits)
        permissions = PermissionRules(self.rules, settings, context.now, self.index)
        self.typed = TerminalRoute(self.ledger, self.mailboxes, lost, self.late, limits)
        self.connected = ConnectedRoute(self.ledger)
        self.rejoined = RejoinedRoute(self.ledger)
        self.phux = PhuxRoute(self.ledger)
        rejoined = dict.fromkeys(HELD_SOURCES, self.rejoined)
        held: dict[str, KeptRoute] = {**rejoined, wire.PHUX: self.phux}
        self.held = held
        terminals = {CLAUDE_TERMINAL: self.connected, **held}
        ours: dict[str, AnswerRoute] = {MAILBOX: route, wire.TERMINAL: self.typed, **terminals}
        routes = {**ours, **context.routes}
        self.delivery = Delivery(self.ledger, routes, permissions)
        self.retention = Retention(self.ledger, self.mailboxes, self.tracker, retention)
        self.expiry = Expiry(self.ledger, self.delivery, self.retention)
        timeout, url = settings.send_timeout.total_seconds(), settings.http.public_url
        self.cards = Cards(self.ledger, context.channels, timeout, url)
        make_short_id = ShortIds(Folder(context.folder), self.index.has_short_id).make
        self.ask_handler = AskHandler(
            self.ledger, lost, make_short_id, settings, permissions, self.typed
        )
        self.answers = AnswerService(
            self.ledger, context.channels, settings, permissions, self.mailboxes
        )
        self.announcements = Announcements(self.ledger, context.channels, settings)
        self.desk_answers = DeskAnswers(self.answers, settings)
        self.control = SessionControl(
            lost, self.late.halt, self.mailboxes, settings, context.environ
        )

    async def load(self, tasks: asyncio.TaskGroup) -> QuestionWorkers:
        """Take up what an earlier host left. Nothing is done about it yet."""
        services = QuestionServices(self.cards, self.delivery, self.expiry)
        workers = QuestionWorkers(self.ledger, services, self.settings, tasks)
        self.ledger.subscribe(workers)
        self.announcements.start(tasks)
        await self.ledger.load()
        await self.tracker.load(tasks)
        await self.rules.load()
        await self.ask_handler.load()
        return workers

    def _is_group(self, name: str) -> bool:
        return name in self.settings.groups or name in self.mailboxes.known()

    def _forget_initial(self, session: Session) -> None:
        if session.launches and wire.usable_id(session.session_id):
            with suppress(OSError):
                self.mailboxes.of(session.group).forget_initial(session.session_id)


def _late_settings(
    settings: Settings, launchers: Mapping[GroupName, Launcher]
) -> dict[GroupName, LateSettings]:
    late = {}
    for name, launcher in launchers.items():
        own = settings.group(name).launcher
        if own is not None:
            limits = (own.attempts, own.backoff, own.max_runners)
            late[name] = LateSettings(launcher, *limits, is_box=own.is_box)
    return late
