"""How long a button of a popup takes to the coroutine that waits.

Ours: the real host and the real waiter, each in a process of its own, on a real bus, with a
notification service in this one. The limit is the same signal at a bare D-Bus connection.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.figures import Line, Sample, Unit, line
from tests.desktop.support import Desktop
from tests.standins.notification_service import NotificationService

ROUNDS = 60
QUICK_ROUNDS = 3
WARM_UP = 3
SETTLE_SECONDS = 0.02
MAX_SECONDS = 60.0
AT_MOST_MORE = 10
SETTINGS = """
[http]
port = 0
[channels.desktop]
[groups.bench]
channels = ["desktop"]
"""


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    rounds = (QUICK_ROUNDS if quick else ROUNDS) + WARM_UP
    desktop = Desktop(folder / "desktop")
    try:
        asyncio.run(desktop.start_bus())
        found = _rounds(desktop, folder, rounds)[WARM_UP:]
    finally:
        desktop.close()
    ours, limit = zip(*found, strict=True)
    more = [resumed - heard for resumed, heard in found]
    ms = Unit.MILLISECONDS
    return [
        line(
            "m1.1", "button of a popup → waiting coroutine resumed", ms, Sample(ours), Sample(limit)
        ),
        line("m1.2", "how much later than the bare signal", ms, Sample(more), at_most=AT_MOST_MORE),
    ]


def _rounds(desktop: Desktop, folder: Path, rounds: int) -> list[tuple[float, float]]:
    """Return milliseconds from each press: until the coroutine runs, until the bare signal."""
    with ExitStack() as stack:
        service = stack.enter_context(NotificationService(desktop.address, "actions"))
        mailbox = stack.enter_context(_host(desktop, folder))
        agent = stack.enter_context(_process("slack_agent", str(mailbox)))
        floor = stack.enter_context(_process("desktop_floor", desktop.address))
        _read(floor)
        return [_round(service, agent, floor, number) for number in range(rounds)]


def _round(
    service: NotificationService,
    agent: subprocess.Popen[str],
    floor: subprocess.Popen[str],
    number: int,
) -> tuple[float, float]:
    _write(agent, f"ask round-{number}")
    _wait(lambda: len(service.shown) > number)
    # The host must have noted that the popup is shown, as it has when a person gets to see it.
    time.sleep(SETTLE_SECONDS)
    pressed = time.monotonic_ns()
    service.press(service.shown[-1].number, "choice-0")
    return tuple((int(_read(process)) - pressed) / 1e6 for process in (agent, floor))  # type: ignore[return-value]


@contextmanager
def _host(desktop: Desktop, folder: Path) -> Iterator[Path]:
    """Run a host in the session of the desktop. Yield its group's mailbox."""
    config, data = folder / "pynchy.toml", folder / "data"
    config.write_text(SETTINGS)
    mailbox = data / "ipc" / "bench"
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    command = [Path(sys.executable).parent / "pynchy", "serve", "--config", config]
    with subprocess.Popen(
        [*command, "--data-dir", data],
        env={**os.environ, **desktop.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as host:
        try:
            _read(host)
            yield mailbox
        finally:
            host.terminate()


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _write(process: subprocess.Popen[str], command: str) -> None:
    assert process.stdin is not None
    process.stdin.write(command + "\n")
    process.stdin.flush()


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline()
    if not text:
        raise RuntimeError("a process of the benchmark has ended")
    return text


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError("a part of the benchmark does not come to an end")
        time.sleep(0.001)
