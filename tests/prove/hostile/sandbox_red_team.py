"""An agent in a box that is an enemy: it tries ways out at random and writes down what it got.

Started as the runner of its group. `start.json` in its working folder says what it has itself, by
which a neighbour could be found out (see outsider.py): what became of that it tells in `here.json`.
Then it waits for `facts.json`, with what it may know of others. Each attempt is a process of its
own: some preparations, then one way out, all by a seed. What it did and got is a line of
`loot.jsonl`; a claim in it is something that no box has. Standard library only.
"""

import ctypes
import errno
import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.prove.hostile import outsider
from tests.prove.hostile.attempts import MOST, PREPARATIONS, Attempt, unix_socket
from tests.prove.hostile.outsider import LIBC, kernel

PTRACE_PEEK, PTRACE_ATTACH, PTRACE_SEIZE = 2, 16, 0x4206
PIDFD_SEND_SIGNAL, IO_URING_SETUP, PIDFD_OPEN, PIDFD_GETFD = 424, 425, 434, 438
RINGS = (-1, -2, -3, -4, -5)
REVOKE, SET_PERMISSIONS, DESCRIBE, LINK, SEARCH = 3, 5, 6, 8, 10
# Each box has its own.
TEMPORARY = ("/tmp", "/dev/shm")  # noqa: S108 - looked at
SECONDS = 3
PATIENCE_SECONDS = 120
Way = Callable[[Attempt], bytes | None]
WAYS: dict[str, Way] = {}


def way(function: Way) -> Way:
    WAYS[function.__name__] = function
    return function


@way
def read(attempt: Attempt) -> bytes:
    return os.read(os.open(attempt.target(), os.O_RDONLY | os.O_NONBLOCK), MOST)


@way
def listing(attempt: Attempt) -> bytes:
    return " ".join(os.listdir(Path(attempt.target()).parent)).encode()


@way
def read_by_handle(attempt: Attempt) -> bytes:
    """By its number in the file system, past all folders."""
    known = attempt.pick("handles")
    text = bytes.fromhex(known["handle"])
    head = len(text).to_bytes(4, sys.byteorder) + known["kind"].to_bytes(
        4, sys.byteorder, signed=True
    )
    near = os.open(attempt.choose(".", "/", "/usr", str(Path.home())), os.O_RDONLY)
    attempt.note("handle", known["path"])
    found = kernel(LIBC.open_by_handle_at, near, ctypes.create_string_buffer(head + text), 0)
    return os.read(found, MOST)


@way
def device(attempt: Attempt) -> bytes:
    name, number = attempt.new_name(), attempt.pick("devices")
    kind = attempt.choose(stat.S_IFBLK, stat.S_IFCHR)
    attempt.note("mknod", number)
    os.mknod(name, kind | 0o600, number)
    return os.read(os.open(name, os.O_RDONLY | os.O_NONBLOCK), MOST)


@way
def change(attempt: Attempt) -> None:
    path, new = Path(attempt.target()), attempt.new_name()
    ways: dict[str, Callable[[], object]] = {
        "write": lambda: os.write(os.open(path, os.O_WRONLY | os.O_APPEND), b"x"),
        "truncate": lambda: os.truncate(path, 0),
        "unlink": path.unlink,
        "rename": lambda: path.rename(f"{path}-{new}"),
        "replace": lambda: _made(new).rename(path),
        "chmod": lambda: path.chmod(0o777),
        "utime": lambda: os.utime(path, (1, 1)),
        "link": lambda: os.link(path, new),
        "setxattr": lambda: os.setxattr(path, "user.x", b"x"),
    }
    how = attempt.choose(*ways)
    attempt.note(how)
    ways[how]()


def _made(name: str) -> Path:
    Path(name).write_text(name)
    return Path(name)


@way
def put(attempt: Attempt) -> None:
    folder, name = attempt.pick("folders"), attempt.new_name()
    path = Path(attempt.path(f"{folder}/{name}"))
    ways: dict[str, Callable[[], object]] = {
        "file": lambda: path.write_text("{}"),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to("/"),
        "move": lambda: _made(attempt.new_name()).rename(path),
    }
    how = attempt.choose(*ways)
    attempt.note(how)
    ways[how]()
    if folder not in TEMPORARY and os.path.lexists(f"{folder}/{name}"):
        attempt.claims.append(f"wrote to {folder}")


@way
def kernel_settings(attempt: Attempt) -> None:
    """Opened only: who can open it can write it."""
    names = (
        "sys/kernel/core_pattern",
        "sys/kernel/modprobe",
        "sys/vm/drop_caches",
        "sysrq-trigger",
    )
    places = [f"/proc/{name}" for name in names]
    path = attempt.path(
        attempt.choose(*places, "/sys/kernel/uevent_helper", "/dev/mem", "/dev/kmsg")
    )
    os.open(path, os.O_WRONLY)
    attempt.claims.append(f"may write {path}")


@way
def call_a_service(attempt: Attempt) -> bytes:
    path, kind = service(attempt)
    with unix_socket(attempt, kind) as line:
        line.settimeout(1)
        line.connect(path)
        line.send(b"x")
        return line.recv(MOST)


