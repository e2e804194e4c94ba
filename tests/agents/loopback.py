"""Cut this process off from every network but loopback."""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_NEWUSER = 0x10000000
_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1


def enter_own_network() -> bool:
    """Move this process and all that it starts into a network namespace with loopback alone.

    Return False where the system does not let us.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEWNET if user == 0 else _NEWNET | _NEWUSER) != 0:
        return False
    if user != 0:  # be who we were
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14s", b"lo", _IFF_UP, b"")
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
    return True
