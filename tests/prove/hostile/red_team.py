"""An agent that is an enemy: a program with the three folders of its group and nothing else.

Started as `red_team.py ATTACK FACTS`, where FACTS is JSON: the descriptors of tasks, responses and
input, the uid to become, and what it may know. It prints what it got hold of as a JSON list; a
list that is not empty is an escape. Standard library only, and nothing is imported after it has
given its rights away.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASK = {"v": 1, "type": "ask_user:ask", "questions": [{"question": "Deploy?"}]}
GIB = 2**30


@dataclass
class Box:
    """What the enemy holds and knows."""

    tasks: int
    responses: int
    input: int
    uid: int | None
    size: int
    canary: str
    data: str
    victim: str
    seconds: float

    def write(self, name: str, data: bytes, folder: int | None = None) -> bool:
        """Put a file under its name, whole. False if that is not allowed."""
        into = self.tasks if folder is None else folder
        spare = f".spare-{os.urandom(6).hex()}"
        try:
            fd = os.open(spare, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=into)
            os.write(fd, data)
            os.close(fd)
            os.rename(spare, name, src_dir_fd=into, dst_dir_fd=into)
        except OSError:
            return False
        return True

    def ask(self, request_id: Any, **fields: Any) -> None:
        """Ask under that id, in a file of another name."""
        body = json.dumps(ASK | {"request_id": request_id} | fields).encode()
        self.write(f"ask-{os.urandom(6).hex()}.json", body)

    def link(self, target: str, name: str) -> None:
        with contextlib.suppress(OSError):
            os.symlink(target, name, dir_fd=self.tasks)

    def running(self) -> Iterator[int]:
        """Count for as long as the attack is to last."""
        end, count = time.monotonic() + self.seconds, 0
        while time.monotonic() < end:
            yield count
            count += 1


def links(box: Box) -> None:
    """Every name that the host looks at is a link to what it must not read."""
    own = "0wn"
    box.ask(own)
    targets = [box.canary, f"{box.data}/token", "/dev/zero", "/dev/tty", "/proc/self/environ"]
    targets += ["/nowhere", "loop-5.json", ".", "..", f"{box.data}/ipc/victims/tasks"]
    for number, target in enumerate(targets):
        for name in (f"loop-{number}.json", f"{own}.received", f"l{number}.lease", f"x{number}"):
            box.link(target, name)
    for suffix in ("received", "resumed", "cancel.json", "withdraw.json"):
        box.link(box.canary, f"{box.victim}.{suffix}")
    for name in ("q.json", "host.json", f"{own}.json"):
        with contextlib.suppress(OSError):
            os.symlink(box.canary, name, dir_fd=box.responses)
        with contextlib.suppress(OSError):
            os.symlink(box.canary, name, dir_fd=box.input)
    with contextlib.suppress(OSError):
        os.symlink(str(Path(box.canary).parent), own, dir_fd=box.input)


def swaps(box: Box) -> None:
    """A good file and a link to the canary change places while the host reads."""
    for number in box.running():
        name = f"swap-{number % 8}.json"
        box.link(box.canary, ".bad")
        box.write(".good", json.dumps(ASK | {"request_id": f"swap-{number}"}).encode())
        for source in (".good", ".bad"):
            with contextlib.suppress(OSError):
                os.rename(source, name, src_dir_fd=box.tasks, dst_dir_fd=box.tasks)
        with contextlib.suppress(OSError):
            os.unlink(".bad", dir_fd=box.tasks)


def specials(box: Box) -> None:
    """Pipes, sockets and files that somebody holds a lease on: nothing to wait for."""
    for number in range(20):
        for name in (f"fifo-{number}.json", f"fifo-{number}.lease", f"{box.victim}.received"):
            with contextlib.suppress(OSError):
                os.mkfifo(name, 0o600, dir_fd=box.tasks)
    os.chdir(box.tasks)
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
        sock.bind("socket.json")
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # how the kernel says that somebody wants the file
    held = []
    for number in range(20):
        box.write(f".held-{number}", b"{")
        fd = os.open(f".held-{number}", os.O_RDWR, dir_fd=box.tasks)
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.rename(
            f".held-{number}", f"held-{number}.json", src_dir_fd=box.tasks, dst_dir_fd=box.tasks
        )
        held.append(fd)
    for _ in box.running():
        time.sleep(0.05)


def devices(box: Box) -> None:
    """Devices are made before the rights are given away; see main."""
    assert box.tasks


def hard_links(box: Box) -> None:
    """One file under many names, and names for files of others."""
    box.write("one.json", json.dumps(ASK | {"request_id": "one"}).encode())
    for number in range(50):
        with contextlib.suppress(OSError):
            os.link("one.json", f"two-{number}.json", src_dir_fd=box.tasks, dst_dir_fd=box.tasks)
    for target in (box.canary, f"{box.data}/token", "/etc/passwd"):
        with contextlib.suppress(OSError):
            os.link(target, f"theirs-{os.urandom(3).hex()}.json", dst_dir_fd=box.tasks)


def giants(box: Box) -> None:
    """Eight GiB of nothing, and JSON that is as large, wide and deep as can be sent."""
    for name in ("sparse.json", "sparse.lease", "sparse.received"):
        fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=box.tasks)
        os.ftruncate(fd, 8 * GIB)
        os.close(fd)
    most = 256 * 1024
    for number in range(box.size):
        box.write(f"deep-{number}.json", b"[" * most)
        box.write(f"deeper-{number}.json", b'{"a":' * (most // 5))
        box.write(f"wide-{number}.json", b"[" + b"0," * (most // 2 - 2) + b"0]")
        box.write(f"over-{number}.json", b" " * (most + 1))
        box.ask(f"long-{number}", x="x" * (most - 300))
        box.ask(f"lists-{number}", x=[[[[[[]]]]]] * 15_000)
        box.ask(f"digits-{number}", wait_seconds=10**4_000)


def ids(box: Box) -> None:
    """Ids that are paths, or nearly ids, or somebody else's."""
    tricks = ["../x", "..", ".", "", "/etc/passwd", "a/b", "a\0b", "a\nb", "a" * 65, "a" * 300]
    tricks += ["ä", "\u202ex", "-x", "_x", " x", "x ", "x.json", "../../victims/tasks/x", 7, None]
    tricks += [["x"], {"a": 1}, True, "host", "token", box.victim]
    for trick in tricks:
        box.ask(trick)
        box.ask("fine", lease=trick, session_id=trick)
        for kind in ("cancel", "withdraw"):
            body = json.dumps({"v": 1, "type": f"ask_user:{kind}", "request_id": trick})
            box.write(f"{os.urandom(4).hex()}.{kind}.json", body.encode())


