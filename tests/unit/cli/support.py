"""A real host in a thread, and the command line in front of it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from click.testing import Result
from tests.waiting import DEADLINE_SECONDS

from pynchy.client import HostClient
from pynchy.config import Settings
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.errors import UnknownQuestion
from pynchy.host import running_host

T = TypeVar("T")


def until(look: Callable[[], T | None]) -> T:
    """Return the first true thing that `look` finds; fail when the deadline is over."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return found


@contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[None]:
    """Do the work beside the test, and let its failure be the test's."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as exc:  # noqa: BLE001 - it is raised again below
            failures.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(timeout=DEADLINE_SECONDS)
    if failures:
        raise failures[0]


class Host:
    """A host that runs in a thread, and what an agent and a person would do with it."""

    def __init__(
        self, path: Path, settings: Settings, origin: SettingsSource | None = None
    ) -> None:
        self.data = DataFolder(path)
        self.settings = settings
        self._origin = origin
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._asked = 0

    @property
    def client(self) -> HostClient:
        return HostClient.of(self.data)

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(ready)))
        self._thread.start()
        assert ready.wait(DEADLINE_SECONDS)

    def stop(self) -> None:
        assert self._loop
        assert self._stop
        assert self._thread
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=DEADLINE_SECONDS)

    def ask(
        self,
        *questions: str | dict[str, Any],
        group: str = "web-team",
        request_id: str = "",
        **fields: Any,
    ) -> str:
        """Put a question into the mailbox and return its short id once the host has it."""
        self._asked += 1
        request_id = request_id or f"q{self._asked:03}"
        asked = [q if isinstance(q, dict) else {"question": q} for q in questions]
        body = {"v": 1, "type": "ask_user:ask", "request_id": request_id, "questions": asked}
        tasks = self.data.ipc / group / "tasks"
        tasks.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = tasks / f".{request_id}.tmp"
        temporary.write_text(json.dumps(body | fields))
        temporary.rename(tasks / f"{request_id}.json")
        return until(lambda: self.short_id(group, request_id))

    def reply(self, short_id: str, verb: str, by: str, **body: Any) -> dict[str, Any]:
        """Let somebody answer, decline or dismiss the question, and return it as it is then."""
        view = self.client.question(short_id)
        return self.client.reply(view["group"], view["request_id"], verb, {"by": by, **body})

    def take(self, view: dict[str, Any]) -> None:
        """Let the agent take the answer, so that the question is closed."""
        mailbox, request_id = self.data.ipc / view["group"], view["request_id"]
        until((mailbox / "responses" / f"{request_id}.json").exists)
        taken = {"v": 1, "by": "waiter", "at": "2026-11-16T09:30:00Z"}
        (mailbox / "tasks" / f"{request_id}.received").write_text(json.dumps(taken))
        until(lambda: self.client.question(view["short_id"])["state"] == "closed")

    def short_id(self, group: str, request_id: str) -> str | None:
        try:
            view = self.client.question_of(group, request_id)
        except UnknownQuestion:
            return None
        return None if view["state"] == "recorded" else str(view["short_id"])

    async def _run(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with running_host(self.settings, self.data, origin=self._origin):
            ready.set()
            await self._stop.wait()


Run = Callable[..., Result]


def start_pynchy(host: Host, *command: str, **streams: Any) -> subprocess.Popen[str]:
    """Start a command as a process of its own that Ctrl-C can reach."""
    return subprocess.Popen(
        [sys.executable, "-c", "from pynchy.cli import main; main()", *command],
        env={**os.environ, "PYNCHY_DATA_DIR": str(host.data.path), "PYTHONUNBUFFERED": "1"},
        text=True,
        # Whoever runs the tests in the background ignores SIGINT, and so would the child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        **streams,
    )
