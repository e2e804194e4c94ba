"""A program that is none of a box's business: it holds secrets, and notes who calls or signals it.

Started as `outsider.py PLAN`, where PLAN is JSON: the secret, the user to become, the system calls
for keys, and where to listen. It prints as one line of JSON what an enemy may know of it, and when
its input ends, as another, what was done to it. What the kernel refuses it, it does without.
Standard library only.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
RINGS = {"session": -3, "user": -4, "user session": -5}
OF_PROCESS = -2
EVERYTHING = 0x3F3F3F3F  # for whoever holds the key, its user, its group and all others
JOIN, SET_PERMISSIONS, LINK, READ, SET_TIMEOUT, INVALIDATE = 1, 5, 8, 11, 15, 21
SET_DUMPABLE, SET_PTRACER, BY_ANYBODY = 4, 0x59616D61, -1
CREATE, REMOVE = 0o1000, 0
PAGE = 4096
NOTED = (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGTERM, signal.SIGIO)


@dataclass
class Plan:
    """What it is told."""

    secret: str
    calls: list[int]
    segment_key: int
    sockets: list[str] = field(default_factory=list)
    uid: int | None = None


def kernel(function: Any, *arguments: Any) -> int:
    """Call into the C library. Raise OSError if that says so."""
    function.restype = ctypes.c_long
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if (result := int(function(*words))) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Keys:
    """Keys that all may read: one in each keyring of this user, and one that nobody is told of."""

    def __init__(self, plan: Plan) -> None:
        self._add, _, self._control = plan.calls
        self.name, self._payload = f"known-{plan.segment_key}", f"{plan.secret}-key".encode()
        if plan.uid is not None:
            with contextlib.suppress(OSError):
                self._call(JOIN, 0)
        for number in RINGS.values():
            with contextlib.suppress(OSError):
                # Only who holds a key may open it to others, and what lies in here is held.
                self._call(LINK, number, OF_PROCESS)
        self.ids = {ring: self._made(self.name, number) for ring, number in RINGS.items()}
        self._all = [*self.ids.values(), self._made(f"{plan.secret}-listed", RINGS["user"])]

    def _call(self, *arguments: Any) -> int:
        return kernel(LIBC.syscall, self._control, *arguments)

    def _made(self, name: str, ring: int) -> int:
        try:
            text = self._payload
            words = (b"user", name.encode(), text, len(text), ring)
            number = kernel(LIBC.syscall, self._add, *words)
            self._call(SET_PERMISSIONS, number, EVERYTHING)
            self._call(SET_TIMEOUT, number, 3600)
        except OSError:
            return 0
        return number

    def close(self) -> list[str]:
        """Remove them. Return which of them had been changed."""
        made = {ring: number for ring, number in self.ids.items() if number}
        changed = [ring for ring, number in made.items() if not self._is_as_it_was(number)]
        for number in filter(None, self._all):
            with contextlib.suppress(OSError):
                self._call(INVALIDATE, number)
        return changed

    def _is_as_it_was(self, number: int) -> bool:
        found = ctypes.create_string_buffer(PAGE)
        try:
            length = self._call(READ, number, found, PAGE)
        except OSError:
            return False
        return found.raw[:length] == self._payload


class Segment:
    """Shared memory that all may read and write."""

    def __init__(self, plan: Plan) -> None:
        self._text = f"{plan.secret}-segment".encode()
        self.number = kernel(LIBC.shmget, plan.segment_key, PAGE, CREATE | 0o666)
        self._address = kernel(LIBC.shmat, self.number, None, 0)
        ctypes.memmove(self._address, self._text, len(self._text))

    def close(self) -> bool:
        """Remove it. Return True if it had been changed."""
        changed = ctypes.string_at(self._address, len(self._text)) != self._text
        kernel(LIBC.shmctl, self.number, REMOVE, None)
        return changed


class Services:
    """Sockets of every kind, with a note of who has called them. Callers are told the secret."""

    def __init__(self, plan: Plan) -> None:
        self.calls: list[str] = []
        self._word = f"{plan.secret}-service".encode()
        self._selector = selectors.DefaultSelector()
        self.ports = [self._listen(socket.AF_INET, kind, ("127.0.0.1", 0)) for kind in _KINDS[:2]]
        self.sockets = [
            f"{path}-{kind.name}"
            for path in plan.sockets
            for kind in _KINDS
            if self._listen(socket.AF_UNIX, kind, f"{path}-{kind.name}")
        ]

    def _listen(self, family: int, kind: socket.SocketKind, where: Any) -> int:
        try:
            line = socket.socket(family, kind)
            line.bind(where.replace("@", "\0") if isinstance(where, str) else where)
        except OSError:
            return 0
        if isinstance(where, str) and not where.startswith("@"):
            os.chmod(where, 0o777)  # noqa: S103, PTH101 - open to everybody on purpose
        if kind != socket.SOCK_DGRAM:
            line.listen()
        line.settimeout(0)
        self._selector.register(line, selectors.EVENT_READ, data=str(where))
        return int(line.getsockname()[1]) if family == socket.AF_INET else 1

    def serve(self, stdin: int) -> None:
        """Serve until the input ends, and then those who have called by then."""
        self._selector.register(stdin, selectors.EVENT_READ)
        while self._answer_all(None):
            continue
        self._selector.unregister(stdin)
        while self._answer_all(0):
            continue

    def _answer_all(self, seconds: float | None) -> bool:
        """Answer who has called; return False if there is nobody left, or the input has ended."""
        ready = [key for key, _ in self._selector.select(seconds)]
        for key in ready:
            if key.data is not None:
                self._answer(key.fileobj, key.data)
        return bool(ready) and all(key.data is not None for key in ready)

    def _answer(self, line: Any, where: str) -> None:
        self.calls.append(where)
        with contextlib.suppress(OSError):
            if line.type == socket.SOCK_DGRAM:
                _, caller_at = line.recvfrom(PAGE)
                if caller_at:  # one of a pair has no address
                    line.sendto(self._word, caller_at)
            else:
                with line.accept()[0] as caller:
                    caller.send(self._word)


_KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)


def become(uid: int | None) -> None:
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    # As open as any program is: who may trace it, can.
    LIBC.prctl(SET_DUMPABLE, 1, 0, 0, 0)
    LIBC.prctl(SET_PTRACER, ctypes.c_long(BY_ANYBODY), 0, 0, 0)


def main(told: str) -> None:
    plan = Plan(**json.loads(told))
    signals: list[str] = []
    for number in NOTED:
        signal.signal(number, lambda found, _: signals.append(signal.Signals(found).name))
    services = Services(plan)
    become(plan.uid)
    keys, segment = Keys(plan), Segment(plan)
    text = f"{plan.secret}-memory".encode()
    memory = ctypes.create_string_buffer(text, PAGE)
    with tempfile.TemporaryFile() as file:
        file.write(f"{plan.secret}-descriptor".encode())
        file.flush()
        known = {"pid": os.getpid(), "address": ctypes.addressof(memory), "length": len(text)}
        known |= {"descriptor": file.fileno(), "keys": keys.ids, "key_name": keys.name}
        known |= {"segment": segment.number, "segment_key": plan.segment_key}
        known |= {"ports": services.ports, "sockets": services.sockets}
        print(json.dumps(known), flush=True)  # noqa: T201 - what it is asked for
        services.serve(sys.stdin.fileno())
    changed = [*keys.close(), *(["segment"] if segment.close() else [])]
    changed += ["memory"] if memory.value != text else []
    done = {"calls": services.calls, "signals": signals, "changed": changed}
    print(json.dumps(done), flush=True)  # noqa: T201 - the same


if __name__ == "__main__":
    main(*sys.argv[1:])
