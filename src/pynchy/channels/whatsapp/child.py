"""The process that talks to WhatsApp: `python -m pynchy.channels.whatsapp.child FD HOME STORE`.

A panic on the Go side ends this process and nothing else. It tells the host what happens over the
line FD, does what the host says, and ends when the line does.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import socket
import stat
import sys
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from pynchy.channels.whatsapp.addresses import all_normal, forget_account, keep_account
from pynchy.channels.whatsapp.connection_status import ConnectionStatus
from pynchy.channels.whatsapp.inbound_queue import InboundMessage, InboundQueue, InboundWriter
from pynchy.channels.whatsapp.process import Body, JsonLines
from pynchy.safe_folder import Folder

log = logging.getLogger(__name__)

_STOP_SECONDS = 2.0
_LOCK_SECONDS = 5.0
_POLL_SECONDS = 0.1
_MAX_LOG = 5_000_000
_BEAT_SECONDS = 20.0
# Words in an error after which the message may be there all the same.
_DOUBTFUL = ("timed out", "timeout", "deadline", "cancel", "closed")
# With these there is nothing left to do here: the host decides what comes next.
_FINAL = {
    ConnectionStatus.LOGGED_OUT,
    ConnectionStatus.REPLACED,
    ConnectionStatus.BANNED,
    ConnectionStatus.OUTDATED,
}


class Child:
    """Serves one host, by its order, for as long as the line lasts."""

    def __init__(self, line: JsonLines, home: Path, store: Path, order: Body) -> None:
        from neonize.exc import NeonizeError  # noqa: PLC0415 - heavy

        from pynchy.channels.whatsapp.neonize_client import Client  # noqa: PLC0415 - heavy

        self._failure: type[Exception] = NeonizeError
        self._line = line
        self._home = Folder(home)
        self._pairs = order.get("purpose") == "pair"
        self._number = str(order.get("phone") or "")
        self._self_chat = order.get("self_chat") is True
        self._beat_seconds = float(order.get("beat_seconds") or _BEAT_SECONDS)
        self._changes = 0
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._client = Client(store, self)
        chats = all_normal(map(str, order.get("chats") or ()))
        self._writer = InboundWriter(InboundQueue(home), chats, self._client.phone_of, line.say)

    async def run(self) -> None:
        """Connect, and return when the host has gone or nothing is left to do."""
        connection = await self._client.connect()
        obeying = asyncio.create_task(self._obey())
        over = asyncio.create_task(self._over.wait())
        self._start(self._beat())
        await asyncio.wait((connection, obeying, over), return_when=asyncio.FIRST_COMPLETED)
        if connection.done() and not over.done():
            exc = None if connection.cancelled() else connection.exception()
            self.stands(ConnectionStatus.DISCONNECTED, str(exc or "the connection has ended"), 0.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._client.stop()

    def said(self, said: InboundMessage) -> Coroutine[None, None, None]:
        """See Listener."""
        return self._writer.keep(said)

    def stands(self, status: ConnectionStatus, detail: str, until: float) -> None:
        """See Listener."""
        self._changes += 1
        if status is ConnectionStatus.CONNECTED:
            self._start(self._greet(self._changes))
            return
        if status is ConnectionStatus.LOGGED_OUT:
            forget_account(self._home)
        self._line.say(event="stands", status=status, detail=detail, until=until)
        if status in _FINAL:
            self._over.set()

    def shows_qr(self, code: str) -> None:
        """See Listener."""
        if not self._pairs:
            # The session is gone, whatever our files say.
            self.stands(ConnectionStatus.LOGGED_OUT, "there is no session", 0.0)
        elif not self._number:
            self._line.say(event="qr", code=code)
        else:
            number, self._number = self._number, ""
            self._start(self._pair_phone(number))

    def paired(self, error: str) -> None:
        """See Listener."""
        self._line.say(event="paired", error=error)

    async def _beat(self) -> None:
        """Let the host know that we do not hang, and the log not grow, for as long as we live."""
        while True:
            self._line.say(event="alive")
            cut_log(sys.stdout.fileno())
            await asyncio.sleep(self._beat_seconds)

    async def _greet(self, change: int) -> None:
        """Learn who we are, before anything is said to be connected."""
        account = await self._client.account()
        if change != self._changes:
            # It stands otherwise by now; a session that was ended must not look alive.
            return
        if account.jid:
            keep_account(self._home, account)
        if self._self_chat:
            self._writer.chats |= account.forms
        self._line.say(event="stands", status=ConnectionStatus.CONNECTED, detail="", until=0.0)
        if not self._pairs:
            await self._writer.finish_all()

    async def _pair_phone(self, number: str) -> None:
        try:
            self._line.say(event="code", code=await self._client.pair_phone(number))
        except self._failure as exc:
            self.paired(str(exc))

    async def _obey(self) -> None:
        """Do what the host says, until it has gone."""
        while (order := await self._line.hear()) is not None:
            match order.get("do"):
                case "send":
                    self._start(self._send(order))
                case "logout":
                    self._start(self._log_out(order))
                case "groups":
                    self._start(self._list_groups(order))
                case other:
                    log.error("whatsapp.order_unknown", extra={"what": str(other)})

    async def _send(self, order: Body) -> None:
        try:
            sent, at = await self._client.send(order["to"], order["text"], order.get("quote"))
        except self._failure as exc:
            told = str(exc)
            doubtful = any(word in told.lower() for word in _DOUBTFUL)
            self._line.say(re=order.get("id"), error=told, doubtful=doubtful)
        except (KeyError, TypeError, ValueError) as exc:
            # No message could be made of it, so that none was sent.
            self._line.say(re=order.get("id"), error=f"{type(exc).__name__}: {exc}")
        else:
            self._line.say(re=order.get("id"), sent=sent, at=at)

    async def _log_out(self, order: Body) -> None:
        try:
            await self._client.logout()
        except self._failure as exc:
            self._line.say(re=order.get("id"), error=str(exc))
        else:
            forget_account(self._home)
            self._line.say(re=order.get("id"))

    async def _list_groups(self, order: Body) -> None:
        try:
            self._line.say(re=order.get("id"), groups=await self._client.groups())
        except self._failure as exc:
            self._line.say(re=order.get("id"), error=str(exc))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(_guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _guarded(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("whatsapp.order_failed")


def cut_log(fd: int) -> None:
    """Empty a log that has grown too long."""
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_size > _MAX_LOG:
        os.ftruncate(fd, 0)


async def serve(fd: int, home: Path, store: Path) -> None:
    """Serve the host at the other end of the socket."""
    line = await JsonLines.on(socket.socket(fileno=fd))
    order = await line.hear()
    if order is None:
        return
    lock = await _lock(home)
    if lock is None:
        told = "another process of pynchy still uses the session"
        line.say(event="stands", status=ConnectionStatus.DISCONNECTED, detail=told, until=0.0)
    else:
        await Child(line, home, store, order).run()
    line.close()


async def _lock(home: Path) -> int | None:
    """Be the only one on the session; a child of a host that was killed needs a moment to end."""
    fd = os.open(home / "session.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LOCK_SECONDS):
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(_POLL_SECONDS)
                else:
                    return fd
    os.close(fd)
    return None


def allow_missing_libmagic() -> None:
    """Let neonize be imported without libmagic: it looks at media alone, and we send none."""
    try:
        import_module("magic")
    except ImportError:
        sys.modules["magic"] = ModuleType("magic", "stands where libmagic is not installed")


def main(arguments: list[str]) -> None:
    """Run the process."""
    os.umask(0o077)
    allow_missing_libmagic()
    if arguments == ["--version"]:
        from pynchy.channels.whatsapp import neonize_client  # noqa: PLC0415 - heavy

        print(json.dumps({"library": neonize_client.__name__, "version": version("neonize")}))  # noqa: T201
        return
    fd, home, store = arguments
    asyncio.run(serve(int(fd), Path(home), Path(store)))
    # Threads of the library may never end; everything that counts is on the disk.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
