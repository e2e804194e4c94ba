"""One attempt of an enemy in a box to get out of it: its chance, and what it prepares first.

Preparations change what the process is or sees: namespaces, mounts, its root, user, groups and
keyrings. Those that a box refuses change nothing. Here are also the ways to make a Unix socket.
Standard library only.
"""

import ctypes
import mmap
import os
import platform
import random
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.prove.hostile.outsider import LIBC, kernel

NEW_USER = 0x10000000
# Mounts, control groups, host names, IPC, users, processes, networks.
NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, NEW_USER, 0x20000000, 0x40000000)
BIND, REMOUNT, DETACH = 4096, 32, 2
OPEN_TREE, MOVE_MOUNT, CLONE3 = 428, 429, 435
JOIN, READ = 1, 11
MOST = 4096
PREPARATIONS: list[Callable[["Attempt"], object]] = []


def preparation(function: Callable[["Attempt"], object]) -> Callable[["Attempt"], object]:
    PREPARATIONS.append(function)
    return function


class Attempt:
    """One attempt: what it knows, its chance, and what it did and got so far."""

    def __init__(self, facts: dict[str, Any], seed: int) -> None:
        self.facts = facts
        self._chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.other: dict[str, Any] = self.pick("others")
        self.did: list[str] = []
        self.claims: list[str] = []

    def choose(self, *options: Any) -> Any:
        return self._chance.choice(options)

    def happens(self, one_in: int) -> bool:
        return self._chance.randrange(one_in) == 0

    def pick(self, name: str) -> Any:
        return self._chance.choice(self.facts[name])

    def note(self, *words: object) -> None:
        self.did.append(" ".join(map(str, words)))

    def new_name(self) -> str:
        """A name by which what it has made is known outside."""
        return f"{self.facts['mark']}-{self._chance.getrandbits(32):x}"

    def path(self, path: str) -> str:
        """Another way to say that path."""
        pid = self.other["pid"]
        roots = ("", "", "/proc/self/root", "/proc/1/root", f"/proc/{pid}/root", "../" * 40)
        said = str(self.choose(*roots)) + path
        if self.happens(one_in=4):
            link = self.new_name()
            Path(link).symlink_to(said)
            said = link
        elif self.happens(one_in=3):
            root = os.open(self.choose("/", "/dev", "/proc", "."), os.O_PATH)
            said = f"/proc/self/fd/{root}/" + "../" * 40 + path
        self.note(said)
        return said

    def target(self) -> str:
        return self.path(self.pick("files"))

    def keys(self, *arguments: Any) -> int:
        self.note("keyctl", *arguments)
        return kernel(LIBC.syscall, self.facts["calls"][2], *arguments)

    def read_key(self, number: int) -> bytes:
        found = ctypes.create_string_buffer(MOST)
        length = self.keys(READ, number, found, MOST)
        return found.raw[:length]


def _user_namespace() -> str:
    return str(Path("/proc/self/ns/user").readlink())


