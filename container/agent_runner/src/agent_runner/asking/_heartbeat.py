"""Show that this process lives: renew its lease, and say in its log what goes wrong."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

from agent_runner.asking._waiter import finish_in_thread
from agent_runner.asking.lease import RENEW_SECONDS, Lease


def note(message: str) -> None:
    """Tell whoever reads this process's log."""
    if sys.stderr is not None:  # a parent may have closed it
        with suppress(OSError):
            print(f"pynchy: {message}", file=sys.stderr, flush=True)  # noqa: T201 - the log


class Heartbeat:
    """Takes the lease when it is needed first, and renews it until the end."""

    def __init__(self, lease: Lease, tell: Callable[[str], None]) -> None:
        self.lease = lease
        self._tell = tell
        self._lock = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None

    @property
    def has_begun(self) -> bool:
        """True if the host can see by the lease that we live."""
        return self._beating is not None

    async def begin(self, session_id: str) -> None:
        """Hold the lease for that session from now on. Raise OSError."""
        async with self._lock:
            if self._beating is None or self.lease.session_id != session_id:
                self.lease.session_id = session_id
                await finish_in_thread(self.lease.take)
            if self._beating is None:
                self._beating = asyncio.create_task(self._beat())

    async def end(self) -> None:
        """Give the lease back."""
        # Not a TaskGroup: it would wrap what the body raises, and there is one task to end.
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
        with suppress(OSError):
            await asyncio.to_thread(self.lease.release)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                async with self._lock:
                    await asyncio.to_thread(self.lease.renew)
            except OSError as exc:
                self._tell(f"cannot renew the lease: {exc}")
