"""One data folder, the hosts that live and die on it, and the fault that one of them meets.

Nothing here looks inside the product: what happened is read from results, HTTP and files.
"""

import asyncio
import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.forking import Forked, forker

HOST = "tests.prove.crash.host:main"
RUNNER = Path(__file__).with_name("runner.py")

GROUP = "team"
REQUEST_ID = "q1"
# Only spent when something is broken.
PATIENCE_SECONDS = 25.0
PAUSE_SECONDS = 0.01

THREADS = ("worker", "main")
# TWICE: the host that is started after the kill is killed as well.
FAULTS = ("KILL", "EIO", "ENOSPC", "TWICE")
# Whatever changes the disk. `writev` is how the recording channel writes a card down.
CALLS = (
    "fsync,fdatasync,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,"
    "write,pwrite64,writev,ftruncate,truncate,chmod,fchmod,fchown"
)

Json = dict[str, Any]


class Broken(AssertionError):
    """A promise was not kept."""


async def until(look: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS) -> Any:
    """Return the first true thing that `look` finds; Broken when the patience is over."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise Broken(f"waited {seconds:g} s in vain for {what}")
        await asyncio.sleep(PAUSE_SECONDS)
    return found


@dataclass(frozen=True, slots=True)
class Point:
    """Where one run is hit: at the n-th such call that this thread makes in the scenario."""

    scenario: str
    thread: str
    call: str
    number: int
    fault: str

    def __str__(self) -> str:
        return f"{self.scenario}/{self.thread}/{self.call}/{self.number}/{self.fault}"

    @classmethod
    def parse(cls, text: str) -> Self:
        scenario, thread, call, number, fault = text.split("/")
        return cls(scenario, thread, call, int(number), fault)

    @property
    def kills(self) -> bool:
        return self.fault in {"KILL", "TWICE"}

    @property
    def injection(self) -> str:
        """How strace is told."""
        fault = "signal=KILL" if self.kills else f"error={self.fault}"
        return f"{self.call}:{fault}:when={self.number}"

    def second(self) -> Self:
        """Return where the next host dies: anywhere early, and the same in every run."""
        chance = random.Random(str(self))  # noqa: S311 - a repeatable choice, not a secret
        call = chance.choice(["fsync", "fsync", "write", "renameat", "linkat", "unlinkat"])
        number = chance.randint(1, 3 if call == "linkat" else 8)
        return replace(self, thread="worker", call=call, number=number, fault="KILL")


@dataclass(frozen=True, slots=True)
class Click:
    """What one person did, and what they were told. `status` 0: the host died over it."""

    by: str
    value: str
    status: int
    body: Json
    question: int | None = None
    edited: Json | None = None

    def __str__(self) -> str:
        told = self.body.get("error") or (self.body.get("ending") or {}).get("summary", "")
        return f"{self.by}: {self.value} -> {self.status} {told}"


class Tracer:
    """strace on one thread: it counts, or makes the n-th call fail or deadly."""

    def __init__(
        self, thread_id: int, output: Path, calls: str, point: Point | None = None
    ) -> None:
        self.output = output
        self._point = point
        self._errors = output.with_suffix(".err")
        command = ["strace", "-y", "-s", "0", "-a", "1", "-p", str(thread_id), "-o", str(output)]
        command += ["-e", f"trace={calls}", "-e", "signal=none"]
        command += ["-e", f"inject={point.injection}"] if point else []
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(command, stderr=errors, stdin=subprocess.DEVNULL)

    async def attached(self) -> None:
        await until(self._is_attached, "strace to attach")

    def _is_attached(self) -> bool:
        said = self._errors.read_text()
        if self._process.poll() is not None and " attached" not in said:
            raise RuntimeError(f"strace cannot attach: {said}")
        return " attached" in said

    async def detach(self) -> None:
        """Leave the thread alone; return when it is."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            await until(lambda: self._process.poll() is not None, "strace to detach")

    def seen(self) -> list[str]:
        """Return the calls that were made, one a line."""
        return [line for line in self.output.read_text().splitlines() if "(" in line]

    def hit(self) -> str:
        """Return the call that was hit, or nothing if it was not reached."""
        if self._point and self._point.kills:
            # The signal is sent before the line is written. What the call returned may be missing:
            # the traced process may die after strace has detached.
            return next(iter(self.seen()[self._point.number - 1 :]), "")
        return next((line for line in self.seen() if line.endswith("(INJECTED)")), "")

    def counts(self) -> Counter[str]:
        names = (re.match(r"\w+(?=\()", line) for line in self.seen())
        return Counter(match.group() for match in names if match)


