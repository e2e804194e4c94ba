"""Real processes without the wait for imports: a process that has imported all forks the others.

What it forks is a process of its own, with its own arguments, environment, folder and pipes, that
runs a program's entry point to the end, and can be signalled and killed like any other. Only its
command line and first environment, as /proc shows them, are those of the process it came from, and
an end in order leaves its memory to the system as it is: it came with more than it needs.
"""

import asyncio
import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[1]
# What a host and the commands need, also what they import only when they run.
PRELOADED = (
    "tests.hurry",
    "pynchy.host",
    "pynchy.cli.serve",
    "pynchy.cli.answers",
    "pynchy.cli.questions",
    "pynchy.cli.sessions",
    "slack_bolt.adapter.socket_mode.aiohttp",
    "slack_bolt.async_app",
    "pynchy.channels.slack",
    "pynchy.sources.opencode.source",
    "uvicorn.lifespan.off",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
)
_LARGEST = 2**20


class Forked:
    """A forked process: as much of subprocess.Popen as the tests need."""

    def __init__(self, pid: int, forker: "Forker") -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forker = forker

    def poll(self) -> int | None:
        """Return how it ended, as Popen does, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._forker.status_of(self.pid, wait=False)
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = self._forker.status_of(self.pid, wait=True)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forker:
    """The process that forks, seen from the tests."""

    def __init__(self, *modules: str) -> None:
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forking", str(far.fileno()), *modules],
                cwd=ROOT,
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._socket = near
        self._lock = threading.Lock()
        self._ended: dict[int, int] = {}
        self._born: list[int] = []

    def start(
        self,
        entry: str,
        arguments: Sequence[object] = (),
        *,
        stdout: int = 1,
        stderr: int = 2,
    ) -> Forked:
        """Run the entry point (module:function) in a process that is like this one."""
        order = {
            "entry": entry,
            "arguments": [os.fspath(word) for word in arguments],  # type: ignore[call-overload]
            "environ": dict(os.environ),
            "folder": str(Path.cwd()),
            "umask": _umask(),
        }
        with self._lock, Path(os.devnull).open("rb") as nothing:
            given = [nothing.fileno(), stdout, stderr]
            socket.send_fds(self._socket, [json.dumps(order).encode()], given)
            while not self._born:
                self._hear()
            return Forked(self._born.pop(), self)

    def run(self, entry: str, arguments: Sequence[object]) -> tuple[int, bytes, bytes]:
        """Run the entry point to its end; return its exit code and what it printed."""
        printed: list[bytes] = [b"", b""]

        def read(n: int, pipe: IO[bytes]) -> None:
            with pipe:
                printed[n] = pipe.read()

        pipes = [os.pipe(), os.pipe()]
        readers = [
            threading.Thread(target=read, args=(n, os.fdopen(near, "rb")))
            for n, (near, _) in enumerate(pipes)
        ]
        process = self.start(entry, arguments, stdout=pipes[0][1], stderr=pipes[1][1])
        for _, far in pipes:
            os.close(far)
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        return process.wait(), printed[0], printed[1]

    def status_of(self, pid: int, *, wait: bool) -> int | None:
        while True:
            with self._lock:
                while pid not in self._ended and select.select([self._socket], [], [], 0)[0]:
                    self._hear()
                if pid in self._ended:
                    return self._ended.pop(pid)
            if not wait:
                return None
            select.select([self._socket], [], [], 0.05)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def _hear(self) -> None:
        heard = self._socket.recv(_LARGEST)
        assert heard, "the process that forks has ended"
        told = json.loads(heard)
        if "ended" in told:
            self._ended[told["ended"]] = told["status"]
        else:
            self._born.append(told["born"])


def _umask() -> int:
    os.umask(current := os.umask(0o077))
    return current


@cache
def forker() -> Forker:
    """Return the one of this test process, started when it is first needed."""
    made = Forker(*PRELOADED)
    atexit.register(made.close)
    return made


async def run_forked(entry: str, *arguments: object) -> tuple[int, str, str]:
    """Run the entry point to its end, beside all else; return its exit code and prints."""
    code, out, err = await asyncio.to_thread(forker().run, entry, arguments)
    return code, out.decode(), err.decode()


def _obey(orders: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each order, and tell of each end. Return, in a fork, what it is to do."""
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([orders, wake], [], [])
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            _tell_of_the_ended(orders)
        if orders not in ready:
            continue
        order, fds, _, _ = socket.recv_fds(orders, _LARGEST, 3)
        if not order:
            os._exit(0)
        if pid := os.fork():
            for fd in fds:
                os.close(fd)
            orders.send(json.dumps({"born": pid}).encode())
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for end in (wake, woken):
            os.close(end)
        return json.loads(order), fds


def _tell_of_the_ended(orders: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = os.waitstatus_to_exitcode(ended[1])
            with contextlib.suppress(BrokenPipeError):
                orders.send(json.dumps({"ended": ended[0], "status": status}).encode())


def _become(order: dict[str, Any], fds: list[int]) -> Callable[[], Any]:
    """Be the process that was ordered: all but its entry point, which is returned."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(number, "w", closefd=False)),
            encoding="utf-8",
            errors=errors,
            line_buffering=number == 2 or os.isatty(number),
        )
        for number, errors in ((1, "strict"), (2, "backslashreplace"))
    )
    os.chdir(order["folder"])
    os.umask(order["umask"])
    os.environ.clear()
    os.environ.update(order["environ"])
    sys.argv = [str(Path(sys.executable).with_name("pynchy")), *order["arguments"]]
    module, _, name = order["entry"].partition(":")
    entry: Callable[[], Any] = getattr(importlib.import_module(module), name)
    return entry


def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        for module in sys.argv[2:]:
            importlib.import_module(module)
        # What the collector never looks at, no fork has to copy.
        gc.collect()
        gc.freeze()
        order, fds = _obey(orders)
    # From here on this is the process that was ordered.
    entry = _become(order, fds)
    try:
        entry()
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise
        _end(ending.code or 0)
    _end(0)


def _end(code: int) -> NoReturn:
    """Do all that the end of a process does but to take its memory apart, which takes longest."""
    threading._shutdown()  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
