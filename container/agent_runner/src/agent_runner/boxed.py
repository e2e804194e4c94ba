"""The first program in a box: becomes the agent's user, opens the one way out, runs the command.

    python -m agent_runner.boxed [--uid N] [--processes N] [--file-bytes N] [--cwd PATH]
                                 [--port N (--socket PATH | --lines FD,…)] -- …

What it does not need to stay for, it makes way for: without a way out it becomes the command. The
command's environment may come in one variable, so that nothing that runs before it heeds it.
"""

import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import PurePath
from types import FrameType

from agent_runner.lines import send_over
from agent_runner.relay import relay

# The whole environment of the command, as JSON.
ENVIRONMENT = "PYNCHY_BOX_ENVIRONMENT"
_NOT_STARTED = 127
_BY_SIGNAL = 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare and run the command. Return its exit code, as a shell would."""
    options = _parser().parse_args(arguments)
    # Whoever made the box holds this back on purpose, and we have inherited that.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if options.uid is not None:
        _become(options.uid)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, options.processes)
    _limit(resource.RLIMIT_FSIZE, options.file_bytes)
    _take_environment()
    try:
        # Only now: the folder may be the agent's alone.
        _enter(options.cwd)
        if options.port is None:
            os.execvp(options.command[0], options.command)  # noqa: S606 - that is its purpose
        return _run_beside_relay(options)
    except OSError as exc:
        what = f"{options.command[0]} cannot be started in its box: {exc.strerror}"
        print(f"agent_runner: {what}", file=sys.stderr)  # noqa: T201 - a program's last words
        return _NOT_STARTED


def _become(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _limit(what: int, most: int | None) -> None:
    if most is None:
        return
    _, allowed = resource.getrlimit(what)
    # Nobody can raise what the host itself was given.
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(what, (most, most))


def _take_environment() -> None:
    if (told := os.environ.pop(ENVIRONMENT, None)) is not None:
        os.environ.clear()
        os.environ.update(json.loads(told))


def _enter(cwd: str) -> None:
    """Make it the working folder. What was made a link since the host has looked is refused."""
    path = PurePath(cwd)
    try:
        os.chdir(path.anchor or os.curdir)
        for part in path.relative_to(path.anchor).parts:
            fd = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                os.fchdir(fd)
            finally:
                os.close(fd)
    except OSError as exc:
        why = f"{exc.strerror} where its working folder {cwd} was"
        raise OSError(exc.errno, why) from exc


def _open_way_out(options: argparse.Namespace) -> None:
    """Carry connections to the port outside: by a socket file, or over lines."""
    listener = socket.create_server(("127.0.0.1", options.port))
    if options.lines:
        send_over(listener, [socket.socket(fileno=int(fd)) for fd in options.lines.split(",")])
        return

    def connect() -> socket.socket:
        far = socket.socket(socket.AF_UNIX)
        far.connect(options.socket)
        return far

    relay(listener, connect)


def _run_beside_relay(options: argparse.Namespace) -> int:
    _open_way_out(options)
    process = subprocess.Popen(options.command)  # noqa: S603 - that is its purpose

    def forward(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    code = process.wait()
    return code if code >= 0 else _BY_SIGNAL - code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent_runner.boxed",
        description="Run a command as the first of its box.",
        epilog="example:  python -m agent_runner.boxed --processes 512 -- agent_runner -h",
    )
    parser.add_argument("--uid", type=int, help="the user to become")
    parser.add_argument("--processes", type=int, help="how many this user may have in the box")
    parser.add_argument("--file-bytes", type=int, help="how long a file may become")
    parser.add_argument("--cwd", default=".", help="the folder to run it in")
    parser.add_argument("--port", type=int, help="where on loopback the way out begins")
    parser.add_argument("--socket", help="the socket where it leads to")
    parser.add_argument("--lines", help="the descriptors that it leads to instead, with commas")
    parser.add_argument("command", nargs="+", metavar="-- command …")
    return parser


if __name__ == "__main__":
    sys.exit(main())
