"""Whether the process that asked is still there.

A lease is live while its file changes now and then and, on this same machine, while its lock
is held. Time is that of the host's own monotonic clock, so no clock of an agent can fool it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from pynchy import wire
from pynchy.ipc.mailbox import Mailbox
from pynchy.model import GroupName, SessionId
from pynchy.safe_folder import UnsafeFile

_LEASE_CAP = 4_096
# More than any group needs. Of what lies beyond, only leases that questions name are looked at.
MAX_LEASES = 2_000
_MAX_NAMES = 10 * MAX_LEASES


class Leases:
    """What the host has seen of every lease that it was asked about."""

    def __init__(self, ttl_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ttl_seconds = ttl_seconds
        self._monotonic = monotonic
        self._seen: dict[tuple[GroupName, str], tuple[int, float]] = {}
        self._boot_id = read_boot_id()
        self._crowded: set[GroupName] = set()

    def problems(self) -> list[str]:
        """Say which groups have more leases than are looked at."""
        most = f"{MAX_LEASES:,} lease files, or {_MAX_NAMES:,} files,"
        told = f"has more than {most} in its tasks folder; the rest is ignored"
        return [f"group {group} {told}" for group in sorted(self._crowded)]

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

    def is_live_for(self, mailbox: Mailbox, lease: str, session_id: SessionId) -> bool:
        """True while somebody renews the lease, and it is for that session."""
        if not lease or not session_id or self._read(mailbox, lease).session_id != session_id:
            return False
        return self.is_live(mailbox, lease)

    def is_session_live(self, mailbox: Mailbox, session_id: SessionId) -> bool:
        """True while any process of the group renews a lease for that session."""
        return bool(session_id) and any(
            self.is_live(mailbox, lease) for lease in self._named(mailbox, session_id)
        )

    def live(self, mailbox: Mailbox) -> list[tuple[str, wire.Lease]]:
        """Return every lease that somebody renews, with what it says."""
        leases = self._all(mailbox)
        self._forget_missing(mailbox, leases)
        return [
            (lease, self._read(mailbox, lease)) for lease in leases if self.is_live(mailbox, lease)
        ]

    def of_session(self, mailbox: Mailbox, session_id: SessionId) -> tuple[str, ...]:
        """Return the leases that processes of the group renew for that session."""
        named = self._named(mailbox, session_id) if session_id else ()
        return tuple(lease for lease in named if self.is_live(mailbox, lease))

    def live_sessions(self, mailbox: Mailbox) -> frozenset[SessionId]:
        """Return every session for which a process of the group renews a lease."""
        told = (said.session_id for _, said in self.live(mailbox))
        return frozenset(SessionId(session_id) for session_id in told if session_id)

    def is_released(self, mailbox: Mailbox, lease: str) -> bool:
        """True if its owner has removed the lease, as who ends in order does.

        What a killed process leaves stays until `tidy`.
        """
        return not mailbox.tasks.has(f"{lease}.lease")

    def _named(self, mailbox: Mailbox, session_id: SessionId) -> Iterator[str]:
        leases = self._all(mailbox)
        self._forget_missing(mailbox, leases)
        return (lease for lease in leases if self._read(mailbox, lease).session_id == session_id)

    def _all(self, mailbox: Mailbox) -> list[str]:
        names = list(mailbox.tasks.entries(_MAX_NAMES))
        leases = (name for name in names if name.endswith(".lease") and not name.startswith("."))
        found = [name.removesuffix(".lease") for name in leases]
        is_crowded = len(names) == _MAX_NAMES or len(found) > MAX_LEASES
        (self._crowded.add if is_crowded else self._crowded.discard)(mailbox.group)
        return found[:MAX_LEASES]

    def _forget_missing(self, mailbox: Mailbox, leases: list[str]) -> None:
        """Keep nothing of leases that were renamed or removed by whoever made them."""
        present = set(leases)
        seen = [lease for group, lease in list(self._seen) if group == mailbox.group]
        for lease in seen:
            # Of too many, one that a question names may be there and not among these.
            if lease not in present and self.is_released(mailbox, lease):
                self._seen.pop((mailbox.group, lease), None)

    def _read(self, mailbox: Mailbox, lease: str) -> wire.Lease:
        try:
            return wire.read_lease(mailbox.tasks.read(f"{lease}.lease", _LEASE_CAP))
        except (OSError, UnsafeFile):
            return wire.Lease()

    def tidy(self, mailbox: Mailbox, spare: Collection[str] = ()) -> None:
        """Remove the files of leases that nobody renews, and forget those that are gone.

        Leases to spare are kept: they tell how their owners ended.
        """
        leases = set(self._all(mailbox))
        live = {lease for lease in leases if self.is_live(mailbox, lease)}
        for lease in leases - live - set(spare):
            mailbox.tasks.remove(f"{lease}.lease")
        # A copy: other threads look at leases meanwhile. Who is forgotten too early is seen again.
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
