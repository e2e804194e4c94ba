"""A real host with the WhatsApp channel that kills itself, or its child, at a chosen point.

The points are before and after each step of a card and of a reply; they and the orders are noted
and read as in tests/acceptance/dying_host.py.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance import dying_host
from tests.acceptance.dying_host import Death

from pynchy.bridge.answer import AnswerService
from pynchy.channels.whatsapp.inbound_queue import InboundQueue
from pynchy.channels.whatsapp.outbox import Outbox
from pynchy.channels.whatsapp.process import Process
from pynchy.channels.whatsapp.supervisor import Supervisor
from pynchy.config import load_settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host

STEPS: list[tuple[type, str]] = [
    (Outbox, "begin"),
    (Outbox, "sent"),
    (Supervisor, "ask"),
    (InboundQueue, "read"),
    (InboundQueue, "done"),
    (AnswerService, "answer"),
]


class Points(Death):
    """Points around plain functions too; what dies there is the host or its child."""

    child = 0
    victim = "host"

    def point(self, what: str) -> None:
        if self.victim == "host":
            super().point(what)
            return
        point, self._point = self._point, None
        super().point(what)
        self._point = point
        if self._passed == point and self.child:
            os.kill(self.child, signal.SIGKILL)

    def _around_function(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.point(f"before {name}")
            result = method(*arguments, **named)
            self.point(f"after {name}")
            return result

        return wrapped


def serve(order: dict[str, Any]) -> None:
    """Run a host as ordered until it is killed, by itself or from outside."""
    base = Path(order["base"])
    os.environ |= order["environ"]
    points = Points(base / "points", order["point"])
    points.victim = order["victim"]
    start = Process.start

    async def noted(*arguments: Any, **named: Any) -> Process:
        process = await start(*arguments, **named)
        points.child = process.pid
        return process

    Process.start = noted  # type: ignore[method-assign, assignment]
    for owner, name in STEPS:
        points.around(owner, name)
    asyncio.run(_serve(base))


async def _serve(base: Path) -> None:
    async with running_host(load_settings(base / "pynchy.toml"), DataFolder(base / "data")):
        await asyncio.Event().wait()


if __name__ == "__main__":
    dying_host.serve = serve
    dying_host.main()
