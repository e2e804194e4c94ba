"""Forget what is past its retention: closed questions, ended sessions, what lies in mailboxes.

One group at a time, and of each group only so much at once: what an agent has left there to be
removed keeps no other group waiting for long, and no deadline at all.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from pynchy.bridge.ledger import QuestionLedger
from pynchy.config import RetentionSettings
from pynchy.ipc.base import MailboxDirectory
from pynchy.model import GroupName, RequestId
from pynchy.tracking.tracker import SessionTracker

log = logging.getLogger(__name__)

_TIDY_EVERY = timedelta(hours=1)
# How long a group in which there is more to remove is left alone.
_REST_SECONDS = 10.0


class Retention:
    """Tidies now and then, and when a person wants it."""

    def __init__(
        self,
        ledger: QuestionLedger,
        mailboxes: MailboxDirectory,
        tracker: SessionTracker,
        settings: RetentionSettings,
    ) -> None:
        self._ledger = ledger
        self._mailboxes = mailboxes
        self._tracker = tracker
        self._settings = settings
        self._tidied: datetime | None = None
        self._unfinished: set[GroupName] = set()

    async def run(self) -> None:
        """Tidy once an hour, and go on with what was too much for once, until cancelled."""
        while True:
            try:
                if self._tidied is None or self._ledger.now() - self._tidied > _TIDY_EVERY:
                    await self.tidy()
                else:
                    await self._clear_removed(sorted(self._unfinished))
            except Exception:
                log.exception("retention.failed")
            await asyncio.sleep(_REST_SECONDS)

    async def tidy(self) -> int:
        """Forget what is past its retention. Return how many closed questions were forgotten."""
        retention = self._settings
        now = self._ledger.now()
        self._tidied = now
        removed = await self._ledger.history.prune(now - retention.history, retention.history_size)
        await self._tracker.tidy(now - retention.history)
        open_ids = {pending.key for pending in self._ledger.index}
        groups = await asyncio.to_thread(self._mailboxes.groups)
        for group in {name for name, _ in open_ids} | set(groups):
            kept = {request_id for name, request_id in open_ids if name == group}
            await self._tidy_group(group, kept, now)
        await self._clear_removed(self._mailboxes.known())
        return removed

    async def _tidy_group(self, group: GroupName, kept: set[RequestId], now: datetime) -> None:
        mailbox = self._mailboxes.of(group)
        responses, rejected = now - self._settings.responses, now - self._settings.rejected
        try:
            await asyncio.to_thread(mailbox.tidy, kept, responses, rejected)
            spare = self._tracker.spared(group)
            await asyncio.to_thread(self._tracker.liveness.tidy, group, spare)
        except FileNotFoundError:
            log.debug("group.folder_gone", extra={"group": group})
        except OSError as exc:
            # What an agent has made there must not keep the other groups from being tidied.
            log.warning("retention.group_failed", extra={"group": group, "why": exc.strerror})

    async def _clear_removed(self, groups: list[GroupName]) -> None:
        """Remove some of what lies in folders that were removed; remember where there is more."""
        for group in groups:
            try:
                is_more = await asyncio.to_thread(self._mailboxes.of(group).clear_removed)
            except OSError as exc:
                is_more = False
                log.warning("retention.group_failed", extra={"group": group, "why": exc.strerror})
            (self._unfinished.add if is_more else self._unfinished.discard)(group)
