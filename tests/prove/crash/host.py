"""A real host whose cards outlive it, and whose every write can be counted and made to fail.

All disk work that the host hands to threads is done by one worker here, so that its n-th fsync is
the same one in every run. The recording channels write their cards with `writev`, which the host
itself never calls: a fault in the host's writes never hits a card, nor the other way round.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.hurry import hurry

from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.errors import ChannelUnavailable
from pynchy.host import running_host
from pynchy.logs import set_up_logging

DOWN = "down"

_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = -1


class RecordingChannel(Channel):
    """A chat that outlives the host: every card and what became of it is a line in a file."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def send_ask_user(self, jid: str, request_id: Any, questions: Any, *, card: Any) -> str:
        del jid
        message_id = os.urandom(4).hex()
        self._note(
            "shown",
            request_id=request_id,
            message_id=message_id,
            short_id=card.short_id,
            repeated=card.repeated,
            questions=[question.text for question in questions],
        )
        return message_id

    async def settle_card(
        self, jid: str, message_id: str, request_id: Any, questions: Any, *, card: Any
    ) -> None:
        del jid, questions
        self._note(
            "settled",
            request_id=request_id,
            message_id=message_id,
            short_id=card.short_id,
            outcome=card.ending.outcome,
            by=card.ending.by,
            answers=[list(answer.selected) for answer in card.ending.answers],
            delivery=card.delivery,
        )

    def _note(self, what: str, **fields: object) -> None:
        line = json.dumps({"what": what, "channel": self.name, **fields}) + "\n"
        os.writev(self._fd, [line.encode()])


class DownChannel(Channel):
    """A chat that never takes a card."""

    name = DOWN

    async def send_ask_user(self, jid: str, request_id: Any, questions: Any, *, card: Any) -> str:
        del jid, request_id, questions, card
        raise ChannelUnavailable("out of order")


def serve(order: dict[str, Any]) -> None:
    """Run a host as ordered until it is told to stop."""
    base = Path(order["base"])
    with contextlib.suppress(OSError, AttributeError):  # only Linux with Yama needs it
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_PR_SET_PTRACER_ANY), 0, 0, 0)
    set_up_logging("info")
    hurry()
    worker = ThreadPoolExecutor(max_workers=1)
    threads = {"main": os.getpid(), "worker": worker.submit(threading.get_native_id).result()}
    tell(base / f"threads-{os.getpid()}", json.dumps(threads))
    if gate := order["gate"]:
        Path(gate).read_bytes()  # a FIFO: blocks until somebody has opened and closed it
    channels: dict[str, Channel] = {
        name: RecordingChannel(name, base / "chat.jsonl") for name in ("chat", "pager")
    }
    channels[DOWN] = DownChannel()
    settings = Settings.model_validate(order["settings"])
    asyncio.run(_serve(settings, base, channels, worker))


async def _serve(
    settings: Settings, base: Path, channels: dict[str, Channel], worker: ThreadPoolExecutor
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(worker)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with running_host(settings, DataFolder(base / "data"), channels) as running:
        tell(base / f"ready-{os.getpid()}", running.url)
        await stop.wait()
    tell(base / f"stopped-{os.getpid()}", "in order")


def tell(path: Path, text: str) -> None:
    """Let the test know, by a call that is not swept: the link's target is the text."""
    path.symlink_to(text)


def main() -> None:
    serve(json.loads(sys.argv[1]))
    # What else still runs is of no interest, and must not be swept.
    os._exit(0)