def names(box: Box) -> None:
    """Files whose names are the attack."""
    for name in (b"new\nline.json", b"\xff\xfe.json", b"\x1b[2J.json", b"-rf.json", b"a b.json"):
        box.write(os.fsdecode(name), b"{")
    for name in ("." * 3 + ".json", "%2e%2e%2fx.json", "x" * 250 + ".json", "é" * 120 + ".json"):
        box.write(name, b"{")
    for name in (".json", "..json", "x.json.json", "x.received.json", "\u202egnp.json", "CON.json"):
        box.write(name, json.dumps(ASK | {"request_id": "named"}).encode())
    for number in range(10):
        for suffix in (".received", ".resumed", ".lease", ".received.received", ".tmp", ""):
            box.write(f"{'y' * 64}{number}{suffix}", b"{")
            box.write(os.fsdecode(b"\xff%d" % number) + suffix, b"{")


def folders(box: Box) -> None:
    """Folders where files are looked for: full, deep, closed, and never the same."""
    for name in ("full.json", "full.lease", f"{box.victim}.received", "full.resumed"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=box.tasks)
        for number in range(50 * box.size):
            box.write(f"{name}/{number}.json", b"{")
    for name in ("deep.json", "deep.lease"):
        nest(box.tasks, name, 1_000 + 100 * box.size)
    os.mkdir("closed.json", 0o000, dir_fd=box.tasks)
    for number in box.running():
        with contextlib.suppress(OSError):
            os.mkdir("moving.json", 0o700, dir_fd=box.tasks)
            os.symlink(box.canary, f"moving.json/{number}", dir_fd=box.tasks)
            os.rename("moving.json", "moved.json", src_dir_fd=box.tasks, dst_dir_fd=box.tasks)


