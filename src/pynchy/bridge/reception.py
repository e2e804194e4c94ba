"""Where requests come in: what intake needs of the bridge.

A group that joins is told how its agents wait; what cannot be understood is answered.
"""

from __future__ import annotations

import asyncio
import logging

from pynchy import wire
from pynchy.bridge.ask import AskHandler
from pynchy.bridge.ledger import QuestionLedger
from pynchy.config import Settings
from pynchy.errors import MalformedRequest
from pynchy.ipc.mailbox import Mailboxes
from pynchy.model import GroupName, RequestId

log = logging.getLogger(__name__)


class Reception:
    """See intake's own contract."""

    def __init__(
        self,
        settings: Settings,
        mailboxes: Mailboxes,
        ask_handler: AskHandler,
        ledger: QuestionLedger,
    ) -> None:
        self._settings = settings
        self._mailboxes = mailboxes
        self._ask_handler = ask_handler
        self._ledger = ledger

    async def joined(self, group: GroupName) -> None:
        """Give a new group its folders."""
        greeting = _greeting(self._settings, group)
        await asyncio.to_thread(self._mailboxes.of(group).prepare, greeting)
        log.info("a group has joined", extra={"group": group})

    async def refuse(
        self, group: GroupName, name: str, malformed: MalformedRequest, content: bytes
    ) -> None:
        """Answer or file a request that cannot be understood."""
        await self._ask_handler.refuse(group, name, malformed, content)

    def receipt_seen(self, group: GroupName, request_id: RequestId) -> None:
        """Let a delivery that waits for this receipt look."""
        self._ledger.notify((group, request_id))


def _greeting(settings: Settings, name: GroupName) -> bytes:
    """Return what the agents of the group are told of how they wait."""
    group = settings.group(name)
    parks, built_in = group.wait == "park", group.ask_with != "ask_user"
    return wire.host_json(
        settings.wait_timeout.total_seconds(),
        park_after_seconds=group.park_after.total_seconds() if parks else None,
        ask_with=group.ask_with if built_in else None,
    )
