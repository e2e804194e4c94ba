"""How soon an MCP server lists its tools after it was spawned, and what it holds while one waits.

`pynchy mcp` as a user's agent starts it, the server of a container, and beside them the smallest
server made with the official SDK: each as a child process, in turn, driven by the same client.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.bench.figures import Line, Sample, Unit, line

ROUNDS = 11
QUICK_ROUNDS = 1
WAIT_SECONDS = 20.0
SETTLE_SECONDS = 0.3

_PYNCHY = str(Path(sys.executable).with_name("pynchy"))
_QUESTION = {"questions": [{"question": "Which one?"}]}


@dataclass(frozen=True, slots=True)
class Server:
    """How a server is started, and how to tell that its call waits."""

    command: tuple[str, ...]
    env: dict[str, str]
    arguments: dict[str, object]
    waits: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one start of a server showed."""

    milliseconds: float
    rss: float
    pss: float


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    rounds = QUICK_ROUNDS if quick else ROUNDS
    servers = _servers(folder)
    for server in servers.values():  # fills the caches
        _read_once(server)
    readings: dict[str, list[Reading]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            readings[name].append(_read_once(server))
    return _lines(readings)


def _servers(folder: Path) -> dict[str, Server]:
    data, sign = folder / "data", folder / "waiting"
    mailbox = folder / "mailbox"
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    asked = data / "ipc" / "bench" / "tasks"
    return {
        "pynchy mcp": Server(
            (_PYNCHY, "mcp", "--group", "bench", "--data-dir", str(data)),
            {},
            _QUESTION,
            lambda: _take_any(asked),
        ),
        "agent_runner.agent_tools": Server(
            (sys.executable, "-m", "agent_runner.agent_tools"),
            {"PYNCHY_IPC_DIR": str(mailbox)},
            _QUESTION,
            lambda: _take_any(mailbox / "tasks"),
        ),
        "sdk": Server(
            (sys.executable, str(Path(__file__).with_name("sdk_server.py")), str(sign)),
            {},
            {"question": "Which one?"},
            lambda: _take(sign),
        ),
    }


def _lines(readings: dict[str, list[Reading]]) -> list[Line]:
    sdk = readings.pop("sdk")
    lines = []
    for letter, (name, ours) in zip("12", readings.items(), strict=True):
        start, start_limit = (Sample([r.milliseconds for r in some]) for some in (ours, sdk))
        rss, rss_limit = (Sample([r.rss for r in some]) for some in (ours, sdk))
        pss, pss_limit = (Sample([r.pss for r in some]) for some in (ours, sdk))
        ms, mb = Unit.MILLISECONDS, Unit.MEGABYTES
        listed = f"{name}: spawn → tools/list"
        held = f"{name}: RSS while a call waits"
        shared = f"{name}: PSS while a call waits"
        lines += [
            line(f"b{letter}.1", listed, ms, start, start_limit, at_most_times=0.25),
            line(f"b{letter}.2", listed, ms, start, at_most=250),
            line(f"b{letter}.3", held, mb, rss, rss_limit, at_most_times=0.5),
            line(f"b{letter}.4", held, mb, rss, at_most=30),
            line(f"b{letter}.5", shared, mb, pss, pss_limit),
        ]
    return lines


def _read_once(server: Server) -> Reading:
    started = time.perf_counter()
    process = subprocess.Popen(
        server.command,
        env=os.environ | server.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            return _converse(process, server, started)
        finally:
            process.kill()


def _converse(process: subprocess.Popen[bytes], server: Server, started: float) -> Reading:
    client = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    ids = count(1)
    _send(process, "initialize", hello, next(ids))
    _receive(process)
    _send(process, "notifications/initialized", {})
    _send(process, "tools/list", {}, next(ids))
    _receive(process)
    elapsed = time.perf_counter() - started
    call = {"name": "ask_user", "arguments": server.arguments}
    _send(process, "tools/call", call, next(ids))
    deadline = time.monotonic() + WAIT_SECONDS
    while not server.waits():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the call of {server.command} does not wait")
        time.sleep(0.01)
    time.sleep(SETTLE_SECONDS)
    return Reading(elapsed * 1_000, *_memory(process.pid))


def _send(
    process: subprocess.Popen[bytes],
    method: str,
    params: dict[str, object],
    call_id: int | None = None,
) -> None:
    assert process.stdin is not None
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    process.stdin.write(json.dumps(message | ({"id": call_id} if call_id else {})).encode() + b"\n")
    process.stdin.flush()


def _receive(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    while "result" not in json.loads(process.stdout.readline()):
        continue


def _memory(pid: int) -> tuple[float, float]:
    """Return RSS and PSS in MB of a million bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kib = {text.split()[0]: int(text.split()[1]) for text in lines[1:]}
    return kib["Rss:"] * 1024 / 1e6, kib["Pss:"] * 1024 / 1e6


def _take_any(folder: Path) -> bool:
    taken = [_take(path) for path in folder.glob("[!.]*.json")]
    return any(taken)


def _take(path: Path) -> bool:
    """True if the file was there; it is gone then, so that the next call is told apart."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
