"""Watch over one box: look after its limits, and be the far end of its one way out.

    python -m pynchy.launchers.sandbox_monitor [--proxy HOST PORT] [--memory BYTES --tasks N] -- …

Stands between the supervisor and the program that makes the box, and dies with the supervisor.
A box that takes more than it may is ended as a whole: its first process is killed, and with it,
by the kernel, all others. In the command, `{filter}` becomes the descriptor of a filter for system
calls. The way out begins at `{lines}`, the descriptors of sockets that carry the connections of the
box, or in `{sockets}`, a folder with the socket `proxy`.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent_runner.lines import make_lines, receive_from
from agent_runner.relay import relay
from pynchy.launchers import syscall_filter
from pynchy.launchers.job_runner import descendants, living_part, state_and_parent

FILTER = "{filter}"
LINES = "{lines}"
SOCKETS = "{sockets}"
SOCKET = "proxy"
OVER_LIMIT = 137
NOT_GUARDED = 1
_POLL_SECONDS = 0.25
# More than a box takes to be made.
_BEGINNING_SECONDS = 2.0
_CONNECT_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1
_NEW_MOUNTS = 0x0002_0000  # CLONE_NEWNS
_READ_ONLY, _NO_SUID, _NO_EXEC, _REMOUNT, _BIND, _RECURSIVE, _SLAVE = (
    *(1, 1 << 1, 1 << 3, 1 << 5, 1 << 12, 1 << 14),
    1 << 19,
)
# What `bwrap --dev` shows of the machine itself.
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What a box takes. Memory is what is its own: neither files nor what was swapped out."""

    memory: int = 0
    tasks: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.memory + other.memory, self.tasks + other.tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in its box to its end. Return its exit code."""
    options = _parser().parse_args(arguments)
    _die_with_parent()
    asked: list[int] = []
    # Who is asked to end is the agent, by the supervisor; we stay for as long as it lives. Nothing
    # with a lock, such as an Event: a request may come while another one is being noted.
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    _give_up_what_the_host_has()
    if options.guard_devices and (why := _guard_devices()):
        print(f"pynchy: {why}", flush=True)  # noqa: T201 - the runner's log
        return NOT_GUARDED
    with ExitStack() as stack:
        command, fds = _filled_in(options, stack)
        process = _start(command, fds, deaf=options.deaf)
        began = time.monotonic()
        while True:
            try:
                code = process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                _wake_first_in_box(process.pid)
                if why := _too_much(options.memory, options.tasks):
                    return _end(process, why)
                if asked and time.monotonic() - began < _BEGINNING_SECONDS:
                    _ask_again()
            else:
                return code if code >= 0 else 128 - code


def _give_up_what_the_host_has() -> None:
    """Leave the host's groups, where that is allowed, and its keys."""
    if os.geteuid() == 0:
        os.setgroups([])
    syscall_filter.leave_session_keyring()