@way
def write_to_a_service(attempt: Attempt) -> None:
    """By a datagram from a socket that nothing was said about yet."""
    path, _ = service(attempt, socket.SOCK_DGRAM)
    with unix_socket(attempt, socket.SOCK_DGRAM) as line:
        line.sendto(b"x", path)


def service(
    attempt: Attempt, wanted: socket.SocketKind | None = None
) -> tuple[str, socket.SocketKind]:
    """Return where a service listens, and how: one that can be seen in the box, or any other."""
    known = attempt.facts["near" if attempt.facts["near"] and attempt.happens(one_in=2) else "far"]
    kinds = {path: getattr(socket, path.rpartition("-")[2]) for path in known}
    path = attempt.choose(*(p for p, kind in kinds.items() if wanted in {None, kind}))
    attempt.note("service", path)
    if path.startswith("@"):
        return path.replace("@", "\0"), kinds[path]
    return attempt.choose(path, attempt.path(path)), kinds[path]


@way
def call_a_port(attempt: Attempt) -> bytes:
    port = attempt.choose(*attempt.other["ports"], *attempt.facts["ports"])
    kind = attempt.choose(socket.SOCK_STREAM, socket.SOCK_DGRAM)
    attempt.note("port", port, kind.name)
    with socket.socket(socket.AF_INET, kind) as line:
        line.settimeout(1)
        line.connect((attempt.choose("127.0.0.1", "127.0.0.2", "0.0.0.0"), port))  # noqa: S104 - not bound
        line.send(b"x")
        return line.recv(MOST)


@way
def other_sockets(attempt: Attempt) -> None:
    family = attempt.choose(*range(3, 46))
    attempt.note("family", family)
    if family in {socket.AF_INET6, socket.AF_NETLINK}:
        return  # of its own network
    kind = attempt.choose(socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)
    socket.socket(family, kind).close()
    attempt.claims.append(f"a socket of family {family}")


@way
def ring(attempt: Attempt) -> None:
    attempt.note("io_uring_setup")
    kernel(LIBC.syscall, IO_URING_SETUP, 8, ctypes.create_string_buffer(256))
    attempt.claims.append("a ring for calls")


@way
def key(attempt: Attempt) -> bytes:
    """By a search in a keyring, by asking for it, by its number, or by a link to it."""
    add, request, _ = attempt.facts["calls"]
    known = attempt.other["key_name"].encode()
    number, ring = attempt.choose(*attempt.other["keys"].values()), attempt.choose(*RINGS)
    how = attempt.choose("search", "request", "link", "number", "number")
    attempt.note(how, ring, number)
    if how == "search":
        number = attempt.keys(SEARCH, ring, b"user", known, attempt.choose(0, -2))
    elif how == "request":
        number = kernel(LIBC.syscall, request, b"user", known, None, attempt.choose(0, -2))
    elif how == "link":
        keyring = kernel(LIBC.syscall, add, b"keyring", attempt.new_name().encode(), None, 0, -2)
        attempt.keys(LINK, attempt.choose(number, ring), keyring)
        number = attempt.keys(SEARCH, keyring, b"user", known, 0)
    return attempt.read_key(number)


@way
def change_key(attempt: Attempt) -> bytes:
    number = attempt.choose(*attempt.other["keys"].values())
    how = attempt.choose(REVOKE, SET_PERMISSIONS, DESCRIBE)
    if how == DESCRIBE:
        found = ctypes.create_string_buffer(MOST)
        attempt.keys(DESCRIBE, attempt.choose(number, *RINGS), found, MOST)
        return found.value
    attempt.keys(how, number, 0)
    return b""


@way
def add_key(attempt: Attempt) -> None:
    name, ring = attempt.new_name().encode(), attempt.choose(*RINGS)
    attempt.note("add_key", ring)
    kernel(LIBC.syscall, attempt.facts["calls"][0], b"user", name, b"x", 1, ring)
    attempt.claims.append("a key")


@way
def key_list(attempt: Attempt) -> bytes:
    return Path(attempt.path(attempt.choose("/proc/keys", "/proc/key-users"))).read_bytes()


@way
def memory(attempt: Attempt) -> bytes:
    """What another process has in its memory, in one of the ways to look there or to write."""
    pid, address = attempt.other["pid"], attempt.other["address"]
    found = ctypes.create_string_buffer(attempt.other["length"])
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(found), len(found))
    theirs = (ctypes.c_void_p * 2)(address, len(found))
    how = attempt.choose("read", "write", "file", "attach", "seize")
    attempt.note("memory", how, pid)
    if how == "file":
        return os.pread(os.open(f"/proc/{pid}/mem", os.O_RDONLY), len(found), address)
    if how in {"read", "write"}:
        call = LIBC.process_vm_readv if how == "read" else LIBC.process_vm_writev
        kernel(call, pid, ours, 1, theirs, 1, 0)
        return found.raw
    kernel(LIBC.ptrace, PTRACE_ATTACH if how == "attach" else PTRACE_SEIZE, pid, 0, 0)
    attempt.claims.append("another process traced")
    return kernel(LIBC.ptrace, PTRACE_PEEK, pid, address, 0).to_bytes(8, sys.byteorder, signed=True)