@dataclass
class Stage:
    """A data folder with at most one host at a time."""

    base: Path
    settings: Json
    pid: int = 0
    process: Forked | None = None
    hosts: int = 0
    url: str = ""
    request_id: str = REQUEST_ID
    gate: Path | None = None
    tracers: dict[str, Tracer] = field(default_factory=dict)
    clicks: list[Click] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.base / "data"

    @property
    def mailbox(self) -> Path:
        return self.data / "ipc" / GROUP

    def file(self, folder: str) -> Path:
        return self.mailbox / folder / f"{self.request_id}.json"

    # The host.

    async def fork(self, *, gated: bool = False) -> None:
        """Start a host; a gated one waits before its first step."""
        self.hosts += 1
        self.gate = self.base / f"gate-{self.hosts}" if gated else None
        if self.gate:
            os.mkfifo(self.gate)
        order = {"base": str(self.base), "settings": self.settings}
        told = json.dumps(order | {"gate": str(self.gate) if self.gate else None})
        with (self.base / "host.log").open("ab") as log:
            self.process = forker().start(HOST, [told], stdout=log.fileno(), stderr=log.fileno())
        self.pid = self.process.pid
        await until(lambda: self._told("threads") or self.is_dead(), "the host's threads")

    def open_gate(self) -> None:
        if self.gate:
            self.gate.write_bytes(b"")

    async def is_ready(self) -> bool:
        """Wait until the host is ready. False if it has ended instead."""
        told = await until(lambda: self._told("ready") or self.is_dead(), "the host to be ready")
        if told is True:
            return False
        self.url = str(told)
        return True

    async def start(self) -> None:
        await self.fork()
        if not await self.is_ready():
            raise Broken("the host does not start again")

    def is_dead(self) -> bool:
        return self.process is None or self.process.poll() is not None

    async def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            await until(self.is_dead, "the host's end")

    async def stop(self) -> None:
        """Stop the host in order."""
        os.kill(self.pid, signal.SIGTERM)
        await until(self.is_dead, "the host to stop")
        if not self._told("stopped"):
            raise Broken("the host did not stop in order")

    def _told(self, what: str) -> str:
        path = self.base / f"{what}-{self.pid}"
        # Not Path.readlink: it would take an address for a path.
        return os.readlink(path) if path.is_symlink() else ""  # noqa: PTH115

    # The fault.

    async def count(self) -> None:
        """Have every call of every thread counted."""
        await self._attach(dict.fromkeys(THREADS, CALLS))

    async def aim(self, point: Point) -> None:
        """Have the host hit at the point."""
        await self._attach({point.thread: point.call}, point)

    async def _attach(self, wanted: dict[str, str], point: Point | None = None) -> None:
        ids = json.loads(self._told("threads"))
        self.tracers = {}
        for thread, calls in wanted.items():
            output = self.base / f"strace-{self.hosts}-{thread}"
            self.tracers[thread] = Tracer(ids[thread], output, calls, point)
        for tracer in self.tracers.values():
            await tracer.attached()

    async def detach(self) -> None:
        for tracer in self.tracers.values():
            await tracer.detach()

    def hit(self) -> str:
        return next((hit for tracer in self.tracers.values() if (hit := tracer.hit())), "")

    # People.

    async def click(self, by: str, value: str, question: int | None = None, **more: Any) -> Click:
        """Answer as soon as the host knows the question; note and return what one is told."""
        body: Json = {"values": [value], "by": by, **more}
        if question:
            body["question"] = question
        status, told = 404, {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while status == 404:
            if time.monotonic() > deadline:
                raise Broken(f"{by} cannot answer: the host does not know the question")
            status, told = await self.post("answer", body)
            if status == 404:
                await asyncio.sleep(PAUSE_SECONDS)
        self.clicks.append(Click(by, value, status, told, question, more.get("edited")))
        return self.clicks[-1]

    async def post(self, verb: str, body: Json) -> tuple[int, Json]:
        """Return status and reply. Status 0 if the host dies over it."""
        return await self.http("POST", f"/api/questions/{self.request_id}/{verb}", body)

    async def http(self, method: str, path: str, body: Json | None = None) -> tuple[int, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_dead():
            try:
                return await asyncio.to_thread(self.request, method, path, body)
            except (OSError, http.client.HTTPException):
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)
        return 0, {}

    def request(self, method: str, path: str, body: Json | None, key: str = "") -> tuple[int, Any]:
        """Return status and reply, with a key instead of the token if there is one."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=PATIENCE_SECONDS
        )
        token = key or (self.data / "token").read_text().strip()
        sent = {"Authorization": f"Bearer {token}"}
        try:
            connection.request(method, path, json.dumps(body).encode() if body else None, sent)
            reply = connection.getresponse()
            text = reply.read()
            if reply.status >= 500:
                return reply.status, {"error": text.decode()}
            return reply.status, json.loads(text or b"null")
        finally:
            connection.close()

    # What can be seen from outside.

    def is_over(self) -> bool:
        """True if an outcome is on the disk."""
        return self.file("outcomes").exists()

    def is_closed(self) -> bool:
        return self.file("history").exists() and not self.file("pending_questions").exists()

    def record(self) -> Json | None:
        """Return the host's record of the question, wherever it is."""
        for folder in ("pending_questions", "history"):
            with contextlib.suppress(FileNotFoundError):
                found: Json = json.loads(self.file(folder).read_bytes())
                return found
        return None

    def state(self) -> str:
        record = self.record()
        return record["state"] if record else ""

    def cards(self, what: str | None = None) -> list[Json]:
        return [c for c in _lines(self.base / "chat.jsonl") if what in {None, c["what"]}]

    def runs(self, what: str) -> list[Json]:
        return [line for line in _lines(self.base / "runs.jsonl") if line["what"] == what]

    def events(self) -> list[Json]:
        """Return the event log; a line that a crash cut in two is not there."""
        return _lines(self.data / "audit" / "events.jsonl")

    def log(self) -> str:
        path = self.base / "host.log"
        return path.read_text() if path.exists() else ""


def _lines(path: Path) -> list[Json]:
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found
