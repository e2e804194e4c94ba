"""Whether anything works on a session: its launcher's runner, or whoever holds a lease for it.

Looking at leases is work that agents can make long. So it has threads of its own, one look at a
time for each group, and a group whose looks take long is looked at less often: it keeps only itself
waiting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TypeVar

from pynchy.ipc.leases import Leases
from pynchy.ipc.mailbox import Mailboxes
from pynchy.launchers.base import Launcher, Runner
from pynchy.model import GroupName, PendingQuestion, SessionId
from pynchy.session import Unconfirmed
from pynchy.wire import Lease

log = logging.getLogger(__name__)
T = TypeVar("T")

# A look that takes longer is followed by a pause of so many times its length.
_LONG_LOOK_SECONDS = 0.02
_PAUSE_RATIO = 4.0


class Liveness:
    """Looks at launchers and leases."""

    def __init__(
        self,
        mailboxes: Mailboxes,
        leases: Leases,
        launchers: Mapping[GroupName, Launcher],
        pool: Executor | None = None,
    ) -> None:
        """`pool` is where leases are looked at; without one, where everything else is done."""
        self._mailboxes = mailboxes
        self._leases = leases
        self._launchers = launchers
        self._pool = pool
        self._looking: dict[GroupName, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._rests_until: dict[GroupName, float] = defaultdict(float)
        self._slow: set[GroupName] = set()
        self._shared: dict[GroupName, list[tuple[str, Lease]]] = {}

    def launcher(self, group: GroupName) -> Launcher | None:
        """Return the group's launcher, if it has one."""
        return self._launchers.get(group)

    def runner_on(self, group: GroupName, session_id: SessionId) -> Runner | None:
        """Return the runner that the group's launcher has put on the session, while it lives."""
        launcher = self._launchers.get(group)
        return launcher.runner_on(group, session_id) if launcher else None

    async def is_session_busy(self, pending: PendingQuestion) -> bool:
        """True while a process works on the session: the one that asked, or any other."""
        if self.runner_on(pending.group, pending.session_id):
            return True
        return await self.is_lease_held(pending)

    async def is_lease_held(self, pending: PendingQuestion) -> bool:
        """True while a process holds a lease for the session: the one that asked, or any other."""
        return await self._look(pending.group, lambda: self._holds_lease(pending))

    async def is_asker_seen(self, pending: PendingQuestion) -> bool:
        """True if a process holds a lease that names the question's session."""
        return await self._look(pending.group, lambda: self._names_session(pending))

    async def lives(self, group: GroupName, lease: str) -> bool:
        """True while somebody renews the lease."""
        mailbox = self._mailboxes.of(group)
        return await self._look(group, lambda: self._leases.is_live(mailbox, lease))

    async def leases_of(self, group: GroupName, session_id: SessionId) -> tuple[str, ...]:
        """Return the leases by which the session lives."""
        mailbox = self._mailboxes.of(group)
        return await self._look(group, lambda: self._leases.of_session(mailbox, session_id))

    async def live_leases(self, group: GroupName) -> list[tuple[str, Lease]]:
        """Return who is there, with what their leases say.

        Of a group whose looks take long, what the last one found: one look serves all who ask.
        """
        is_busy = self._looking[group].locked() or time.monotonic() < self._rests_until[group]
        if group in self._shared and group in self._slow and is_busy:
            return self._shared[group]
        mailbox = self._mailboxes.of(group)
        self._shared[group] = await self._look(group, lambda: self._leases.live(mailbox))
        return self._shared[group]

    async def leased_sessions(self, group: GroupName) -> frozenset[SessionId]:
        """Return the sessions for which a process of the group holds a lease."""
        mailbox = self._mailboxes.of(group)
        try:
            return await self._look(group, lambda: self._leases.live_sessions(mailbox))
        except OSError as exc:
            log.debug("group.unreadable", extra={"group": group, "why": exc.strerror})
            return frozenset()

    async def ended_in_order(self, group: GroupName, mark: Unconfirmed) -> bool:
        """True if what received the answer is known to have ended well, and not to have died.

        The runner's own end decides where there was one: an MCP server removes its lease also
        when the agent that it served was killed.
        """
        launcher = self._launchers.get(group)
        runner = await launcher.find(mark.launch) if launcher and mark.launch else None
        if runner is not None:
            return (await runner.ended()).error is None
        if mark.launch or not mark.leases:
            return False
        left = [await self.is_left_behind(group, lease) for lease in mark.leases]
        return not any(left)

    async def is_left_behind(self, group: GroupName, lease: str) -> bool:
        """True if the lease's owner has not removed it, alive or dead."""
        mailbox = self._mailboxes.of(group)
        released = self._leases.is_released
        return bool(lease) and not await asyncio.to_thread(released, mailbox, lease)

    def is_lease_live(self, group: GroupName, lease: str) -> bool:
        """True while somebody renews the lease."""
        return self._leases.is_live(self._mailboxes.of(group), lease)

    def tidy(self, group: GroupName, spare: frozenset[str]) -> None:
        """Remove what nobody renews, but for what is to be spared."""
        self._leases.tidy(self._mailboxes.of(group), spare)

    async def _look(self, group: GroupName, look: Callable[[], T]) -> T:
        async with self._looking[group]:
            await asyncio.sleep(self._rests_until[group] - time.monotonic())
            began = time.monotonic()
            found = await asyncio.get_running_loop().run_in_executor(self._pool, look)
            took = time.monotonic() - began
            if took > _LONG_LOOK_SECONDS:
                self._slow.add(group)
                self._rests_until[group] = time.monotonic() + _PAUSE_RATIO * took
            else:
                self._slow.discard(group)
        return found

    def _names_session(self, pending: PendingQuestion) -> bool:
        mailbox, session_id = self._mailboxes.of(pending.group), pending.session_id
        own = self._leases.is_live_for(mailbox, pending.lease, session_id)
        return own or self._leases.is_session_live(mailbox, session_id)

    def _holds_lease(self, pending: PendingQuestion) -> bool:
        mailbox = self._mailboxes.of(pending.group)
        if pending.lease and self._leases.is_live(mailbox, pending.lease):
            return True
        return self._leases.is_session_live(mailbox, pending.session_id)
