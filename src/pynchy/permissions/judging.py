"""Judge calls in threads of their own, in fair turns for every group.

What a call costs to judge is up to the agent. It is bounded, and no other group waits for it: not
at the threads that mailboxes are read with, and not on the event loop. Whatever fails, a person is
asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from pynchy.aio import FairThreads
from pynchy.calls import ToolCall
from pynchy.model import GroupName
from pynchy.permissions.files import Protected
from pynchy.permissions.rules import Decided, derive, judge
from pynchy.rule import Because, Rule

log = logging.getLogger(__name__)

# Of all groups together. The last one is left to a group that has none.
_MAX_AT_ONCE = 2
_LONGEST_SECONDS = 10.0
NOT_JUDGED = Because("the rules could not be looked at (the host's log says why)")


class Judges:
    """What judges calls; the host's own files are `protected`."""

    def __init__(self, protected: Protected) -> None:
        self._protected = protected
        self._threads = FairThreads(_MAX_AT_ONCE, _LONGEST_SECONDS, "rules")

    async def judge(
        self,
        call: ToolCall,
        group: str,
        session_id: str,
        rules: Callable[[], Iterable[Rule]],
        now: datetime,
    ) -> Decided:
        """Return what the group's rules say of the call; NOT_JUDGED, and so ask, if that fails."""

        def work() -> Decided:
            return judge(rules(), call, session_id, now, self._protected)

        try:
            return await self._threads.run(GroupName(group), work)
        except TimeoutError as exc:
            log.warning("rules.slow", extra={"group": group, "why": str(exc)})
        except Exception:
            log.exception("rules.failed", extra={"group": group})
        return Decided.to_ask(NOT_JUDGED)

    async def offer(self, call: ToolCall, group: str) -> str | None:
        """Return the pattern of the rule to offer for calls like this one, if there is one."""
        try:
            return await self._threads.run(GroupName(group), lambda: derive(call, self._protected))
        except Exception:
            log.exception("rules.no_offer")
            return None
