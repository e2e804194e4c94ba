"""Whether the process that asked is still there.

A lease is live while its file changes now and then and, on this same machine, while its lock
is held. Time is the host's own steady clock, so no clock of an agent can fool it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from pynchy import wire
from pynchy.folder import UnsafeFile
from pynchy.ipc.mailbox import Mailbox
from pynchy.model import GroupName, SessionId

_LEASE_CAP = 4_096


class Leases:
    """What the host has seen of every lease that it was asked about."""

    def __init__(self, ttl_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ttl_seconds = ttl_seconds
        self._monotonic = monotonic
        self._seen: dict[tuple[GroupName, str], tuple[int, float]] = {}
        self._boot_id = read_boot_id()

    def is_live(self, mailbox: Mailbox, lease: str) -> bool:
        """True while somebody renews the lease."""
        key = (mailbox.group, lease)
        try:
            fd = mailbox.tasks.open_file(f"{lease}.lease")
        except (UnsafeFile, OSError):
            self._seen.pop(key, None)
            return False
        try:
            return self._is_renewed(key, os.fstat(fd)) and not self._is_abandoned(fd)
        finally:
            os.close(fd)

    def is_session_live(self, mailbox: Mailbox, session_id: SessionId) -> bool:
        """True while any process of the group renews a lease for that session."""
        if not session_id:
            return False
        names = [name for name in mailbox.tasks.names() if name.endswith(".lease")]
        self._forget_missing(mailbox.group, names)
        return any(
            self.is_live(mailbox, name.removesuffix(".lease"))
            for name in names
            if self._session_of(mailbox, name) == session_id
        )

    def _forget_missing(self, group: GroupName, names: list[str]) -> None:
        """Keep nothing of leases that were renamed or removed by whoever made them."""
        present = {name.removesuffix(".lease") for name in names}
        for key in list(self._seen):
            if key[0] == group and key[1] not in present:
                self._seen.pop(key, None)

    def _session_of(self, mailbox: Mailbox, name: str) -> str:
        try:
            return wire.read_lease(mailbox.tasks.read(name, _LEASE_CAP)).session_id
        except (OSError, UnsafeFile):
            return ""

    def tidy(self, mailbox: Mailbox) -> None:
        """Remove the files of leases that nobody renews, and forget those that are gone."""
        files = [name for name in mailbox.tasks.names() if name.endswith(".lease")]
        leases = {name.removesuffix(".lease") for name in files}
        live = {lease for lease in leases if self.is_live(mailbox, lease)}
        for lease in leases - live:
            mailbox.tasks.remove(f"{lease}.lease")
        # A copy: other threads look at leases meanwhile. Who is forgotten too early is seen anew.
        for group, lease in list(self._seen):
            if group == mailbox.group and lease not in live:
                self._seen.pop((group, lease), None)

    def _is_renewed(self, key: tuple[GroupName, str], info: os.stat_result) -> bool:
        if not stat.S_ISREG(info.st_mode):
            return False
        now = self._monotonic()
        mtime, since = self._seen.get(key, (None, now))
        if mtime != info.st_mtime_ns:
            since = now
        self._seen[key] = (info.st_mtime_ns, since)
        return now - since < self._ttl_seconds

    def _is_abandoned(self, fd: int) -> bool:
        """True if its owner ran on this very machine and has let go of the lock.

        Elsewhere (another kernel behind a shared folder) locks do not reach us and say nothing.
        """
        boot_id = wire.read_lease(os.pread(fd, _LEASE_CAP, 0)).boot_id
        if not boot_id or boot_id != self._boot_id:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def read_boot_id() -> str:
    """Return what tells this boot of this kernel from any other, or nothing where it is unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
