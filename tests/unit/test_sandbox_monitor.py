"""The monitor of a box, and the first program in one, without a box around them."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.waiting import until

from agent_runner import boxed, relay
from pynchy.launchers import sandbox_monitor
from pynchy.launchers.job_runner import descendants
from pynchy.launchers.sandbox import run_alone

MONITOR = run_alone(sandbox_monitor.__name__)
BOXED = run_alone(boxed.__name__)


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("code", "expected"), [("exit(0)", 0), ("exit(3)", 3)])
@pytest.mark.parametrize("first", [MONITOR, BOXED], ids=["monitor", "boxed"])
def test_the_exit_code_is_that_of_the_command(first: list[str], code: str, expected: int) -> None:
    assert run(*first, "--", sys.executable, "-c", code).returncode == expected


@pytest.mark.parametrize("options", [(), ("--port", "0", "--socket", "/nowhere")])
def test_a_command_that_is_not_there_is_said(options: tuple[str, ...]) -> None:
    done = run(*BOXED, *options, "--", "/no/such/program")

    assert done.returncode == 127
    assert "/no/such/program cannot be started in its box: No such file" in done.stderr


@pytest.mark.parametrize("way", ["link", "link/deep", "folder/link"])
def test_a_working_folder_that_was_made_a_link_is_not_entered(tmp_path: Path, way: str) -> None:
    for name in ("elsewhere/deep", "folder/deep"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("link", "folder/link"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")

    refused = run(*BOXED, "--cwd", str(tmp_path / way), "--", "pwd")
    entered = run(*BOXED, "--cwd", str(tmp_path / "folder" / "deep"), "--", "pwd")

    assert (refused.returncode, refused.stdout) == (127, "")
    assert "Not a directory where its working folder" in refused.stderr
    assert entered.stdout == f"{tmp_path / 'folder' / 'deep'}\n"


CALL = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as line:
    line.sendall(b"hello")
    line.shutdown(socket.SHUT_WR)
    print(b"".join(iter(lambda: line.recv(9), b"")).decode())
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_what_is_sent_to_the_near_end_arrives_at_the_one_address_and_comes_back() -> None:
    near = str(free_port())
    with socket.create_server(("127.0.0.1", 0)) as server:

        def shout() -> None:
            line, _ = server.accept()
            with line:
                heard = b"".join(iter(lambda: line.recv(9), b""))
                line.sendall(heard.upper())

        threading.Thread(target=shout, daemon=True).start()
        done = run(
            *MONITOR, "--proxy", "127.0.0.1", str(server.getsockname()[1]), "--",
            *BOXED, "--port", near, "--socket", "{sockets}/proxy", "--",
            sys.executable, "-c", CALL, near,
        )  # fmt: skip

    assert (done.stdout, done.returncode) == ("HELLO\n", 0), done.stderr


def test_a_connection_for_which_there_is_no_thread_is_closed_and_the_next_is_carried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = iter([True])

    class Thread(threading.Thread):
        def start(self) -> None:
            if next(refused, False):
                raise RuntimeError("can't start new thread")
            super().start()

    near, far = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    with near, far:
        relay.relay(near, lambda: socket.create_connection(far.getsockname(), 20))
        monkeypatch.setattr(relay.threading, "Thread", Thread)
        with socket.create_connection(near.getsockname(), 20) as first:
            assert first.recv(1) == b""
        with socket.create_connection(near.getsockname(), 20) as second:
            line, _ = far.accept()
            with line:
                second.sendall(b"x")
                assert line.recv(1) == b"x"


def test_nothing_is_left_of_the_way_out_when_the_command_has_ended() -> None:
    look = "import pathlib, sys; print(sys.argv[1], pathlib.Path(sys.argv[1]).is_socket())"
    port = str(free_port())

    done = run(
        *MONITOR, "--proxy", "127.0.0.1", port, "--",
        sys.executable, "-c", look, "{sockets}/proxy",
    )  # fmt: skip

    path, was_there = done.stdout.split()
    assert was_there == "True"
    assert not Path(path).parent.exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("held = bytearray(b'x') * 100_000_000; time.sleep(60)", "MiB of memory of 47 MiB"),
        ("[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(9)]", "of 8;"),
    ],
    ids=["memory", "threads"],
)
def test_what_takes_too_much_is_ended_and_that_is_said(code: str, words: str) -> None:
    limits = ("--memory", "50000000", "--tasks", "8")

    done = run(*MONITOR, *limits, "--", sys.executable, "-c", f"import threading, time; {code}")

    assert done.returncode == 137
    assert words in done.stdout


# Whatever the handler of a request calls or returns from, another request comes right then.
ASKED_WHILE_IT_IS_ASKED = """
import os, signal, sys
from pynchy.launchers import sandbox_monitor

set_handler, depth, requests = signal.signal, 0, iter(range(50))

def ask_again(*_):
    if depth == 1 and next(requests, None) is not None:
        os.kill(os.getpid(), signal.SIGTERM)

def set_watched(number, handler):
    def watched(*arguments):
        global depth
        depth += 1
        if depth == 1:
            sys.setprofile(ask_again)
        handler(*arguments)
        if depth == 1:
            sys.setprofile(None)
        depth -= 1
    return set_handler(number, watched)

signal.signal = set_watched
sys.exit(sandbox_monitor.main())
"""


def test_a_monitor_that_is_asked_to_end_while_it_is_asked_does_not_hang() -> None:
    hear = (
        "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('here', flush=True); sys.stdin.read(); sys.exit(3)"
    )
    command = [sys.executable, "-c", ASKED_WHILE_IT_IS_ASKED, "--", sys.executable, "-c", hear]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)

        try:
            process.communicate(timeout=20)
        finally:
            process.kill()

    assert process.returncode == 3


async def test_a_monitor_that_is_asked_to_end_stays_until_its_box_has_ended(tmp_path: Path) -> None:
    hear = (
        "import os, pathlib, signal, sys, time\n"
        # At once: a second request would meet a Python that hears none any more.
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        # A request that comes right before a sleep is heard after it.
        "while True: time.sleep(0.1)"
    )
    command = [*MONITOR, "--deaf", "--", *BOXED, "--", sys.executable, "-c", hear]
    process = subprocess.Popen([*command, str(tmp_path / "here")])  # noqa: ASYNC220 - only starts it
    await until((tmp_path / "here").exists, "the command")

    # As the supervisor does: everybody, the first first.
    for pid in [process.pid, *descendants(process.pid)]:
        os.kill(pid, signal.SIGTERM)

    await until(lambda: process.poll() is not None, "the end")
    assert process.returncode == 7
