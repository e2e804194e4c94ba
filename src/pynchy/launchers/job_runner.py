"""Run one command to its end, outlive the host, and write down how it ended.

Started as a program of its own (standard library only) with the path of a job file. It holds an
inherited lock for as long as it or the command lives, ends the command at its cap or when
`<job>.stop` appears (term, then kill), and leaves `<job>.result` behind, so that a host which died
meanwhile can find out. Whatever the command started has ended before that, in whatever process
group it is, unless the job says that a command which ends well may leave something behind; and
so has what `after` ends. What all of it prints comes through a pipe: the log never passes its
limit. A command whose supervisor is killed is asked to end by the kernel; the host ends the rest.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_POLL_SECONDS, _REST_POLL_SECONDS = 0.2, 0.05
MAX_LOG_BYTES = 64 * 1024 * 1024
_CUT = b"(what was printed before this was too long to be kept)\n"
STOPPED = "stopped"
# What cannot be killed, such as a program of another user, is left alone after this.
_KILL_SECONDS = 5.0
_AFTER_SECONDS = 30.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CHUNK, _KEPT_OPEN = 64 * 1024, 128
_DISK_POLL_SECONDS, _DISK_REST_SHARE = 1.0, 20.0
# What a file takes even if it is empty, more or less.
_FILE_BYTES = 512


@dataclass(frozen=True, slots=True)
class Job:
    """What the job file says. The environment is not in it: it is inherited, and may be secret."""

    argv: list[str]
    cwd: str | None
    timeout: float
    term_grace: float
    session_id: str
    lock_fd: int
    supervisor_fd: int
    log: str
    stop: str
    result: str
    may_leave: bool
    after: tuple[str, ...] = ()
    # Folders that may together grow by so many bytes.
    folders: tuple[str, ...] = ()
    disk: int = 0
    request_id: str = ""


def main(job_path: str) -> int:
    """Run the job and return 0 if its result was written."""
    job = Job(**json.loads(Path(job_path).read_bytes()))
    _become_reaper()
    output = Output(job.log)
    result = _run(job, output)
    clear_away(job.after)
    _write(Path(job.result), result)
    if job.may_leave and not output.is_over and os.fork() == 0:
        # Whoever was left behind may print for as long as it lives; the host waits for us alone.
        for fd in (job.lock_fd, job.supervisor_fd):
            os.close(fd)
        output.take_all()
    return 0


class Output:
    """What the command and all that it starts print, on its way from a pipe into the log."""

    def __init__(self, path: str) -> None:
        self.is_over = False
        self._pipe, self.inlet = os.pipe()
        self._log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._log).st_size
        self._child_ended, wake = os.pipe()
        for fd in (self._child_ended, wake):
            os.set_blocking(fd, False)
        # Without a handler, the end of a child would not be told.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def take(self, seconds: float | None) -> None:
        """Wait so long for something to be printed, or for the end of a child, and keep it."""
        wait = seconds if seconds is None else max(seconds, 0.0)
        sources = [self._child_ended] if self.is_over else [self._child_ended, self._pipe]
        ready, _, _ = select.select(sources, [], [], wait)
        if self._child_ended in ready:
            with suppress(BlockingIOError):
                os.read(self._child_ended, _CHUNK)
        if self._pipe in ready:
            self._keep(os.read(self._pipe, _CHUNK))

    def take_rest(self) -> None:
        """Keep what has been printed until now."""
        while not self.is_over and select.select([self._pipe], [], [], 0)[0]:
            self._keep(os.read(self._pipe, _CHUNK))

    def take_all(self) -> None:
        """Keep all that is printed, until nobody is left who could."""
        while not self.is_over:
            self.take(None)

    def _keep(self, data: bytes) -> None:
        if not data:
            self.is_over = True
            return
        # A full disk must not stop who prints.
        with suppress(OSError):
            if self._size + len(data) > MAX_LOG_BYTES:
                os.ftruncate(self._log, 0)
                self._size = os.write(self._log, _CUT)
            self._size += os.write(self._log, data)


class DiskWatch:
    """Notices when folders have grown by more than they may. `why` then says so."""

    def __init__(self, folders: Sequence[str], most: int) -> None:
        self.why: str | None = None
        self._folders = folders
        self._most = most

    def start(self) -> None:
        """Look again and again, in a thread: a large folder takes long."""
        if self._folders:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        before = None
        while self.why is None:
            began = time.monotonic()
            try:
                size = sum(map(_size_of, self._folders))
            except OverflowError:
                self.why = "ended: it has more deep folders than can be counted"
                return
            before = size if before is None else before
            if size - before > self._most:
                self.why = f"ended: it took more than {self._most // 1024**2} MiB of the disk"
            time.sleep(max(_DISK_POLL_SECONDS, (time.monotonic() - began) * _DISK_REST_SHARE))


def _size_of(folder: str) -> int:
    """Return what the folder takes on the disk. Raise OverflowError if too much lies too deep."""
    # By names alone: a path can be too long. What cannot be looked at takes nothing.
    total, waiting = 0, _opened(folder)
    while waiting:
        way = [(waiting.pop(), [os.curdir])]
        while way:
            fd, names = way[-1]
            if not names:
                os.close(way.pop()[0])
            elif (below := _opened(names.pop(), fd)) and len(way) < _KEPT_OPEN:
                size, names = _size_in(below[0])
                total += size
                way.append((below[0], names))
            elif len(waiting) + len(below) > _KEPT_OPEN:
                raise OverflowError
            else:
                waiting += below
    return total


def _opened(name: str, folder: int | None = None) -> list[int]:
    """Return the descriptor of a folder, or nothing if it cannot be had."""
    with suppress(OSError):
        return [os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)]
    return []


def _size_in(folder: int) -> tuple[int, list[str]]:
    """Return what the entries of a folder take, and which of them are folders."""
    total, folders = 0, []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                total += entry.stat(follow_symlinks=False).st_blocks * 512 + _FILE_BYTES
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    return total, folders


def _run(job: Job, output: Output) -> dict[str, object]:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    supervisor = os.getpid()

    def end_with_supervisor() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != supervisor:
                os.kill(os.getpid(), signal.SIGTERM)

    try:
        process = subprocess.Popen(  # noqa: S603 - the command is the administrator's own
            job.argv,
            cwd=job.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output.inlet,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[job.lock_fd],
            preexec_fn=end_with_supervisor,  # noqa: PLW1509 - there is one thread
        )
    except OSError as exc:
        return {"exit_code": None, "error": f"could not start {job.argv[0]}: {exc.strerror}"}
    finally:
        os.close(output.inlet)  # the pipe ends when the last of the command lets go of it
    _forward_signals(process)
    _tell_that_it_runs()
    watch = DiskWatch(job.folders, job.disk)
    watch.start()
    why = _wait(process, job, output, watch)
    may_leave = why is None and job.may_leave and not process.returncode
    killed = not may_leave and _end(process, job.term_grace, output)
    output.take_rest()
    if why is None:
        return {"exit_code": process.returncode, "error": None}
    error = f"{why} (killed after {job.term_grace:g} s)" if killed else why
    return {"exit_code": process.returncode, "error": error, "stopped": why == STOPPED}


def clear_away(after: Sequence[str], env: dict[str, str] | None = None) -> None:
    """Run what ends the rest that is no process of ours, such as a container."""
    if after:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - the launcher's own
                after,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_AFTER_SECONDS,
                check=False,
            )


def _wait(
    process: subprocess.Popen[bytes], job: Job, output: Output, watch: DiskWatch
) -> str | None:
    """Return None when the command has ended by itself, or else why it must."""
    began = looked = time.monotonic()
    deadline = began + job.timeout
    while process.poll() is None:
        now = time.monotonic()
        if now >= looked + _POLL_SECONDS or now >= deadline:
            looked = now
            _reap_strays(process)
            # A file, not a signal: after a restart of the host a pid may be somebody else's.
            if os.path.exists(job.stop):  # noqa: PTH110 - many times a second
                return STOPPED
            if watch.why is not None:
                return watch.why
            if now >= deadline:
                return f"ended at its cap of {job.timeout:g} s"
        output.take(min(looked + _POLL_SECONDS, deadline) - now)
    return None


def _end(process: subprocess.Popen[bytes], grace: float, output: Output) -> bool:
    """Ask all that is left of the command to end. Return True if something had to be killed."""
    _signal_rest(process, signal.SIGTERM)
    if _is_gone(process, grace, output):
        return False
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        # Again and again: what is killed may have started something meanwhile.
        _signal_rest(process, signal.SIGKILL)
        if _is_gone(process, _POLL_SECONDS, output):
            break
    process.wait()
    return True


def _is_gone(process: subprocess.Popen[bytes], seconds: float, output: Output) -> bool:
    """Return True once nothing of the command is left, or False after so many seconds."""
    deadline = time.monotonic() + seconds
    while process.poll() is None or _rest(process):
        _reap_strays(process)
        if time.monotonic() >= deadline:
            return False
        output.take(_REST_POLL_SECONDS)
    _reap_strays(process)
    return True


def _signal_rest(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    for pid in _rest(process):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _rest(process: subprocess.Popen[bytes]) -> list[int]:
    """Return what lives of the command, as numbers for os.kill."""
    if sys.platform == "linux":
        return descendants(os.getpid())
    try:
        os.killpg(process.pid, 0)
    except OSError:
        return []
    return [-process.pid]


def descendants(ancestor: int) -> list[int]:
    """Return the living processes below this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and (found := state_and_parent(name)):
            children.setdefault(found[1], []).append(int(name))
    below = children.get(ancestor, [])
    for pid in below:
        below += children.get(pid, [])
    return [pid for pid in below if living_part(pid)]


