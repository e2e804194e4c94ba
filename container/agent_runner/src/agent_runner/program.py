"""The agent program as a process, and who of its session is there.

Threads instead of asyncio, which would take longer to load than all the rest: a resumed agent
starts only after we have.

The program's MCP server takes a lease when it starts, and creates the file that PYNCHY_CALLED names
when the model calls a tool: a call proves that the model has answered, and some programs print it
late.
"""

import fcntl
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from agent_runner.asking import mailbox as files
from agent_runner.asking import wire
from agent_runner.asking.lease import RENEW_SECONDS, Lease
from agent_runner.cores.base import Command
from agent_runner.errors import BadFile, ProgramMissing

_T = TypeVar("_T")

_MAX_LINE_BYTES = 64 * 1024 * 1024
# Less than what a host gives us (10 s unless set): whoever stops us may kill us after that.
_KILL_AFTER_SECONDS = 5.0
# What a dead program has left in its pipes; a process that it left behind may hold them open.
_DRAIN_SECONDS = 2.0

_MAX_BYTES = 64 * 1024
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Line:
    """A line that the program has printed, as its output or as an error."""

    text: str
    is_error: bool


class Program:
    """One run of the program. Raise ProgramMissing if it cannot be started."""

    def __init__(self, command: Command, environ: Mapping[str, str]) -> None:
        env = {**environ, **command.env}
        for name in command.unset:
            env.pop(name, None)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the core's own program
                command.argv,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as exc:
            what = f"{command.argv[0]} cannot be started: {exc.strerror}"
            raise ProgramMissing(what) from exc
        self._talk = command.talk
        self._sending = threading.Lock()
        self.is_told_to_end = False
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()

    def lines(self, prompt: str) -> Iterator[Line]:
        """Give the program its prompt, and yield what it prints until it has ended."""
        streams = (self._process.stdout, self._process.stderr)
        readers = [_start(self._read, stream) for stream in streams]
        _start(self._feed, prompt)
        _start(self._watch, readers)
        while (line := self._lines.get()) is not None:
            yield line

    def exit_code(self) -> int:
        """Return its exit code, negative for a signal, once it has ended."""
        return self._process.wait()

    def ask_to_end(self) -> None:
        """Ask it to end, and make it end if it does not."""
        self._process.terminate()
        insist = threading.Timer(_KILL_AFTER_SECONDS, self._process.kill)
        insist.daemon = True
        insist.start()

    def end_within(self, seconds: float) -> None:
        """Make it end if it has not done so by itself when so many seconds are over."""

        def insist() -> None:
            self.is_told_to_end = self._process.poll() is None
            self.ask_to_end()

        later = threading.Timer(seconds, insist)
        later.daemon = True
        later.start()

    def end(self) -> None:
        """Make it end, and return when it has. An ended program is left as it is."""
        if self._process.poll() is None:
            self.ask_to_end()
            self._process.wait()

    def send(self, text: str) -> bool:
        """Write to its stdin. False if it does not read any more."""
        stdin = self._process.stdin
        if stdin is None:
            return False
        with self._sending:
            try:
                stdin.write(text.encode())
                stdin.flush()
            except (OSError, ValueError):  # it has ended, or its stdin was closed
                return False
        return True

    def end_input(self) -> None:
        """Close its stdin: there is nothing more to come."""
        # A program that ends early does not read it all.
        with self._sending, suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _feed(self, prompt: str) -> None:
        if self._talk is not None:
            self.send(self._talk.begin(prompt))
        else:
            self.send(prompt)
            self.end_input()

    def _read(self, stream: IO[bytes] | None) -> None:
        while stream is not None and (line := stream.readline(_MAX_LINE_BYTES)):
            if text := line.decode(errors="replace").strip():
                self._lines.put(Line(text, is_error=stream is self._process.stderr))

    def _watch(self, readers: list[threading.Thread]) -> None:
        self._process.wait()
        for reader in readers:
            reader.join(_DRAIN_SECONDS)
        self._lines.put(None)


def _start(target: Callable[[_T], None], argument: _T) -> threading.Thread:
    thread = threading.Thread(target=target, args=(argument,), daemon=True)
    thread.start()
    return thread


@contextmanager
def kept_alive(tasks: Path, session_id: str, say: Callable[[str], None]) -> Iterator[str]:
    """Hold a lease of the session and yield its name.

    Where that fails it is said, and the work goes on.
    """
    lease, ended = Lease(tasks, session_id=session_id), threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS):
            try:
                lease.renew()
            except OSError as exc:
                say(f"the lease cannot be renewed: {exc}")

    try:
        lease.take()
    except OSError as exc:
        say(f"the session cannot be leased: {exc}")
    beating = threading.Thread(target=renew, daemon=True)
    beating.start()
    try:
        yield lease.name
    finally:
        ended.set()
        beating.join()
        with suppress(OSError):
            lease.release()


class Lookout:
    """Remembers whether the session's MCP server has ever been there while the program ran.

    `own` is the name of our own lease, which is no sign of a server.
    """

    def __init__(self, tasks: Path, session_id: str, own: str) -> None:
        # The host passes over such names, and clears away what a killed runner leaves.
        self.called = tasks / f"{files.TEMPORARY}{own}.called"
        self._tasks = tasks
        self._session_id = session_id
        self._own = own
        self._seen = False
        self._over = threading.Event()

    @contextmanager
    def looking(self, on_call: Callable[[], None]) -> Iterator[None]:
        """Keep looking, and say once, from another thread, that the model has called a tool."""
        # From the start: a server may be gone again by the time that we hear of its program.
        looking = threading.Thread(target=self._keep_looking, args=(on_call,), daemon=True)
        looking.start()
        try:
            yield
        finally:
            self._over.set()
            looking.join()
            with suppress(OSError):
                self.called.unlink(missing_ok=True)

    def has_seen_server(self) -> bool:
        """Say whether another process than this one has had a lease, or was called."""
        self._seen = self._seen or self.called.exists() or any(self._held())
        return self._seen

    def _keep_looking(self, on_call: Callable[[], None]) -> None:
        over = False
        while not self.called.exists():
            if over:
                return
            self.has_seen_server()
            # Once more after the end: a call may have been the last thing.
            over = self._over.wait(_POLL_SECONDS)
        on_call()

    def _held(self) -> Iterator[Path]:
        others = (path for path in self._tasks.glob("*.lease") if path.stem != self._own)
        return (path for path in others if self._is_ours(path))

    def _is_ours(self, path: Path) -> bool:
        try:
            fields = wire.decode(files.read_small(path, _MAX_BYTES))
            return fields.get("session_id") == self._session_id and _is_held(path, fields)
        except (OSError, BadFile):
            return False


def _is_held(path: Path, fields: dict[str, object]) -> bool:
    if not fields.get("boot_id"):
        return True  # without locks a lease is as good as its file
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
