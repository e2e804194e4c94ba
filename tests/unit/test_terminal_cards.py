"""Cards of what Claude Code's terminal asks, where the disk fails."""

import asyncio
import errno
from pathlib import Path
from typing import Any, cast

import pytest
from tests.waiting import until

from pynchy.bridge.connected import ConnectedRoute
from pynchy.bridge.ledger import QuestionLedger
from pynchy.config import Settings
from pynchy.http import hooks
from pynchy.pending.index import PendingIndex
from pynchy.safe_folder import Folder
from pynchy.sources.base import CLAUDE_TERMINAL, SourceHandler
from pynchy.testing import make_pending


class FailingLedger:
    """Cannot write down, so many times, that a question is over."""

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.cleared_ids: list[str] = []

    async def cleared(self, source: str, group: str, request_id: str, reason: str) -> None:
        del source, group, reason
        if self._failures:
            self._failures -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        self.cleared_ids.append(request_id)


async def test_a_host_on_a_full_disk_starts_and_settles_old_cards_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "_RETRY_SECONDS", 0)
    ledger: Any = FailingLedger(failures=3)
    index = PendingIndex()
    for name in ("t1", "t2"):
        index.put(make_pending(name, source=CLAUDE_TERMINAL))
    route = ConnectedRoute(cast("QuestionLedger", ledger))
    handler = cast("SourceHandler", ledger)
    terminal = hooks.TerminalPermissions(route, handler, Folder(tmp_path), Settings())

    await terminal.begin(index)
    before = list(ledger.cleared_ids)
    running = asyncio.create_task(terminal.run())
    await until(lambda: len(ledger.cleared_ids) == 2, "the cards to be settled")
    running.cancel()

    assert before == []
    assert sorted(ledger.cleared_ids) == ["t1", "t2"]
