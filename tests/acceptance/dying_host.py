"""A real host that kills itself (-9) at a chosen point.

The points are counted: before and after everything that the host writes, shows or starts, and
between the two halves of an exclusive creation. Each is noted in a file before it is passed, so
whoever reads that file knows where a host died.

Run as a program it reads orders, one JSON object a line, and forks a host for each: all that is
slow, importing, was done before. It answers with the host's process id.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pynchy import safe_folder
from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host
from pynchy.launchers.command import CommandLauncher


class Death:
    """Counts points, and kills at the one that was ordered."""

    def __init__(self, notes: Path, point: int | None) -> None:
        self._fd = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._point = point
        self._passed = 0
        self._lock = threading.Lock()

    def point(self, what: str) -> None:
        with self._lock:
            self._passed += 1
            os.write(self._fd, f"{self._passed} {what}\n".encode())
            if self._passed == self._point:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type, name: str) -> None:
        """Make a point before and after each call of the method."""
        method = getattr(owner, name)
        if asyncio.iscoroutinefunction(method):
            setattr(owner, name, self._around_coroutine(name, method))
        else:
            setattr(owner, name, self._around_function(name, method))

    def _around_function(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(this: safe_folder.Folder, file: str, *rest: Any) -> Any:
            what = f"{name} {this.path.name}/{file}"
            self.point(f"before {what}")
            result = method(this, file, *rest)
            self.point(f"after {what}")
            return result

        return wrapped

    def _around_coroutine(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(*arguments: Any, **named: Any) -> Any:
            self.point(f"before {name}")
            result = await method(*arguments, **named)
            self.point(f"after {name}")
            return result

        return wrapped

    def within_create(self) -> None:
        """Make a point while a new file has two names."""
        link = os.link

        def linked(*arguments: Any, **named: Any) -> None:
            link(*arguments, **named)
            self.point(f"within create {arguments[1]}")

        os.link = linked  # type: ignore[assignment]


class Chat(Channel):
    """A chat that outlives the host: every card and what became of it is a line in a file."""

    name = "chat"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def send_ask_user(self, jid: str, request_id: Any, questions: Any, *, card: Any) -> str:
        del jid, questions
        message_id = os.urandom(4).hex()
        fields = {"short_id": card.short_id, "repeated": card.repeated, "message_id": message_id}
        self._note("shown", request_id=request_id, **fields)
        return message_id

    async def settle_card(
        self, jid: str, message_id: str, request_id: Any, questions: Any, *, card: Any
    ) -> None:
        del jid, request_id, questions
        self._note("settled", message_id=message_id, by=card.ending.by)

    def _note(self, what: str, **fields: object) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"what": what, **fields}) + "\n")


def serve(order: dict[str, Any]) -> None:
    """Run a host as ordered until it is killed, by itself or from outside."""
    base = Path(order["base"])
    death = Death(base / "points", order["point"])
    for name in ("create", "replace", "remove"):
        death.around(safe_folder.Folder, name)
    death.within_create()
    death.around(Chat, "send_ask_user")
    death.around(Chat, "settle_card")
    death.around(CommandLauncher, "start")
    settings = Settings.model_validate(
        {
            "http": {"port": 0},
            "groups": {"team": {"channels": ["chat", "local"], "launcher": order["launcher"]}},
        }
    )
    asyncio.run(_serve(settings, DataFolder(base / "data"), Chat(base / "chat.jsonl")))


async def _serve(settings: Settings, data: DataFolder, chat: Chat) -> None:
    async with running_host(settings, data, {"chat": chat}):
        await asyncio.Event().wait()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        order = json.loads(line)
        if pid := os.fork():
            print(pid, flush=True)  # noqa: T201 - the reply
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with Path(order["base"], "host.log").open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.close(0)
        serve(order)
        os._exit(0)


if __name__ == "__main__":
    main()