def living_part(pid: int) -> str | None:
    """Return what /proc calls the process: a thread of it, if the first has ended before others."""
    if _lives(str(pid)):
        return str(pid)
    with suppress(OSError):
        threads = (f"{pid}/task/{name}" for name in os.listdir(f"/proc/{pid}/task"))
        return next(filter(_lives, threads), None)
    return None


def _lives(part: str) -> bool:
    return (found := state_and_parent(part)) is not None and found[0] not in "ZX"


def state_and_parent(pid: str) -> tuple[str, int] | None:
    """Return the letter of the process's or thread's state, and its parent; None if it is gone."""
    try:
        # The name of the program is in parentheses, and may have any character in it.
        stat = Path("/proc", pid, "stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent = stat.rpartition(") ")[2].split()[:2]
    return state, int(parent)


def _become_reaper() -> None:
    """Have what loses its parent become our child: so we find it whatever session it is in."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_strays(process: subprocess.Popen[bytes]) -> None:
    """Let go of what became our child and has ended; how the command ended stays to be read."""
    if sys.platform != "linux":
        return
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == process.pid:
                return
            os.waitpid(found.si_pid, 0)


def _tell_that_it_runs() -> None:
    """Let go of what the host listens to until the command runs or could not be started."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _forward_signals(process: subprocess.Popen[bytes]) -> None:
    def forward(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)


def _write(path: Path, result: dict[str, object]) -> None:
    tmp = path.with_name(f".{path.name}.tmp")
    # Nobody else may read it, whatever the umask, which is the command's own.
    with open(tmp, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    tmp.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