def _guard_devices() -> str | None:
    """Make the device files that a box shows read-only, as we and the box see them.

    Root is their owner, with or without capabilities, and could close them to everybody. bwrap can
    make them read-only only together with useless; but it leaves them as it finds them. Return
    why that cannot be done.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str | None, target: str, flags: int) -> None:
        encoded = None if source is None else source.encode()
        _check(libc.mount(encoded, target.encode(), None, ctypes.c_ulong(flags), None))

    try:
        _check(libc.unshare(_NEW_MOUNTS))
        # Nothing that we mount is to be seen outside.
        mount(None, "/", _RECURSIVE | _SLAVE)
        for path in filter(os.path.exists, DEVICES):
            mount(path, path, _BIND)
            mount(None, path, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_EXEC)
    except OSError as exc:
        return (
            f"the machine's device files, which are root's, cannot be guarded from the agent "
            f"({exc.strerror}): set agent_uid for the group, or do not run the host as root"
        )
    return None


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _filled_in(options: argparse.Namespace, stack: ExitStack) -> tuple[list[str], list[int]]:
    """Return the command with what it asks for in its place, and the descriptors that it has."""
    command: list[str] = options.command
    fds: list[int] = []

    def give(name: str, *given: int) -> None:
        fds.extend(given)
        # The first is the launcher's own; whatever follows may be an agent's word.
        command[command.index(name)] = ",".join(map(str, given))

    if FILTER in command:
        give(FILTER, stack.enter_context(_filter(options)))
    if options.proxy and LINES in command:
        give(LINES, *_lines(stack, *options.proxy))
    elif options.proxy:
        folder = stack.enter_context(_folder_with_socket(*options.proxy))
        command = [part.replace(SOCKETS, folder) for part in command]
    return command, fds


def _start(command: list[str], fds: list[int], *, deaf: bool) -> subprocess.Popen[bytes]:
    """Start what makes the box, with requests to end held back if it is to be deaf.

    bwrap that is asked to end would take the box with it before the agent could end in order. The
    first program in the box is no longer deaf.
    """
    if deaf:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        # The job's lock, which we have inherited, stays with us: who has a lock can let go of it.
        return subprocess.Popen(command, pass_fds=fds)  # noqa: S603 - the launcher's own
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _wake_first_in_box(maker: int) -> None:
    """Let the first process of the box go on if a program in it has traced it and left it stopped.

    It would notice nothing any more, not even that the agent has ended.
    """
    with suppress(OSError):
        children = Path(f"/proc/{maker}/task/{maker}/children").read_text().split()
        for pid in children:
            if (found := state_and_parent(pid)) and found[0] == "T":
                os.kill(int(pid), signal.SIGCONT)


def _ask_again() -> None:
    """Ask what is in the box to end: while it was being made, there was nobody to hear it."""
    for pid in descendants(os.getpid()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)


def _end(process: subprocess.Popen[bytes], why: str) -> int:
    print(f"pynchy: {why}; the box was ended", flush=True)  # noqa: T201 - the runner's log
    process.kill()
    process.wait()
    return OVER_LIMIT


def _too_much(memory: int | None, tasks: int | None) -> str | None:
    if memory is None or tasks is None:
        return None
    used = usage(os.getpid())
    # Many processes take much memory as well: the first says what happened.
    if used.tasks > tasks:
        return f"the agent had {used.tasks} processes and threads of {tasks}"
    if used.memory > memory:
        return f"the agent took {used.memory // _KIB**2} MiB of memory of {memory // _KIB**2} MiB"
    return None


def usage(ancestor: int) -> Usage:
    """Return what the processes below this one take together."""
    total = Usage()
    for pid in descendants(ancestor):
        total += _usage_of(pid)
    return total


def _usage_of(pid: int) -> Usage:
    try:
        told = Path("/proc", living_part(pid) or str(pid), "status").read_text(errors="replace")
    except OSError:
        return Usage()
    # Not splitlines: a process may have other ends of a line in its name.
    fields = dict(line.split(":", 1) for line in told.split("\n") if ":" in line)
    kib = sum(int(fields.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem"))
    return Usage(kib * _KIB, int(fields.get("Threads", "1")))


@contextmanager
def _filter(options: argparse.Namespace) -> Iterator[int]:
    """Yield a descriptor from which the filter for system calls can be read."""
    content = syscall_filter.filter_bytes(
        syscall_filter.own_abi(),
        with_sockets=options.unix_sockets,
        with_user_namespaces=options.user_namespaces,
    )
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file.fileno()


def _lines(stack: ExitStack, host: str, port: str) -> list[int]:
    """Return the descriptors over which a box has its connections; no file leads there."""
    pairs = make_lines()
    for line in (line for pair in pairs for line in pair):
        stack.enter_context(line)
    receive_from([ours for ours, _ in pairs], lambda: _connect(host, int(port)))
    return [theirs.fileno() for _, theirs in pairs]


@contextmanager
def _folder_with_socket(host: str, port: str) -> Iterator[str]:
    """Open the far end for as long as the box is there, and yield the folder of its socket."""
    # Short, whatever the data folder is called: a socket's path has 107 bytes.
    folder = tempfile.mkdtemp(prefix="pynchy-box-")
    try:
        listener = socket.socket(socket.AF_UNIX)
        path = Path(folder, SOCKET)
        listener.bind(str(path))
        # The agent may be another user; who is outside of the box cannot come into the folder.
        path.chmod(0o666)
        listener.listen()
        relay(listener, lambda: _connect(host, int(port)))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _connect(host: str, port: int) -> socket.socket:
    far = socket.create_connection((host, port), _CONNECT_SECONDS)
    far.settimeout(None)
    return far


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sandbox_monitor", description="Watch one sandbox.")
    parser.add_argument("--proxy", nargs=2, help="the only address that the box may reach")
    parser.add_argument("--memory", type=int, help="bytes that the box may take")
    parser.add_argument("--tasks", type=int, help="processes and threads that it may have")
    parser.add_argument("--unix-sockets", action="store_true", help="let the filter pass sockets")
    parser.add_argument("--user-namespaces", action="store_true", help="let it pass these, too")
    parser.add_argument("--guard-devices", action="store_true", help="make them read-only")
    parser.add_argument("--deaf", action="store_true", help="hold back requests to end")
    parser.add_argument("command", nargs="+", metavar="-- command …")
    return parser


if __name__ == "__main__":
    sys.exit(main())
