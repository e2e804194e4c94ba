"""The host's parts between mailbox and channels, wired as the host wires them, without the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from pynchy.audit import AuditLog
from pynchy.bridge.answer import AnswerService
from pynchy.bridge.ask import AskHandler
from pynchy.bridge.cards import Cards
from pynchy.bridge.deliver import Delivery, DeliveryLimits, MailboxRoute
from pynchy.bridge.expire import Expiry
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.resume import LateDelivery, LateSettings
from pynchy.bridge.retention import Retention
from pynchy.bridge.workers import QuestionServices, QuestionWorkers
from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.model import GroupName
from pynchy.pending.base import QuestionStore
from pynchy.pending.files import FileStore
from pynchy.pending.index import PendingIndex, ShortIds
from pynchy.safe_folder import Folder
from pynchy.sources.base import MAILBOX, AnswerRoute
from pynchy.testing import FakeClock
from pynchy.tracking.control import SessionControl
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.table import FileSessions, SessionStore, SessionTable
from pynchy.tracking.tracker import SessionTracker


@dataclass(frozen=True, slots=True)
class Around:
    """What the parts stand on."""

    folder: Path
    clock: FakeClock
    settings: Settings
    channels: Mapping[str, Channel]
    late: Mapping[GroupName, LateSettings] = field(default_factory=dict)
    leases: Leases = field(default_factory=lambda: Leases(10**9))
    limits: DeliveryLimits = field(
        default_factory=lambda: DeliveryLimits(timedelta(0), timedelta(days=365))
    )
    store: QuestionStore | None = None
    sessions: SessionStore | None = None
    routes: Mapping[str, AnswerRoute] = field(default_factory=dict)
    host: str = ""
    ipc: Path | None = None


class Core:
    """Everything from the ask handler to the workers, on one data folder."""

    def __init__(self, around: Around) -> None:
        folder, clock, settings = around.folder, around.clock, around.settings
        retention, ipc = settings.retention, around.ipc or folder / "ipc"
        self.settings = settings
        self.audit = AuditLog(
            folder / "audit", max_bytes=retention.audit_size, max_files=retention.audit_files
        )
        self.audit.open()
        self.index = PendingIndex()
        self.store = around.store or FileStore(ipc)
        self.ledger = QuestionLedger(self.store, self.index, self.audit, clock.now, around.host)
        self.mailboxes = Mailboxes(ipc, lambda _: None)
        launchers = {group: late.launcher for group, late in around.late.items()}
        table = SessionTable(around.sessions or FileSessions(folder), retention.sessions)
        liveness = Liveness(self.mailboxes, around.leases, launchers)
        self.tracker = SessionTracker(table, self.index, self.audit, clock.now, liveness)
        self.ledger.subscribe(self.tracker)
        self.lost_answers = LostAnswers(self.tracker, self.index, self.store, self.mailboxes)
        late = LateDelivery(self.ledger, self.mailboxes, self.lost_answers, around.late, 4)
        route = MailboxRoute(self.ledger, self.mailboxes, liveness, late, around.limits)
        self.delivery = Delivery(self.ledger, {MAILBOX: route, **around.routes})
        self.retention = Retention(self.ledger, self.mailboxes, self.tracker, retention)
        self.expiry = Expiry(self.ledger, self.delivery, self.retention)
        self.cards = Cards(self.ledger, around.channels, 10)
        short_ids = ShortIds(Folder(folder), self.index.has_short_id)
        self.ask_handler = AskHandler(
            self.ledger, self.mailboxes, self.lost_answers, short_ids.make, settings
        )
        self.answers = AnswerService(self.ledger, around.channels, settings)
        self.control = SessionControl(self.lost_answers, late.halt, self.mailboxes, settings, {})

    async def start(self, tasks: Any) -> QuestionWorkers:
        """Take up what the last host left."""
        services = QuestionServices(self.cards, self.delivery, self.expiry)
        workers = QuestionWorkers(self.ledger, services, self.settings, tasks)
        self.ledger.subscribe(workers)
        loaded = await self.ledger.load()
        await self.tracker.load(tasks)
        workers.resume(loaded)
        tasks.create_task(self.ledger.follow())
        return workers