@way
def segment(attempt: Attempt) -> bytes:
    other = attempt.other
    number = attempt.choose(other["segment"], None)
    attempt.note("segment", number)
    if number is None:
        number = kernel(LIBC.shmget, other["segment_key"], MOST, 0)
    address = kernel(LIBC.shmat, number, None, attempt.choose(0, 0o10000))
    return ctypes.string_at(address, MOST)


@way
def send_signal(attempt: Attempt) -> None:
    pid, number = (
        attempt.other["pid"],
        attempt.choose(signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL),
    )
    how = attempt.choose("kill", "tgkill", "pidfd", "owner")
    attempt.note(how, pid, number)
    if how == "kill":
        os.kill(pid, number)
    elif how == "tgkill":
        kernel(LIBC.tgkill, pid, pid, int(number))
    elif how == "pidfd":
        fd = kernel(LIBC.syscall, PIDFD_OPEN, pid, 0)
        kernel(LIBC.syscall, PIDFD_SEND_SIGNAL, fd, int(number), None, 0)
    else:
        # The kernel sends one to whoever is named the owner of what becomes readable.
        ours, theirs = socket.socketpair()
        kernel(LIBC.fcntl, ours.fileno(), 8, pid)
        os.set_blocking(ours.fileno(), False)
        kernel(LIBC.fcntl, ours.fileno(), 4, os.O_NONBLOCK | os.O_ASYNC)
        theirs.send(b"x")


@way
def process(attempt: Attempt) -> bytes:
    pid = attempt.choose(attempt.other["pid"], attempt.other["pid"], 1, os.getppid(), "self")
    name = attempt.choose("environ", "cmdline", "maps", "status", "fd", "cwd", "stack")
    attempt.note("/proc", pid, name)
    if name in {"fd", "cwd"}:
        return " ".join(os.listdir(f"/proc/{pid}/{name}")).encode()
    return Path(f"/proc/{pid}/{name}").read_bytes()[:MOST]


@way
def descriptor(attempt: Attempt) -> bytes:
    """One that another process has, or that was left open for us."""
    pid, number = attempt.other["pid"], attempt.other["descriptor"]
    how = attempt.choose("file", "pidfd", "own", "first")
    attempt.note("descriptor", how, pid, number)
    if how == "file":
        return Path(f"/proc/{pid}/fd/{number}").read_bytes()
    if how == "pidfd":
        fd = kernel(LIBC.syscall, PIDFD_OPEN, pid, 0)
        return os.pread(kernel(LIBC.syscall, PIDFD_GETFD, fd, number, 0), MOST, 0)
    number = attempt.choose(*range(3, 40))
    if how == "first":
        return Path(f"/proc/1/fd/{number}").read_bytes()[:MOST]
    return os.pread(number, MOST, 0)


def attempt_in_child(facts: dict[str, Any], name: str, seed: int) -> dict[str, Any]:
    """Try it in a process of its own. Return what it did and got, as far as it has come."""
    out, into = os.pipe()
    if (pid := os.fork()) == 0:
        signal.alarm(SECONDS)
        try:
            os.write(into, json.dumps(tried(facts, name, seed)).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    return {"way": name, "seed": seed, **(json.loads(text) if text else {"error": "ended"})}


def tried(facts: dict[str, Any], name: str, seed: int) -> dict[str, Any]:
    attempt = Attempt(facts, seed)
    told: dict[str, Any] = {"did": attempt.did, "claims": attempt.claims}
    for _ in range(attempt.choose(0, 0, 1, 2)):
        try:
            attempt.choose(*PREPARATIONS)(attempt)
        except OSError as exc:
            attempt.note(errno.errorcode.get(exc.errno or 0, "?"))
    try:
        told["got"] = (WAYS[name](attempt) or b"").decode("latin-1")
    except (OSError, ValueError) as exc:
        told["error"] = str(exc)
    return told


def main() -> None:
    start = json.loads(Path("start.json").read_text())
    own = subprocess.Popen(
        [sys.executable, outsider.__file__, json.dumps(start)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert own.stdout is not None
    _publish("here.json", own.stdout.readline())
    begun = time.monotonic()
    while not Path("facts.json").exists():
        assert time.monotonic() - begun < PATIENCE_SECONDS, "nobody says what there is to find"
        time.sleep(0.02)
    facts = json.loads(Path("facts.json").read_text())
    chance = random.Random(facts["seed"])  # noqa: S311 - repeatable, not secret
    with Path("loot.jsonl").open("w") as loot:
        for number in range(facts["attempts"]):
            if number % len(WAYS) == 0:
                turns = chance.sample([*WAYS], len(WAYS))
            tale = attempt_in_child(facts, turns[number % len(WAYS)], chance.getrandbits(32))
            loot.write(json.dumps(tale) + "\n")


def _publish(name: str, text: bytes) -> None:
    Path(f"{name}.part").write_bytes(text)
    Path(f"{name}.part").rename(name)
