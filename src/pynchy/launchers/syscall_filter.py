"""The system calls that a box is refused: keys, user namespaces, and ways to services outside.

Keys belong to a user and a login, whatever namespace asks for them; in a user namespace of its own
an agent could look beneath the box's mounts, and use up those that other boxes need; a socket file
can be connected to wherever it is seen, also on a read-only mount; and some kinds of socket know no
namespaces. So none of these calls is let through unless the settings say so. A call of another
machine's ABI would have other numbers: no program for it runs in a box.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, AF_UNIX, SOCK_SEQPACKET, SOCK_STREAM
from typing import NamedTuple

from pynchy.errors import DeliveryFailed

# Not in the socket module of every system.
_AF_NETLINK = 16
# Both of a pair are bound to each other for good; a datagram socket could still be sent elsewhere.
_PAIRED = (SOCK_STREAM, SOCK_SEQPACKET)
_TYPE_MASK = 0xF
_IO_URING_SETUP = 425
_CLONE3 = 435
_NEW_USER_NAMESPACE = 0x1000_0000
_X32_BIT = 0x4000_0000
_JOIN_SESSION_KEYRING = 1

# Of classic BPF, and of seccomp(2).
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY = 0x15, 0x35, 0x45
_ALLOW, _ERRNO = 0x7FFF_0000, 0x0005_0000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16


class Instruction(NamedTuple):
    """One step of a filter: what it does, how many to skip if so or if not, and its operand."""

    code: int
    if_so: int
    if_not: int
    operand: int


@dataclass(frozen=True, slots=True)
class Abi:
    """What the calls are called by on one kind of machine."""

    arch: int
    keys: tuple[int, int, int]
    socket: int
    socketpair: int
    clone: int
    unshare: int
    # Which argument of clone they are.
    clone_flags_at: int = 0
    # All calls of sockets in one, with arguments that a filter cannot see.
    socketcall: int | None = None
    is_x32_possible: bool = False
    is_big_endian: bool = False

    @property
    def keyctl(self) -> int:
        """The call that manages keys."""
        return self.keys[2]


# The three calls are add_key, request_key and keyctl.
_GENERIC = (217, 218, 219)
_ABIS = {
    "x86_64": Abi(0xC000_003E, (248, 249, 250), 41, 53, 56, 272, is_x32_possible=True),
    "i686": Abi(0x4000_0003, (286, 287, 288), 359, 360, 120, 310, socketcall=102),
    "aarch64": Abi(0xC000_00B7, _GENERIC, 198, 199, 220, 97),
    "armv7l": Abi(0x4000_0028, (309, 310, 311), 281, 288, 120, 337),
    "riscv64": Abi(0xC000_00F3, _GENERIC, 198, 199, 220, 97),
    "loongarch64": Abi(0xC000_0102, _GENERIC, 198, 199, 220, 97),
    "ppc64le": Abi(0xC000_0015, (269, 270, 271), 326, 333, 120, 282, socketcall=102),
    "s390x": Abi(
        *(0x8000_0016, (278, 279, 280), 359, 360, 120, 303),
        clone_flags_at=1,
        socketcall=102,
        is_big_endian=True,
    ),
}
_32_BITS_OF = {"x86_64": "i686", "aarch64": "armv7l", "armv8l": "armv7l"}


def own_abi() -> Abi:
    """Return the ABI of this very program. Raise DeliveryFailed if it is not known."""
    machine = os.uname().machine
    if sys.maxsize < 2**32:
        machine = _32_BITS_OF.get(machine, machine)
    if (abi := _ABIS.get(machine)) is None:
        raise DeliveryFailed(f"no box can be closed on a machine of the kind {machine}: use docker")
    return abi


def filter_bytes(abi: Abi, *, with_sockets: bool, with_user_namespaces: bool) -> bytes:
    """Return the filter as bwrap and the kernel take it.

    Without sockets there are none but those of the box's own network, and pairs.
    """
    steps = [*_only_own_abi(abi), *(step for call in abi.keys for step in _refuse(call))]
    if not with_user_namespaces:
        steps += _refuse_user_namespaces(abi)
    if not with_sockets:
        steps += _refuse_sockets(abi)
    return b"".join(struct.pack("=HBBI", *step) for step in [*steps, _allow()])


def leave_session_keyring() -> None:
    """Take a session keyring of our own, so that not even a hole in the filter leads to ours.

    That it fails (no key store in this kernel, no room in it) is no reason to start nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).syscall(own_abi().keyctl, _JOIN_SESSION_KEYRING, None)


def _only_own_abi(abi: Abi) -> Iterator[Instruction]:
    yield Instruction(_LOAD, 0, 0, _ARCH_AT)
    yield Instruction(_IF_EQUAL, 1, 0, abi.arch)
    yield _fail(errno.ENOSYS)
    yield Instruction(_LOAD, 0, 0, _NUMBER_AT)
    if abi.is_x32_possible:
        yield Instruction(_IF_AT_LEAST, 0, 1, _X32_BIT)
        yield _fail(errno.ENOSYS)


def _refuse(call: int) -> Iterator[Instruction]:
    yield Instruction(_IF_EQUAL, 0, 1, call)
    yield _fail(errno.EPERM)


def _refuse_user_namespaces(abi: Abi) -> Iterator[Instruction]:
    for call, flags_at in ((abi.clone, abi.clone_flags_at), (abi.unshare, 0)):
        is_one = Instruction(_IF_ANY, 0, 1, _NEW_USER_NAMESPACE)
        flags = _argument(abi, flags_at)
        yield from _in_call(call, [flags, is_one, _fail(errno.EPERM), _allow()])
    # Its flags lie in memory, which a filter cannot see; who is told so takes clone instead.
    yield Instruction(_IF_EQUAL, 0, 1, _CLONE3)
    yield _fail(errno.ENOSYS)


def _refuse_sockets(abi: Abi) -> Iterator[Instruction]:
    # A ring makes and connects sockets without a call that could be seen.
    yield from _refuse(_IO_URING_SETUP)
    if abi.socketcall is not None:
        yield from _refuse(abi.socketcall)
    family, kind = (_argument(abi, number) for number in (0, 1))
    own = list(_one_of((AF_INET, AF_INET6, _AF_NETLINK)))
    yield from _in_call(abi.socket, [family, *own])
    is_pair = [family, Instruction(_IF_EQUAL, 1, 0, AF_UNIX), _fail(errno.EAFNOSUPPORT)]
    type_alone = Instruction(_AND, 0, 0, _TYPE_MASK)
    yield from _in_call(abi.socketpair, [*is_pair, kind, type_alone, *_one_of(_PAIRED)])


def _in_call(call: int, steps: list[Instruction]) -> Iterator[Instruction]:
    yield Instruction(_IF_EQUAL, 0, len(steps), call)
    yield from steps


def _one_of(allowed: tuple[int, ...]) -> Iterator[Instruction]:
    """Allow the call if what was loaded is one of these, and refuse it if not."""
    for number, value in enumerate(allowed):
        yield Instruction(_IF_EQUAL, len(allowed) - number, 0, value)
    yield _fail(errno.EAFNOSUPPORT)
    yield _allow()


def _argument(abi: Abi, number: int) -> Instruction:
    # The kernel, too, looks at the lower half alone.
    low_half = 4 if abi.is_big_endian else 0
    return Instruction(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * number + low_half)


def _fail(number: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, _ERRNO | number)


def _allow() -> Instruction:
    return Instruction(_RETURN, 0, 0, _ALLOW)
