"""The host's parts in one loop in which nothing happens by itself.

The real bridge, store files and mailbox; threads are inlined, time stands still until it is moved,
and the launcher's runners are objects. A restart builds everything again on the same folder.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.core import make_core, start

from pynchy import wire
from pynchy.bridge.deliver import DeliveryLimits
from pynchy.config import LauncherSettings, Settings
from pynchy.model import GroupName
from pynchy.testing import FakeChannel, FakeClock, FakeLauncher

RESUMABLE, KEPT = "resumable", "kept"
DENIED_IN_KEPT = "git push"
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
        launcher_settings = {
            "launcher": LauncherSettings(
                command=("unused",), max_runners=1000, attempts=2, backoff=timedelta(seconds=10)
            )
        }
        self.settings = Settings.model_validate(
            {
                "answer_ttl": ANSWER_TTL,
                "wait_timeout": WAIT,
                "lease_ttl": timedelta(days=10_000),
                "groups": {
                    RESUMABLE: {**launcher_settings, "approvals_needed": 2},
                    KEPT: {"permissions": {"deny": [f"Bash({DENIED_IN_KEPT} *)"]}},
                },
            }
        )

    async def start(self) -> None:
        self._tasks = Tasks()
        self.channel = FakeChannel("local")
        core = make_core(
            self.folder,
            self.clock,
            self.settings,
            {"local": self.channel},
            launchers={GroupName(RESUMABLE): self.launcher},
            limits=DeliveryLimits(timedelta(0), timedelta(days=365)),
        )
        self.audit, self.index, self.store = core.audit, core.index, core.store
        self.ledger, self.mailboxes, self.tracker = core.ledger, core.mailboxes, core.tracker
        self.delivery, self.late, self.expiry = core.delivery, core.late, core.expiry
        self.ask_handler, self.answers = core.ask_handler, core.answers
        self.rules = core.rules
        for group in (RESUMABLE, KEPT):
            self.mailboxes.of(GroupName(group)).prepare(wire.host_json(1800))
        await start(core, self._tasks)

    async def stop(self) -> None:
        """Stop in order: every task is cancelled, and finishes the step that it has begun."""
        await self._tasks.cancel()
        self.audit.close()

    async def crash(self) -> None:
        """Die: everything ends where it is, a step that has begun too, and memory is gone."""
        ended = asyncio.all_tasks() - {asyncio.current_task()}
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await self.stop()

    async def take(self, group: str, request_id: str, data: bytes) -> None:
        """Hand the question's file to the host, as intake does."""
        await self.ask_handler.handle(GroupName(group), wire.read_envelope(data, request_id))

    async def rest(self) -> None:
        """Let everything happen that follows from what was done."""
        self.wake()
        for _ in range(100):
            await asyncio.sleep(0)
        await self.tracker.look()

    def wake(self) -> None:
        for pending in self.index:
            self.ledger.notify(pending.key)


def memory_folder() -> str | None:
    """Return a folder in memory where there is one: this test is not about the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a made folder in it
