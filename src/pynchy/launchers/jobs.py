"""Runners below a supervisor that outlives the host: what every local launcher is made of.

Each attempt is a job in `<data>/runners/<group>/`. The supervisor that runs it holds the job's
lock, so a host that was restarted sees which runners live, and reads from the job's result
how the others ended. What a killed supervisor has left is ended before its runner counts as ended.
A session never has two.
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
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, PollSelector
from typing import Any, TypeVar

from pynchy.aio import in_own_thread
from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers import job_runner
from pynchy.launchers.base import (
    EndedRunner,
    FollowedRunner,
    Launch,
    Runner,
    RunnerEnd,
    too_many_runners,
)
from pynchy.launchers.leftovers import end_leftovers, mark
from pynchy.model import GroupName, RequestId, SessionId
from pynchy.safe_folder import Folder, UnsafeFile

log = logging.getLogger(__name__)
T = TypeVar("T")

_ADOPTED_POLL_SECONDS = 0.5
_CAP = 1024 * 1024
# More than a supervisor takes to start; one that hangs is looked after like any other.
_WORD_SECONDS = 10.0
_KEEP_SECONDS = 30 * 86_400.0
MAX_BYTES = 1024**3
_VANISHED = "the runner vanished without a result"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Program:
    """What a launch starts, never through a shell, and what is run when that has ended.

    `folders` are those whose growth is limited.
    """

    argv: list[str]
    cwd: str | None
    env: dict[str, str]
    after: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class JobLauncher(ABC):
    """Runs a program for each launch; what program, the kinds of launcher say.

    Where a program `may_leave` something behind, what it started lives on when it ends well.
    """

    may_leave = False

    def __init__(self, data: Path, group: GroupName, settings: LauncherSettings) -> None:
        data.joinpath("runners").mkdir(mode=0o700, exist_ok=True)
        self._folder = Folder(data, "runners", group)
        self._settings = settings
        self._environ: Mapping[str, str] = os.environ
        self._live: dict[str, tuple[SessionId, FollowedRunner]] = {}
        self._starting: dict[SessionId, asyncio.Task[Runner]] = {}

    @abstractmethod
    def program(self, launch: Launch) -> Program:
        """Return what to start for the launch."""

    def check(self, launch: Launch) -> None:  # noqa: B027 - most have nothing to look for
        """Raise DeliveryFailed if something is missing that the launch needs."""

    def clear_way(self, launch: Launch) -> None:  # noqa: B027 - most have nothing to clear
        """End what an earlier runner of the session has left that is no process of ours."""

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

    async def start(self, launch: Launch) -> Runner:
        """See Launcher."""
        session_id = launch.session_id
        if session_id in self._starting or self.runner_on(launch.group, session_id):
            raise DeliveryFailed("a runner works on this session already")
        if len(self.running(launch.group)) >= self._settings.max_runners:
            raise DeliveryFailed(too_many_runners(self._settings.max_runners))
        starting = asyncio.ensure_future(self._start(launch))
        self._starting[session_id] = starting
        starting.add_done_callback(lambda _: self._starting.pop(session_id))
        starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded: a start that has begun is finished, and its runner followed.
        return await asyncio.shield(starting)

    async def _start(self, launch: Launch) -> Runner:
        stem = launch.stem
        try:
            process = await in_own_thread(lambda: self._spawn(launch), f"start {stem}")
        except (OSError, ValueError, UnsafeFile) as exc:
            raise DeliveryFailed(f"the runner could not be started: {exc}") from exc
        # Before anything else can fail: from here on a runner may be at work.
        runner = self._follow(stem, launch.session_id, self._child_end(stem, process))
        if error := await self._why_not_started(stem, process):
            await runner.ended()
            raise DeliveryFailed(error)
        return runner

    async def find(self, stem: str, request_id: RequestId | None = None) -> Runner | None:
        """See Launcher."""
        if request_id and not await asyncio.to_thread(self._is_for, stem, request_id):
            return None
        if stem in self._live:
            return self._live[stem][1]
        if not self._folder.exists() or not self._folder.has(f"{stem}.job"):
            return None
        if self._folder.has(f"{stem}.result"):
            return EndedRunner(await asyncio.to_thread(self._read_end, stem))
        session_id = await asyncio.to_thread(self._session_of, f"{stem}.job")
        return self._follow(stem, session_id, self._adopted_end(stem))

    def runner_on(self, group: GroupName, session_id: SessionId) -> Runner | None:
        """See Launcher."""
        del group
        return next((r for session, r in self._live.values() if session == session_id), None)

    def running(self, group: GroupName) -> frozenset[SessionId]:
        """See Launcher."""
        del group
        return frozenset(session for session, _ in self._live.values()) | self._starting.keys()

    async def close(self) -> None:
        """See Launcher."""
        following = [runner.task for _, runner in self._live.values()]
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)

    def _follow(
        self, stem: str, session_id: SessionId, end: Coroutine[None, None, RunnerEnd]
    ) -> Runner:
        task: asyncio.Task[RunnerEnd] = asyncio.ensure_future(end)
        runner = FollowedRunner(task, lambda: self._folder.replace(f"{stem}.stop", b""))
        self._live[stem] = (session_id, runner)
        task.add_done_callback(lambda _: self._live.pop(stem, None))
        return runner

    def _spawn(self, launch: Launch) -> subprocess.Popen[bytes]:
        """Start the supervisor, which holds the job's lock from its first moment."""
        stem = launch.stem
        self.check(launch)
        program = self.program(launch)
        self._folder.make()
        self._forget_old()
        with ExitStack() as stack:
            lock_fd, supervisor_fd = (
                self._lock(stack, f"{stem}.{name}") for name in ("lock", "supervisor")
            )
            if not self._is_for(stem, launch.request_id):
                raise DeliveryFailed(f"another runner was started as {stem}")
            # A retry counts from one again; what an old attempt left must not pass for its own.
            self._folder.remove(f"{stem}.result")
            self._folder.remove(f"{stem}.stop")
            self.clear_way(launch)
            fds = {"lock_fd": lock_fd, "supervisor_fd": supervisor_fd}
            self._folder.replace(f"{stem}.job", self._job(launch, program, fds))
            return self._start_supervisor(stem, [*fds.values()], program.env)

    def _lock(self, stack: ExitStack, name: str) -> int:
        """Take a lock, for us until the stack is closed, and for who inherits it."""
        fd = os.open(self._folder.path / name, _LOCK_FLAGS, 0o600)
        stack.callback(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    async def _why_not_started(self, stem: str, process: subprocess.Popen[bytes]) -> str | None:
        """Wait for the supervisor's word. Return why the program could not be started, if so.

        Where that cannot be found out, it is taken to run: its end will tell.
        """
        try:
            await in_own_thread(lambda: _hear(process), f"word of {stem}")
            result = json.loads(self._folder.read(f"{stem}.result", _CAP))
        except (OSError, ValueError, UnsafeFile):
            return None
        finally:
            if process.stdout is not None:
                process.stdout.close()
        if result["error"] is None or result["exit_code"] is not None:
            return None
        return str(result["error"])

    def _forget_old(self) -> None:
        """Remove what is left of runners that ended long ago, and of more if that is too much."""
        limit, kept = time.time() - _KEEP_SECONDS, 0
        files = [(self._folder.stat(name), name) for name in self._folder.names()]
        for info, name in sorted(files, key=lambda file: file[0].st_mtime, reverse=True):
            kept += info.st_size
            is_old = info.st_mtime < limit or kept > MAX_BYTES
            if is_old and not self._is_running(name.rpartition(".")[0]):
                self._folder.remove(name)

    def _start_supervisor(
        self, stem: str, fds: list[int], env: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        job = self._folder.path / f"{stem}.job"
        # Not asyncio's subprocess: closing its transport would kill a runner that is to go on.
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", job_runner.__file__, str(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=fds,
            env={**env, **mark(job)},
        )

    def _job(self, launch: Launch, program: Program, fds: dict[str, int]) -> bytes:
        path = self._folder.path / launch.stem
        return json.dumps(
            {
                "argv": program.argv,
                "cwd": program.cwd,
                "timeout": self._settings.timeout.total_seconds(),
                "term_grace": self._settings.term_grace.total_seconds(),
                "session_id": launch.session_id,
                "request_id": launch.request_id or "",
                **fds,
                "log": f"{path}.log",
                "stop": f"{path}.stop",
                "result": f"{path}.result",
                "after": program.after,
                "folders": program.folders,
                "disk": self._settings.disk,
                "may_leave": self.may_leave,
            }
        ).encode()

    async def _child_end(self, stem: str, process: subprocess.Popen[bytes]) -> RunnerEnd:
        try:
            await in_own_thread(process.wait, f"runner {process.pid}")
        except OSError:  # no thread can be had
            while process.poll() is None:  # noqa: ASYNC110 - there is nobody who could tell
                await asyncio.sleep(_ADOPTED_POLL_SECONDS)
        return await self._end_for_good(stem)

    async def _adopted_end(self, stem: str) -> RunnerEnd:
        # Another host's child: there is no event to wait for, only its lock.
        await self._until_found_out(stem, lambda: not self._is_supervised(stem) or None)
        return await self._end_for_good(stem)

    async def _end_for_good(self, stem: str) -> RunnerEnd:
        """Return how the runner ended, once nothing is left of it."""
        return await self._until_found_out(stem, lambda: self._end_if_over(stem))

    async def _until_found_out(self, stem: str, look: Callable[[], T | None]) -> T:
        """Return what is found. Trouble with looking does not pass for the runner's end."""
        is_told = False
        while True:
            try:
                if (found := await asyncio.to_thread(look)) is not None:
                    return found
            except (OSError, RuntimeError, UnsafeFile) as exc:
                if not is_told:
                    log.warning("runner.not_looked_at", extra={"job": stem, "why": str(exc)})
                is_told = True
            await asyncio.sleep(_ADOPTED_POLL_SECONDS)

    def _end_if_over(self, stem: str) -> RunnerEnd | None:
        """End what is left of it, and return how it ended; None while something of it lives."""
        if not self._folder.has(f"{stem}.result"):
            self._end_what_is_left(stem)
        # What is not ours to end keeps the session taken for as long as it lives.
        return self._read_end(stem) if self._folder.has(f"{stem}.result") else None

    def _env(self) -> dict[str, str]:
        return dict(self._environ)

    def _end_what_is_left(self, stem: str) -> None:
        """End what the supervisor would have ended, and write the result in its place."""
        job, lock = (self._folder.path / f"{stem}.{name}" for name in ("job", "lock"))
        grace = self._settings.term_grace.total_seconds()
        count, left = end_leftovers(job, lock, grace)
        after = [str(word) for word in self._read_job(job.name).get("after", ())]
        job_runner.clear_away(after, self._env())
        if left or self._is_locked(stem):
            log.warning("runner.not_ended", extra={"job": stem, "pids": left})
            return
        log.warning("runner.supervisor_vanished", extra={"job": stem, "ended": count})
        why = f"{_VANISHED}; what was left of it was ended" if count else _VANISHED
        stopped = self._folder.has(f"{stem}.stop")
        why = f"{job_runner.STOPPED}; {why}" if stopped else why
        result = {"exit_code": None, "error": why, "stopped": stopped}
        self._folder.replace(f"{stem}.result", json.dumps(result).encode())

    def _is_running(self, stem: str) -> bool:
        # A process that the command left behind may hold the lock longer than the command lived.
        return not self._folder.has(f"{stem}.result") and self._is_locked(stem)

    def _is_supervised(self, stem: str) -> bool:
        """Return True while the supervisor itself lives, not only what it has started."""
        if not self._folder.has(f"{stem}.supervisor"):  # begun by an older version of us
            return self._is_running(stem)
        return not self._folder.has(f"{stem}.result") and self._is_locked(stem, "supervisor")

    def _is_locked(self, stem: str, kind: str = "lock") -> bool:
        try:
            fd = self._folder.open_file(f"{stem}.{kind}")
        except FileNotFoundError:
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
        except (FileNotFoundError, ValueError):
            return RunnerEnd(_VANISHED)
        stopped = bool(result.get("stopped"))
        if result["error"]:
            words = "" if stopped else self._last_words(stem)
            return RunnerEnd(f"{result['error']}{words}", stopped=stopped)
        if result["exit_code"]:
            return RunnerEnd(f"exit code {result['exit_code']}{self._last_words(stem)}")
        return RunnerEnd()

    def _last_words(self, stem: str) -> str:
        """Say where the runner's own output is, if there is any."""
        path = self._folder.path / f"{stem}.log"
        with suppress(OSError):
            return f"; its output is in {path}" if path.stat().st_size else ""
        return ""

    def _is_for(self, stem: str, request_id: RequestId | None) -> bool:
        """False if the job was started for something else than the answer to that question."""
        job = self._read_job(f"{stem}.job")
        return not job or _question_of(stem, job) == (request_id or "")

    def _session_of(self, name: str) -> SessionId:
        return SessionId(str(self._read_job(name).get("session_id", "")))

    def _read_job(self, name: str) -> dict[str, Any]:
        try:
            job = json.loads(self._folder.read(name, _CAP))
        except (FileNotFoundError, ValueError):
            return {}
        return job if isinstance(job, dict) else {}


def _question_of(stem: str, job: dict[str, Any]) -> str:
    """Return the id of the question that the job answers; empty for a first prompt."""
    name = stem.rpartition(".")[0]
    # An older version did not say, and called first prompts by their sessions.
    return str(job.get("request_id", "" if job.get("session_id") == name else name))


def _hear(process: subprocess.Popen[bytes]) -> None:
    """Return when the supervisor has let go of its output, or has hung for too long."""
    if process.stdout is not None:
        # Not epoll: an agent of the same user can take all of its entries.
        with PollSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            selector.select(_WORD_SECONDS)