def nest(fd: int, name: str, depth: int) -> None:
    fd = os.dup(fd)
    for _ in range(depth):
        os.mkdir(name, 0o700, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd, name = below, "d"
    os.close(fd)


def forgeries(box: Box) -> None:
    """Answers, receipts and claims that nobody gave."""
    for request_id in ("mine", box.victim):
        answer = {"v": 1, "request_id": request_id, "outcome": "answered", "answered_by": "ana"}
        body = json.dumps(answer | {"answers": [{"selected": ["Yes"]}]}).encode()
        box.write(f"{request_id}.json", body, box.responses)
        box.write(f"{request_id}.outcome.json", body)
        box.write(f"{request_id}.response.json", body)
        claim = json.dumps({"v": 1, "by": "host", "claim": "0" * 32}).encode()
        for suffix in ("received", "resumed"):
            box.write(f"{request_id}.{suffix}", claim)
        box.write(f"{request_id}.json", body, box.input)
    box.ask("mine")
    for kind in ("answer", "decline", "answered", "sweep", "../ask_user:ask"):
        body = json.dumps({"v": 1, "type": f"ask_user:{kind}", "request_id": box.victim})
        box.write(f"{os.urandom(4).hex()}.json", body.encode())
    for kind in ("cancel", "withdraw"):
        body = json.dumps({"v": 1, "type": f"ask_user:{kind}", "request_id": box.victim})
        box.write(f"{box.victim}.{kind}.json", body.encode())


def leases(box: Box) -> None:
    """More leases than any process could hold, of every age, for questions that end at once."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    body = json.dumps({"v": 1, "boot_id": boot_id, "session_id": "s"}).encode()
    for number in range(100 * box.size):
        box.write(f"many-{number}.lease", body if number % 2 else b"[" * 5_000)
        for when in (0, 2**31, 2**33):
            with contextlib.suppress(OSError):
                os.utime(f"many-{number}.lease", (when, when + number), dir_fd=box.tasks)
    asked = [{"question": "Go on?", "default": "yes"}]
    for number in range(10 * box.size):
        # Half of them name a lease that is not there, so that all others must be looked through.
        lease = f"many-{number}" if number % 2 else "gone"
        fields = {"questions": asked, "wait_seconds": 0, "session_id": "t", "lease": lease}
        box.ask(f"held-{number}", **fields)
    for count in box.running():
        for number in range(0, 100 * box.size, 7):
            with contextlib.suppress(OSError):
                os.utime(f"many-{number}.lease", (count, count), dir_fd=box.tasks)
        time.sleep(0.1)


def clocks(box: Box) -> None:
    """Files from before the epoch and from after the end of time, half-written for ever."""
    for number, when in enumerate((0, -1, 2**31, 2**33, 2**40, time.time() + 0.5)):
        for name in (f"clock-{number}.json", f"clock-{number}.lease", f"clock-{number}.received"):
            box.write(name, b"{")
            with contextlib.suppress(OSError, OverflowError):
                os.utime(name, (when, when), dir_fd=box.tasks)
    for _ in box.running():
        fd = os.open("never-whole.json", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=box.tasks)
        os.write(fd, b"{")
        os.utime(fd)
        os.close(fd)


def flood(box: Box) -> None:
    """As many files as the disk takes, of every sort, and all the time."""
    junk = json.dumps(ASK | {"request_id": "flood", "questions": []}).encode()
    for number in range(500 * box.size):
        suffix = ("json", "json", "lease", "received", "tmp")[number % 5]
        box.write(f"flood-{number}.{suffix}", junk)


def masses(box: Box) -> None:
    """Every kind of file, known and unknown, by the thousand, wherever it can be written."""
    lease = json.dumps({"v": 1, "session_id": "s"}).encode()
    ask = json.dumps(ASK | {"request_id": "mass"}).encode()
    plain = {
        "json": ask,
        "half.json": ask[:-9],
        "empty.json": b"",
        "cancel.json": b'{"v": 1, "type": "ask_user:cancel", "request_id": "mass"}',
        "withdraw.json": b'{"v": 1, "type": "ask_user:withdraw", "request_id": "mass"}',
        "lease": lease,
        "received": b"{}",
        "resumed": b"{}",
        "unknown": b"x",
    }
    odd: dict[str, Callable[[str, int], object]] = {
        "folder": lambda name, fd: os.mkdir(name, 0o700, dir_fd=fd),
        "folder.lease": lambda name, fd: os.mkdir(name, 0o700, dir_fd=fd),
        "link.json": lambda name, fd: os.symlink(box.canary, name, dir_fd=fd),
        "link.lease": lambda name, fd: os.symlink(box.canary, name, dir_fd=fd),
        "pipe.received": lambda name, fd: os.mkfifo(name, 0o600, dir_fd=fd),
        "pipe.lease": lambda name, fd: os.mkfifo(name, 0o600, dir_fd=fd),
    }
    for folder, count in ((box.tasks, 100), (box.responses, 5), (box.input, 5)):
        for number in range(count * box.size):
            for kind, data in plain.items():
                box.write(f"mass-{number}.{kind}", data, folder)
            for kind, make in odd.items():
                with contextlib.suppress(OSError):
                    make(f"mass-{number}.{kind}", folder)


def ways_out(box: Box) -> list[str]:
    """Try the doors. Return those that were open to somebody who is not the host."""
    tries: dict[str, Callable[[], object]] = {
        "list the group": lambda: os.listdir(os.open("..", os.O_RDONLY, dir_fd=box.tasks)),
        "read a record": lambda: os.open("../pending_questions", os.O_RDONLY, dir_fd=box.tasks),
        "write an outcome": lambda: os.mkdir("../outcomes/x", dir_fd=box.tasks),
        "leave the group": lambda: os.open("../../victims", os.O_RDONLY, dir_fd=box.tasks),
        "swap a folder": lambda: os.rename(
            "../responses", "../away", src_dir_fd=box.tasks, dst_dir_fd=box.tasks
        ),
        "read the token": lambda: Path(box.data, "token").read_text(),
        "read the canary": lambda: Path(box.canary).read_text(),
        "list the data folder": lambda: os.listdir(box.data),
    }
    return [name for name, attempt in tries.items() if _succeeds(attempt)]


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


ATTACKS = {
    attack.__name__: attack
    for attack in (
        links,
        swaps,
        specials,
        devices,
        hard_links,
        giants,
        ids,
        names,
        folders,
        forgeries,
        leases,
        clocks,
        flood,
        masses,
    )
}


def main(attack: str, facts: str) -> None:
    box = Box(**json.loads(facts))
    if box.uid is not None:
        if attack == "devices":
            for number, minor in enumerate((1, 3, 5, 8, 9)):
                with contextlib.suppress(OSError):
                    device = os.makedev(1, minor)
                    os.mknod(f"dev-{number}.json", stat.S_IFCHR | 0o666, device, dir_fd=box.tasks)
        os.setgroups([])
        os.setgid(box.uid)
        os.setuid(box.uid)
    found = ways_out(box) if box.uid is not None else []
    ATTACKS[attack](box)
    print(json.dumps(found))  # noqa: T201 - what it is asked for


if __name__ == "__main__":
    main(*sys.argv[1:])
