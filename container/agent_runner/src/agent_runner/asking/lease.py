"""The sign that this process lives: a locked file in `tasks/` whose times move.

The lease appears under its name locked already, so that no host ever sees a free lease of a
living process. It is gone after an orderly end.
"""

import fcntl
import os
from pathlib import Path

from agent_runner.asking import wire

RENEW_SECONDS = 5.0

# The host reads 4 KiB of a lease: no name may push out what else it says.
_MAX_NAME = 100
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Lease:
    """One process's lease. All methods touch the disk and raise OSError.

    Another `session_id` is on the disk after the next `take`, which may come at any time. `agent`
    and `task` name the process to people before it has asked anything.
    """

    def __init__(self, tasks: Path, *, session_id: str, agent: str = "", task: str = "") -> None:
        self.name = os.urandom(16).hex()
        self._path = tasks / f"{self.name}.lease"
        self._names = {"agent": agent[:_MAX_NAME], "task": task[:_MAX_NAME]}
        self.session_id = session_id
        self._handle = -1

    def take(self) -> None:
        """Create the file, locked."""
        temporary = self._path.with_name(f".tmp-{self.name}")
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            locked = _lock(handle)
            os.write(handle, self._content(locked=locked))
            temporary.rename(self._path)
        except OSError:
            os.close(handle)
            raise
        self._drop_handle()
        self._handle = handle

    def renew(self) -> None:
        """Move the file's times; if it was swept away while we slept, put it back."""
        try:
            os.utime(self._path)
        except FileNotFoundError:
            self.take()

    def release(self) -> None:
        """Remove the file, then the lock. Releasing twice is harmless."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
        self._drop_handle()

    def _drop_handle(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def _content(self, *, locked: bool) -> bytes:
        # Without a lock the host must go by the file's times alone, so no boot_id.
        boot_id = read_boot_id() if locked else ""
        names = {key: name for key, name in self._names.items() if name}
        return wire.encode({"boot_id": boot_id, "session_id": self.session_id, **names})


def read_boot_id() -> str:
    """Return the kernel's id of this boot, empty where there is none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
