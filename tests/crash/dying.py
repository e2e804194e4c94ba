"""A real host that kills itself (-9), or its child, at a chosen step.

Steps are before and after everything that the host writes, shows, sends or starts, and between the
two halves of an exclusive creation. A step is known by its name and by how often it came before, so
that what happens side by side, in no fixed order, moves none. Each is noted in a file before it is
passed: whoever reads that file knows where a host died.
"""

import asyncio
import json
import os
import re
import signal
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from tests.hurry import hurry

from pynchy.bridge.answer import AnswerService
from pynchy.channels.base import Channel
from pynchy.channels.whatsapp.inbound_queue import InboundQueue
from pynchy.channels.whatsapp.outbox import Outbox
from pynchy.channels.whatsapp.process import Process
from pynchy.channels.whatsapp.supervisor import Supervisor
from pynchy.config import Settings
from pynchy.config.loading import read_settings
from pynchy.data_dir import DataFolder
from pynchy.host import running_host
from pynchy.launchers.command import CommandLauncher
from pynchy.safe_folder import Folder

HOST, CHILD = "host", "child"
_RANDOM = re.compile("[0-9a-f]{8,}")


class Death:
    """Notes the steps, and kills the victim at the one that was ordered."""

    def __init__(self, notes: Path, step: tuple[str, int] | None, victim: str) -> None:
        self._fd = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._step = step
        self._victim = victim
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.child = 0

    def point(self, what: str) -> None:
        with self._lock:
            what = _RANDOM.sub("*", what)
            self._passed[what] += 1
            os.write(self._fd, json.dumps([what, self._passed[what], bool(self.child)]).encode())
            os.write(self._fd, b"\n")
            if (what, self._passed[what]) != self._step:
                return
            if self._victim == HOST:
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.child:  # never 0, which would be everybody
                os.kill(self.child, signal.SIGKILL)

    def around(self, owner: type, name: str) -> None:
        """Make a step before and after each call of the method."""
        method = getattr(owner, name)
        if asyncio.iscoroutinefunction(method):
            setattr(owner, name, self._around_coroutine(name, method))
        else:
            setattr(owner, name, self._around_function(name, method))

    def _around_function(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(this: Any, *rest: Any, **named: Any) -> Any:
            what = f"{name} {this.path.name}/{rest[0]}" if isinstance(this, Folder) else name
            self.point(f"before {what}")
            result = method(this, *rest, **named)
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
        """Make a step while a new file has two names."""
        link = os.link

        def linked(*arguments: Any, **named: Any) -> None:
            link(*arguments, **named)
            self.point(f"within create {arguments[1]}")

        os.link = linked  # type: ignore[assignment]

    def know_the_child(self) -> None:
        """Learn which process is the child of the host, each time there is a new one."""
        start = Process.start

        async def noted(*arguments: Any, **named: Any) -> Process:
            process = await start(*arguments, **named)
            self.child = process.pid
            return process

        Process.start = noted  # type: ignore[method-assign, assignment]


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


_DISK = ((Folder, "create"), (Folder, "replace"), (Folder, "remove"))
STEPS: dict[str, tuple[tuple[type, str], ...]] = {
    "chat": (
        *_DISK,
        (Chat, "send_ask_user"),
        (Chat, "settle_card"),
        (CommandLauncher, "start"),
    ),
    "slack": (
        *_DISK,
        (AsyncWebClient, "chat_postMessage"),
        (AsyncWebClient, "chat_update"),
        (AsyncApp, "async_dispatch"),
    ),
    "whatsapp": (
        (Outbox, "begin"),
        (Outbox, "sent"),
        (Supervisor, "ask"),
        (InboundQueue, "read"),
        (InboundQueue, "done"),
        (AnswerService, "answer"),
    ),
}


def main() -> None:
    """Run a host as ordered until it is killed, by itself or from outside."""
    order = json.loads(sys.argv[1])
    base = Path(order["base"])
    hurry()
    os.environ |= order["environ"]
    step = (order["step"][0], order["step"][1]) if order["step"] else None
    death = Death(base / "points", step, order["victim"])
    for owner, name in STEPS[order["channel"]]:
        death.around(owner, name)
    if order["channel"] == "whatsapp":
        death.know_the_child()
    else:
        death.within_create()
    channels = {"chat": Chat(base / "chat.jsonl")} if order["channel"] == "chat" else {}
    asyncio.run(_serve(base, channels))


async def _serve(base: Path, channels: dict[str, Channel]) -> None:
    path = base / "pynchy.toml"
    # The chat is none that settings in a file could name.
    read = Settings.model_validate(tomllib.loads(path.read_text())) if channels else None
    settings = read or read_settings(path)
    async with running_host(settings, DataFolder(base / "data"), channels):
        await asyncio.Event().wait()