@preparation
def unshare(attempt: Attempt) -> None:
    flags = attempt.choose(*NAMESPACES) | attempt.choose(0, 0, NEW_USER, *NAMESPACES)
    attempt.note("unshare", hex(flags))
    uid, gid, before = os.getuid(), os.getgid(), _user_namespace()
    kernel(LIBC.unshare, flags)
    if _user_namespace() != before:
        attempt.claims.append("a user namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        Path("/proc/self", name).write_text(text)


@preparation
def clone(attempt: Attempt) -> None:
    """A child in a user namespace by the calls that the C library does not have."""
    arguments = (ctypes.c_uint64 * 8)(NEW_USER, 0, 0, 0, signal.SIGCHLD)
    attempt.note("clone3")
    if kernel(LIBC.syscall, CLONE3, arguments, 64) == 0:
        os._exit(0)
    attempt.claims.append("a user namespace")


@preparation
def set_namespace(attempt: Attempt) -> None:
    pid = attempt.choose(1, attempt.other["pid"], "self")
    name = attempt.choose("mnt", "pid", "user", "net", "ipc", "uts", "cgroup")
    attempt.note("setns", pid, name)
    kernel(LIBC.setns, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0)


@preparation
def change_root(attempt: Attempt) -> None:
    attempt.note("chroot")
    here = os.open("/", os.O_PATH)
    Path(name := attempt.new_name()).mkdir()
    os.chroot(name)
    os.fchdir(here)
    os.chdir("../" * 40)
    os.chroot(".")


@preparation
def mount(attempt: Attempt) -> None:
    """Put something somewhere, or take a cover away, or make what is read-only writable."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    point = str(attempt.choose(*(line.split()[4] for line in lines)))
    place = Path(attempt.pick("files")).parent
    how = attempt.choose(
        "writable", "writable", "uncover", "bind", "tree", "proc", "sysfs", "tmpfs"
    )
    attempt.note("mount", how, point)
    if how == "writable":
        kernel(LIBC.mount, None, point.encode(), None, BIND | REMOUNT, None)
    elif how == "uncover":
        kernel(LIBC.umount2, point.encode(), DETACH)
    elif how == "tree":
        tree = kernel(LIBC.syscall, OPEN_TREE, -100, b"/", 1)
        kernel(LIBC.syscall, MOVE_MOUNT, tree, b"", -100, b".", 4)
    elif how == "bind":
        kernel(LIBC.mount, os.fsencode(place), b".", None, BIND, None)
    else:
        kernel(
            LIBC.mount, b"none", os.fsencode(attempt.choose("/proc", ".")), how.encode(), 0, None
        )


@preparation
def change_user(attempt: Attempt) -> None:
    uid = attempt.choose(0, 1, 1000, 54_321, 65_534)
    attempt.note("setuid", uid)
    os.setresuid(uid, uid, uid)


@preparation
def join_groups(attempt: Attempt) -> None:
    attempt.note("setgroups")
    os.setgroups([attempt.choose(0, attempt.facts["group"])])


@preparation
def new_keyring(attempt: Attempt) -> None:
    attempt.keys(JOIN, attempt.choose(None, b"_ses", b"_uid.0", b"_uid_ses.0"))


@preparation
def new_session(_attempt: Attempt) -> None:
    os.setsid()


def unix_socket(attempt: Attempt, kind: socket.SocketKind) -> socket.socket:
    """Make a socket by the call for it, as one of a pair, or by the calls of another machine."""
    # Only a datagram can still be sent elsewhere by one of a pair.
    pairs = ("pair", "pair") if kind == socket.SOCK_DGRAM else ()
    how = attempt.choose("socket", "socket", "x32", "32 bits", "bits above", *pairs)
    attempt.note(how)
    if how == "pair":
        return socket.socketpair(socket.AF_UNIX, kind)[0]
    if platform.machine() == "x86_64" and how == "x32":
        return socket.socket(fileno=kernel(LIBC.syscall, 0x40000000 + 41, 1, int(kind), 0))
    if platform.machine() == "x86_64" and how == "32 bits":
        return socket.socket(fileno=_socket_of_32_bits(kind))
    if platform.machine() == "x86_64" and how == "bits above":
        return socket.socket(fileno=kernel(LIBC.syscall, 41, (1 << 40) + 1, int(kind), 0))
    return socket.socket(socket.AF_UNIX, kind)


def _socket_of_32_bits(kind: socket.SocketKind) -> int:
    number = int(kind).to_bytes(4, "little").hex()
    code = bytes.fromhex(f"53 b8 67010000 bb 01000000 b9 {number} 31d2 cd80 5b c3")
    memory = mmap.mmap(-1, MOST, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if (result := ctypes.CFUNCTYPE(ctypes.c_int)(address)()) < 0:
        raise OSError(-result, os.strerror(-result))
    return result
