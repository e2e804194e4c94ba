"""The first launcher: a configured command for each group, never through a shell.

Each attempt is a job in `<data>/runners/<group>/`. The supervisor that runs it holds the job's
lock, so a host that was restarted sees which runners live, and reads from the job's result
how the others ended.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.folder import Folder
from pynchy.model import GroupName, SessionId
from pynchy.sessions import supervisor
from pynchy.sessions.base import Resumption, Runner, RunnerEnd

log = logging.getLogger(__name__)

_ADOPTED_LOOK_SECONDS = 0.5
_CAP = 1024 * 1024
_KEEP_SECONDS = 30 * 86_400.0


class CommandLauncher:
    """Runs the group's command for each resumption."""

    def __init__(
        self, data: Path, group: GroupName, settings: LauncherSettings, environ: Mapping[str, str]
    ) -> None:
        data.joinpath("runners").mkdir(mode=0o700, exist_ok=True)
        self._folder = Folder(data, "runners", group)
        self._settings = settings
        self._environ = environ
        self._live: dict[str, tuple[SessionId, asyncio.Task[RunnerEnd]]] = {}

    async def adopt(self) -> None:
        """See Launcher."""
        if not self._folder.exists():
            return
        await asyncio.to_thread(self._folder.clear_temporary)
        for name in await asyncio.to_thread(self._folder.names):
            stem = name.removesuffix(".job")
            if name != stem and not self._folder.has(f"{stem}.result"):
                session_id = await asyncio.to_thread(self._session_of, name)
                self._follow(stem, session_id, self._adopted_end(stem))

    async def start(self, resumption: Resumption) -> Runner:
        """See Launcher."""
        stem = _stem(resumption)
        try:
            # Shielded: a start that has begun is finished, or its lock would be let go too soon.
            process = await asyncio.shield(asyncio.to_thread(self._spawn, stem, resumption))
        except (OSError, ValueError) as exc:
            raise DeliveryFailed(f"the runner could not be started: {exc}") from exc
        return self._follow(stem, resumption.session_id, self._child_end(stem, process))

    async def find(self, resumption: Resumption) -> Runner | None:
        """See Launcher."""
        stem = _stem(resumption)
        if stem in self._live:
            return _Following(self._live[stem][1])
        if not self._folder.exists() or not self._folder.has(f"{stem}.job"):
            return None
        return self._follow(stem, resumption.session_id, self._adopted_end(stem))

    def is_live(self, group: GroupName, session_id: SessionId) -> bool:
        """See Launcher."""
        del group
        return any(session_id == session for session, _ in self._live.values())

    async def close(self) -> None:
        """See Launcher."""
        following = [task for _, task in self._live.values()]
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)

    def _follow(
        self, stem: str, session_id: SessionId, end: Coroutine[None, None, RunnerEnd]
    ) -> Runner:
        task: asyncio.Task[RunnerEnd] = asyncio.ensure_future(end)
        self._live[stem] = (session_id, task)
        task.add_done_callback(lambda _: self._live.pop(stem, None))
        return _Following(task)

    def _spawn(self, stem: str, resumption: Resumption) -> subprocess.Popen[bytes]:
        """Start the supervisor, which holds the job's lock from its first moment."""
        self._folder.make()
        self._forget_old()
        lock_fd = self._take_lock(stem)
        try:
            # A retry counts its attempts anew; an old result must not pass for its own.
            self._folder.remove(f"{stem}.result")
            self._folder.replace(f"{stem}.job", self._job(stem, resumption, lock_fd))
            return self._start_supervisor(stem, lock_fd, resumption)
        finally:
            os.close(lock_fd)

    def _forget_old(self) -> None:
        """Remove what is left of runners that ended long ago."""
        limit = time.time() - _KEEP_SECONDS
        for name in self._folder.names():
            stem = name.rpartition(".")[0]
            if self._folder.stat(name).st_mtime < limit and not self._is_running(stem):
                self._folder.remove(name)

    def _start_supervisor(
        self, stem: str, lock_fd: int, resumption: Resumption
    ) -> subprocess.Popen[bytes]:
        job = str(self._folder.path / f"{stem}.job")
        # Not asyncio's subprocess: closing its transport would kill a runner that is to go on.
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", supervisor.__file__, job],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lock_fd],
            env=self._env(resumption),
        )

    def _take_lock(self, stem: str) -> int:
        path = self._folder.path / f"{stem}.lock"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    def _env(self, resumption: Resumption) -> dict[str, str]:
        return {
            **self._environ,
            **self._settings.env,
            "PYNCHY_IPC_DIR": str(resumption.ipc_dir),
            "PYNCHY_SESSION_ID": resumption.session_id,
        }

    def _job(self, stem: str, resumption: Resumption, lock_fd: int) -> bytes:
        fill = {
            "initial": str(resumption.initial),
            "session_id": resumption.session_id,
            "request_id": resumption.request_id,
            "group": resumption.group,
            "ipc_dir": str(resumption.ipc_dir),
        }
        return json.dumps(
            {
                "argv": self._settings.argv(fill),
                "cwd": str(self._settings.cwd) if self._settings.cwd else None,
                "timeout": self._settings.timeout.total_seconds(),
                "term_grace": self._settings.term_grace.total_seconds(),
                "session_id": resumption.session_id,
                "lock_fd": lock_fd,
                "log": str(self._folder.path / f"{stem}.log"),
                "result": str(self._folder.path / f"{stem}.result"),
            }
        ).encode()

    async def _child_end(self, stem: str, process: subprocess.Popen[bytes]) -> RunnerEnd:
        await _end_of(process)
        return await asyncio.to_thread(self._read_end, stem)

    async def _adopted_end(self, stem: str) -> RunnerEnd:
        while await asyncio.to_thread(self._is_running, stem):  # noqa: ASYNC110 - see below
            # Another host's child: there is no event to wait for, only its lock.
            await asyncio.sleep(_ADOPTED_LOOK_SECONDS)
        return await asyncio.to_thread(self._read_end, stem)

    def _is_running(self, stem: str) -> bool:
        # A process that the command left behind may hold the lock longer than the command lived.
        return not self._folder.has(f"{stem}.result") and self._is_locked(stem)

    def _is_locked(self, stem: str) -> bool:
        try:
            fd = self._folder.open_file(f"{stem}.lock")
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def _read_end(self, stem: str) -> RunnerEnd:
        try:
            result = json.loads(self._folder.read(f"{stem}.result", _CAP))
        except (OSError, ValueError):
            return RunnerEnd("the runner vanished without a result")
        if result["error"]:
            return RunnerEnd(f"{result['error']}{self._last_words(stem)}")
        if result["exit_code"]:
            return RunnerEnd(f"exit code {result['exit_code']}{self._last_words(stem)}")
        return RunnerEnd()

    def _last_words(self, stem: str) -> str:
        """Say where the runner's own output is, if there is any."""
        path = self._folder.path / f"{stem}.log"
        with suppress(OSError):
            return f"; its output is in {path}" if path.stat().st_size else ""
        return ""

    def _session_of(self, name: str) -> SessionId:
        try:
            return SessionId(str(json.loads(self._folder.read(name, _CAP))["session_id"]))
        except (OSError, ValueError, KeyError):
            return SessionId("")


@dataclass(frozen=True, slots=True)
class _Following:
    """A runner as the task that waits for its end."""

    task: asyncio.Task[RunnerEnd]

    async def ended(self) -> RunnerEnd:
        """See Runner."""
        return await asyncio.shield(self.task)


async def _end_of(process: subprocess.Popen[bytes]) -> None:
    """Return when the process has ended; a thread of its own waits for that."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wait() -> None:
        process.wait()
        with suppress(RuntimeError):  # the host has stopped meanwhile
            loop.call_soon_threadsafe(ended.set)

    Thread(target=wait, daemon=True, name=f"runner {process.pid}").start()
    await ended.wait()


def _stem(resumption: Resumption) -> str:
    return f"{resumption.request_id}.{resumption.attempt}"
