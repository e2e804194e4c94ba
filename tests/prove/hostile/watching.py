"""What is seen of a host from outside: its process, its files, and whether it still serves."""

import contextlib
import ctypes
import json
import os
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tests.acceptance.support import Host, MailboxAgent
from tests.waiting import until


def pid_of(host: Host) -> int:
    assert host.process is not None
    return host.process.pid


def resident_mib(host: Host) -> float:
    """How much memory the host holds just now."""
    pages = int(Path(f"/proc/{pid_of(host)}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def descriptors(host: Host) -> int:
    return len(os.listdir(f"/proc/{pid_of(host)}/fd"))


def cpu_seconds(host: Host) -> float:
    """How much processor time the host has had: what else the machine does is not in it."""
    fields = Path(f"/proc/{pid_of(host)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Opened:
    """Counts what anybody opens in a folder, by its name; the folder itself is the empty name."""

    _IN_OPEN = 0x20
    _HEAD = struct.Struct("iIII")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._over = threading.Event()
        self.names: Counter[str] = Counter()

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        assert libc.inotify_add_watch(self._fd, os.fsencode(self._folder), self._IN_OPEN) >= 0
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        os.close(self._fd)

    def _count(self) -> None:
        while not self._over.wait(0.005):
            with contextlib.suppress(BlockingIOError):
                while data := os.read(self._fd, 2**20):
                    self._take(data)

    def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            _, _, _, length = self._HEAD.unpack_from(data, at)
            at += self._HEAD.size + length
            self.names[os.fsdecode(data[at - length : at].rstrip(b"\0"))] += 1


def files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what is below the folder and is no folder, as far as paths reach, while it changes."""
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry


def disk_bytes(folder: Path) -> int:
    """What the files below the folder take up on the disk, holes left out."""
    total = 0
    for entry in files_below(folder):
        with contextlib.suppress(FileNotFoundError):
            total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def is_healthy(host: Host) -> bool:
    """Say whether the host runs, answers, and finds nothing wrong."""
    alive = host.process is not None and host.process.poll() is None
    return alive and host.http("GET", "/healthz", headers={}).body["status"] == "ok"


async def figures_are_told(host: Host) -> bool:
    """Say whether a person and a status bar are told that agents are there, and soon enough."""
    code, told, _ = await host.cli("status", "--json")
    line_code, line, _ = await host.cli("status", "--line")
    is_soon = line_code == 0 and "\N{WARNING SIGN}" not in line
    return is_soon and code == 0 and json.loads(told)["agents"] > 0


class Bystander:
    """An agent of another group, which wants its answers whatever happens beside it."""

    def __init__(self, host: Host, group: str = "bystander") -> None:
        self._host = host
        self.agent = MailboxAgent(host.group(group))

    async def greeted(self) -> None:
        """Wait until the host knows the group; after that it is heard at once."""
        await until((self.agent.mailbox / "input" / "host.json").exists, "the host's greeting")

    async def is_served(self) -> float:
        """Ask, be answered and take the answer. Return the seconds from asking to having it."""
        begun = time.perf_counter()
        request_id = self.agent.ask("Are you there?")
        await self._host.state(request_id, "open")
        assert self._host.answer(request_id, "1").status == 200
        response = await self.agent.receive(request_id)
        took = time.perf_counter() - begun
        assert response["answers"][0]["selected"] == ["Yes"]
        assert (await self._host.closed(request_id))["delivered"] == "live"
        return took
