"""People who answer at a steady rate, whether or not the host keeps up."""

import asyncio
import http.client
import json
import os
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.acceptance.support import Host, Json
from tests.waiting import until

AT_ONCE = 64
PATIENCE_SECONDS = 300.0


def machine_clock() -> float:
    """Return the time that the agents' processes have too; the tests' own starts at 0."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@dataclass
class Answered:
    """One answer: when it was due, when it was acknowledged, and with which status."""

    request_id: str
    due: float
    acknowledged: float
    status: int


@dataclass
class People:
    """Answer every question of the agents' groups in the order in which they were shown."""

    host: Host
    shown: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)
    answered: list[Answered] = field(default_factory=list)
    starved: int = 0
    streams: int = 0
    _connections: list[http.client.HTTPConnection] = field(default_factory=list)
    _own: threading.local = field(default_factory=threading.local)

    def __post_init__(self) -> None:
        self._token = self.host.token()

    def answer_steadily(self, per_second: float, seconds: float) -> None:
        """Begin an answer every 1/rate seconds: an open loop, so a slow host is not spared."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            begun = machine_clock()
            for number in range(int(per_second * seconds)):
                due = begun + number / per_second
                time.sleep(max(0.0, due - machine_clock()))
                try:
                    pool.submit(self._answer, self.shown.get_nowait(), due)
                except queue.Empty:
                    self.starved += 1

    def answer_the_rest(self, gone: threading.Event) -> None:
        """Answer what still comes until the agents are gone."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while not gone.is_set() or not self.shown.empty():
                with suppress(queue.Empty):
                    pool.submit(self._answer, self.shown.get(timeout=0.1), machine_clock())

    def _answer(self, request_id: str, due: float) -> None:
        body = json.dumps({"values": [f"for {request_id}"], "by": "ana"}).encode()
        status = self._post(f"/api/questions/{request_id}/answer", body)
        self.answered.append(Answered(request_id, due, machine_clock(), status))

    def _post(self, path: str, body: bytes) -> int:
        headers = {"Authorization": f"Bearer {self._token}"}
        for last in (False, True):
            connection = self._connection(fresh=last)
            try:
                connection.request("POST", path, body, headers)
                reply = connection.getresponse()
                reply.read()
            except (http.client.HTTPException, ConnectionError):
                if last:
                    raise
                continue  # a kept connection that the host has closed meanwhile
            return reply.status
        raise AssertionError("unreachable")

    def _connection(self, *, fresh: bool) -> http.client.HTTPConnection:
        """Return the thread's own connection."""
        known: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if known is not None and not fresh:
            return known
        address = urlsplit(self.host.url)
        made = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        self._connections.append(made)
        self._own.connection = made
        return made

    @contextmanager
    def watching(self, prefix: str) -> Iterator[None]:
        """Follow the event stream, and note each question shown to a group of that prefix."""
        over = threading.Event()
        reader = threading.Thread(target=self._follow, args=(prefix, over))
        reader.start()
        try:
            yield
        finally:
            over.set()
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            reader.join()
            for connection in self._connections:
                connection.close()

    def _follow(self, prefix: str, over: threading.Event) -> None:
        """Read on after the last event seen: who does not keep up is sent home, and comes back."""
        seen = 0
        while not over.is_set():
            for event in self._events(seen, over):
                seen = event["seq"]
                if event["type"] == "shown" and event["group"].startswith(prefix):
                    self.shown.put(event["id"])
            self.streams += 1

    def _events(self, after: int, over: threading.Event) -> Iterator[Json]:
        address = urlsplit(self.host.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        headers = {"Authorization": f"Bearer {self._token}"}
        connection.request("GET", f"/api/events?after={after}", headers=headers)
        self._socket = connection.sock  # the connection itself forgets it
        with closing(connection), suppress(OSError), connection.getresponse() as response:
            while not over.is_set() and (line := response.readline()):
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))


@dataclass(frozen=True, slots=True)
class Sample:
    """What the host's process holds at one moment."""

    rss_kib: int
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> "Sample":
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return cls(int(status["VmRSS"].split()[0]), descriptors, int(status["Threads"]))


class Scales:
    """Weighs the host's process once a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self.samples: list[Sample] = []

    def __enter__(self) -> Self:
        self._begun = self._cpu()
        self._woken = self._wakings()
        self._thread = threading.Thread(target=self._weigh)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.cpu_seconds = self._cpu() - self._begun
        woken = Counter(self._wakings()) - Counter(self._woken)
        self.restless_threads = sum(times > 1 for times in woken.values())

    def _wakings(self) -> dict[str, int]:
        """Return how often each thread has gone to sleep, and so was woken."""
        found = {}
        for thread in Path(f"/proc/{self._pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                told = (thread / "status").read_text()
                found[thread.name] = int(told.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        return found

    def _cpu(self) -> float:
        """Return the processor time that the process has had: other programs do not distort it."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _weigh(self) -> None:
        while not self._over.wait(0.5):
            self.samples.append(Sample.of(self._pid))

    def thirds(self, what: str) -> list[float]:
        """Return the mean of each third of the samples."""
        values = [getattr(sample, what) for sample in self.samples]
        size = max(1, len(values) // 3)
        return [
            sum(part) / len(part)
            for n in range(3)
            if (part := values[n * size : (n + 1) * size] or values[-1:])
        ]


async def patiently(look: Callable[[], bool], what: str) -> None:
    """Wait until it is so; long, since everything is many here."""
    await until(lambda: asyncio.to_thread(look), what, PATIENCE_SECONDS)


async def opened(host: Host, count: int) -> None:
    """Wait until exactly so many questions are open."""

    def look() -> bool:
        return bool(host.http("GET", "/healthz", headers={}).body["open"] == count)

    await patiently(look, f"{count} open questions")


def percentile(values: list[float], share: float) -> float:
    """Return the value below which that share of the values is, in milliseconds."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000, 1)
