"""Which OpenCode servers of our own run on this machine, by the sockets that they listen on."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath

import psutil

_NAME = "opencode"
MAX_SERVERS = 20


def find_servers() -> list[str]:
    """Return the addresses of the servers that our own user runs. Not for the loop.

    What calls itself OpenCode may be anything: nothing but questions may be sent there.
    """
    found = {
        url for process in psutil.process_iter() if _is_ours(process) for url in _urls(process)
    }
    return sorted(found)[:MAX_SERVERS]


def _is_ours(process: psutil.Process) -> bool:
    """True if it is an OpenCode that our own user runs."""
    with suppress(psutil.Error, OSError):
        if not process.name().lower().startswith((_NAME, "node", "bun")):
            return False
        if process.uids().real != os.getuid():
            return False
        names = [PurePath(part).name.lower() for part in (process.exe(), *process.cmdline()[:2])]
        return any(name.split(".")[0] == _NAME for name in names)
    return False


def _urls(process: psutil.Process) -> Iterator[str]:
    with suppress(psutil.Error, OSError):
        for connection in process.net_connections(kind="tcp"):
            if connection.status != psutil.CONN_LISTEN or not connection.laddr:
                continue
            address = ipaddress.ip_address(connection.laddr.ip)
            if address.is_unspecified:
                address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")  # noqa: PLR2004
            if address.is_loopback:
                host = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004
                yield f"http://{host}:{connection.laddr.port}"
