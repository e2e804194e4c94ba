"""The host's parts in one loop in which nothing happens by itself.

The real bridge, store files and mailbox; threads are inlined, time stands still until it is moved,
and the launcher's runners are objects. A restart builds everything anew on the same folder.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge.answer import AnswerService
from pynchy.bridge.ask import AskHandler
from pynchy.bridge.cards import Cards
from pynchy.bridge.deliver import Delivery, DeliveryLimits, LateSettings, SessionParts
from pynchy.bridge.expire import Expiry
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.workers import QuestionServices, QuestionWorkers
from pynchy.config import LauncherSettings, Settings
from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.model import GroupName
from pynchy.pending.files import FileStore
from pynchy.pending.index import PendingIndex
from pynchy.pending.short_ids import ShortIds
from pynchy.safe_folder import Folder
from pynchy.testing import FakeChannel, FakeClock, FakeLauncher
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.redelivery import LostAnswers
from pynchy.tracking.table import FileSessions, SessionTable
from pynchy.tracking.tracker import SessionTracker

RESUMABLE, KEPT = "resumable", "kept"
ANSWER_TTL = timedelta(days=7)
WAIT = timedelta(minutes=30)


class Inline(ThreadPoolExecutor):
    """An executor without threads: what is handed to it is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as exc:  # noqa: BLE001 - handed over, as an executor does
            future.set_exception(exc)
        return future


class Tasks(asyncio.TaskGroup):
    """Tasks of a host that lives longer than any one task, as a task group may not."""

    def __init__(self) -> None:
        super().__init__()
        self._all: set[asyncio.Task[Any]] = set()

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> Any:
        task = asyncio.get_running_loop().create_task(coro, name=name, context=context)
        self._all.add(task)
        task.add_done_callback(self._all.discard)
        return task

    async def cancel(self) -> None:
        for task in self._all:
            task.cancel()
        await asyncio.gather(*self._all, return_exceptions=True)


class World:
    """The host's parts on one data folder, rebuilt at every restart."""

    def __init__(self, folder: Path, launcher: FakeLauncher, clock: FakeClock) -> None:
        self.folder = folder
        self.launcher = launcher
        self.clock = clock
        launcher_settings = {"launcher": LauncherSettings(command=("unused",))}
        self.settings = Settings.model_validate(
            {
                "answer_ttl": ANSWER_TTL,
                "wait_timeout": WAIT,
                "groups": {"resumable": launcher_settings},
            }
        )

    async def start(self) -> None:
        self._tasks = Tasks()
        self.channel = FakeChannel("local")
        self.audit = AuditLog(self.folder / "audit", max_bytes=10**8, max_files=2)
        self.audit.open()
        self.index = PendingIndex()
        self.store = FileStore(self.folder / "ipc")
        self.ledger = QuestionLedger(self.store, self.index, self.audit, self.clock.now)
        self.mailboxes = Mailboxes(self.folder / "ipc", lambda _: None)
        for group in (RESUMABLE, KEPT):
            self.mailboxes.of(GroupName(group)).prepare(wire.host_json(1800))
        launchers = {GroupName(RESUMABLE): self.launcher}
        liveness = Liveness(self.mailboxes, Leases(10**9), launchers)
        self.tracker = SessionTracker(
            SessionTable(FileSessions(self.folder), 100), self.ledger, liveness
        )
        lost_answers = LostAnswers(self.tracker, self.ledger, self.store, self.mailboxes)
        self.delivery = Delivery(
            self.ledger,
            self.mailboxes,
            SessionParts(self.tracker, lost_answers),
            {GroupName("resumable"): LateSettings(self.launcher, 2, timedelta(seconds=10))},
            DeliveryLimits(timedelta(0), 4, timedelta(days=365)),
        )
        self.expiry = Expiry(self.ledger, self.store, self.mailboxes, self.tracker, self.settings)
        cards = Cards(self.ledger, {"local": self.channel}, 10)
        services = QuestionServices(cards, self.delivery, self.expiry)
        self.workers = QuestionWorkers(self.ledger, services, self.settings, self._tasks)
        short_ids = ShortIds(Folder(self.folder), self.index.has_short_id)
        self.ask_handler = AskHandler(
            self.ledger, self.store, self.mailboxes, short_ids, self.settings
        )
        self.answers = AnswerService(
            self.ledger, self.store, {"local": self.channel}, self.settings
        )
        self.ask_handler.on_confirm_activity = lost_answers.confirm_activity
        loaded = await self.workers.load(self.store)
        await self.tracker.load(self._tasks)
        self.workers.resume(loaded)

    async def stop(self) -> None:
        """Stop as a crash would: every task is cancelled where it is, memory is gone."""
        await self._tasks.cancel()
        self.audit.close()

    async def take(self, group: str, request_id: str, data: bytes) -> None:
        """Hand the question's file to the host, as intake does."""
        key = await self.ask_handler.handle(GroupName(group), wire.read_envelope(data, request_id))
        if key is not None:
            self.workers.asked(key)

    async def rest(self) -> None:
        """Let everything happen that follows from what was done."""
        self.wake()
        for _ in range(60):
            await asyncio.sleep(0)
        await self.tracker.look()

    def wake(self) -> None:
        for pending in self.index:
            self.ledger.notify(pending.key)


def memory_folder() -> str | None:
    """Return a folder in memory where there is one: this test is not about the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a made folder in it
