"""Pair a phone with the session, and take it off again, with a child of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pynchy.channels.whatsapp.account import Account, forget_account, read_account
from pynchy.channels.whatsapp.connection_status import ConnectionState, ConnectionStatus
from pynchy.channels.whatsapp.json_lines import Body
from pynchy.channels.whatsapp.process import LOG, Process
from pynchy.errors import ChannelUnavailable
from pynchy.safe_folder import Folder

_ASK_SECONDS = 20.0


class NotPaired(ChannelUnavailable):
    """There is no session."""


async def pair(
    home: Path, store: Path, number: str, show: Callable[[str, str], None], seconds: float
) -> Account:
    """Return the account once its phone has accepted. Raise ChannelUnavailable if it has not.

    `show` is given what the person needs: ("qr", code) whenever it changes, or ("code", letters).
    """
    try:
        async with asyncio.timeout(seconds), _child(home, store, "pair", phone=number) as told:
            async for body in told:
                match body:
                    case {"event": "qr" | "code" as kind, "code": str(code)}:
                        show(kind, code)
                    case {"event": "paired", "error": str(error)} if error:
                        raise ChannelUnavailable(f"the phone was not paired: {error}")
                    case {"event": "stands", "status": ConnectionStatus.CONNECTED}:
                        return _account(home)
                    case {"event": "stands"}:
                        raise ChannelUnavailable(_words(body))
    except TimeoutError as exc:
        raise ChannelUnavailable(f"no phone was paired within {seconds:g} s") from exc
    raise ChannelUnavailable(f"the process that talks to WhatsApp has died; see {home / LOG}")


async def log_out(home: Path, store: Path) -> None:
    """Take this device off the account. Raise ChannelUnavailable if WhatsApp was not told."""
    await _ask(home, store, "logout")


async def list_groups(home: Path, store: Path) -> dict[str, str]:
    """Return the names of the account's groups by their addresses. Raise ChannelUnavailable."""
    told = await _ask(home, store, "groups")
    return {str(jid): str(name) for jid, name in told.get("groups", {}).items()}


async def _ask(home: Path, store: Path, do: str) -> Body:
    """Connect, have one thing done, and return what the child says of it."""
    if read_account(Folder(home)) is None:
        raise NotPaired("no phone is paired: run `pynchy whatsapp pair`")
    try:
        async with asyncio.timeout(_ASK_SECONDS), _child(home, store, do) as told:
            async for body in told:
                match body:
                    case {"event": "stands", "status": ConnectionStatus.CONNECTED}:
                        told.say(do=do, id=1)
                    case {"event": "stands", "status": ConnectionStatus.LOGGED_OUT} if (
                        do == "logout"
                    ):
                        return {}
                    case {"event": "stands"}:
                        raise ChannelUnavailable(_words(body))
                    case {"re": 1, "error": error}:
                        raise ChannelUnavailable(f"WhatsApp refuses: {error}")
                    case {"re": 1}:
                        return body
    except TimeoutError as exc:
        raise ChannelUnavailable(f"WhatsApp did not answer within {_ASK_SECONDS:g} s") from exc
    raise ChannelUnavailable(f"the process that talks to WhatsApp has died; see {home / LOG}")


def forget(home: Path, store: Path) -> None:
    """Remove the session here, whatever WhatsApp thinks of it."""
    forget_account(Folder(home))
    for path in (store, *(store.with_name(store.name + end) for end in ("-wal", "-shm"))):
        path.unlink(missing_ok=True)


class _ChildReports:
    """What a child tells, one thing after another."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def say(self, **order: Any) -> None:  # noqa: ANN401 - JSON
        self._process.line.say(**order)

    def __aiter__(self) -> AsyncIterator[Body]:
        return self._all()

    async def _all(self) -> AsyncIterator[Body]:
        while (body := await self._process.hear()) is not None:
            yield body


@asynccontextmanager
async def _child(
    home: Path, store: Path, purpose: str, **order: str
) -> AsyncIterator[_ChildReports]:
    process = await Process.start(home, store, purpose=purpose, **order)
    try:
        yield _ChildReports(process)
    finally:
        await process.end()


def _account(home: Path) -> Account:
    account = read_account(Folder(home))
    if account is None:
        raise ChannelUnavailable("WhatsApp does not say which account was paired")
    return account


def _words(body: Body) -> str:
    state = ConnectionState(
        ConnectionStatus(body["status"]), str(body["detail"]), float(body["until"])
    )
    return state.problem() or "not connected"
