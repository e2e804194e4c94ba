"""Forget what is past its retention: closed questions, ended sessions, what lies in mailboxes."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from pynchy.bridge.ledger import QuestionLedger
from pynchy.config import RetentionSettings
from pynchy.ipc.base import MailboxDirectory
from pynchy.tracking.tracker import SessionTracker

log = logging.getLogger(__name__)

_TIDY_EVERY = timedelta(hours=1)


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

    async def tidy_if_due(self) -> None:
        """Tidy, unless that was done within the hour."""
        if self._tidied is None or self._ledger.now() - self._tidied > _TIDY_EVERY:
            await self.tidy()

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
            mailbox = self._mailboxes.of(group)
            kept = {request_id for name, request_id in open_ids if name == group}
            responses, rejected = now - retention.responses, now - retention.rejected
            try:
                await asyncio.to_thread(mailbox.tidy, kept, responses, rejected)
                spare = self._tracker.spared(group)
                await asyncio.to_thread(self._tracker.liveness.tidy, group, spare)
            except FileNotFoundError:
                log.debug("group.folder_gone", extra={"group": group})
            except OSError as exc:
                # What an agent has made there must not keep the other groups from being tidied.
                log.warning("retention.group_failed", extra={"group": group, "why": exc.strerror})
        return removed
