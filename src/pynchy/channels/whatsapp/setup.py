"""Pair a phone with the session and take it off again; look whether the channel can work."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pynchy.channels.whatsapp.addresses import Account, forget_account, normal, phone, read_account
from pynchy.channels.whatsapp.connection_status import ConnectionState, ConnectionStatus, read_state
from pynchy.channels.whatsapp.process import CHILD_MODULE, LOG, Body, Process, environment
from pynchy.config import WHATSAPP, GroupSettings, Settings
from pynchy.errors import ChannelUnavailable
from pynchy.findings import Finding, fine, problem
from pynchy.safe_folder import Folder

_SECONDS = 30.0
_MUSL = "neonize has no build for this system; it needs glibc, macOS or Windows"
_PAIR = "pynchy whatsapp pair"

_ASK_SECONDS = 20.0


def examine(
    settings: Settings, home: Path, store: Path, environ: Mapping[str, str], *, running: bool
) -> Iterator[Finding]:
    """Yield everything that there is to say; `running` if a host tells its own troubles."""
    yield _look_at_library(environ)
    yield _look_at_session(home, store)
    if not running and (state := read_state(Folder(home))) is not None:
        lasting = state.status in {
            ConnectionStatus.BANNED,
            ConnectionStatus.REPLACED,
            ConnectionStatus.OUTDATED,
        }
        if lasting and (words := state.problem()) is not None:
            yield problem("whatsapp connection", words, "see: pynchy docs whatsapp")
    for name, group in settings.groups.items():
        if WHATSAPP in group.channels:
            yield _look_at_chat(name, group)
            yield _look_at_people(name, group)


def _look_at_library(environ: Mapping[str, str]) -> Finding:
    """Load the library as the child does, in a process of its own."""
    command = [sys.executable, "-P", "-m", CHILD_MODULE, "--version"]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env=environment(environ),
        )
        found = json.loads(done.stdout.splitlines()[-1])["version"]
    except subprocess.TimeoutExpired:
        return problem("whatsapp library", f"does not load within {_SECONDS:g} s", _MUSL)
    except (IndexError, ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return problem("whatsapp library", f"cannot be loaded: {last}", _MUSL)
    return fine("whatsapp library", f"neonize {found} loads")


def _look_at_session(home: Path, store: Path) -> Finding:
    check = "whatsapp session"
    account = read_account(Folder(home))
    if account is None:
        return problem(check, "no phone is paired", _PAIR)
    try:
        mode = stat.S_IMODE(store.stat().st_mode)
    except OSError as exc:
        return problem(check, f"{store}: {exc.strerror}", f"pynchy whatsapp logout, then {_PAIR}")
    if mode & 0o077:
        return problem(check, f"{store}: others can read it", f"chmod 600 {store}")
    return fine(check, f"paired with {phone(account.jid)}")


def _look_at_chat(name: str, group: GroupSettings) -> Finding:
    check, written = f"whatsapp chat of {name}", group.chat.get(WHATSAPP, "")
    if group.self_chat:
        return fine(check, "the chat of the paired account with itself")
    if not normal(written):
        fix = f'in [groups.{name}]: chat = {{ {WHATSAPP} = "…@g.us" }}, or a phone number'
        return problem(check, written or "none", fix)
    return fine(check, normal(written))


def _look_at_people(name: str, group: GroupSettings) -> Finding:
    check, listed = f"whatsapp people of {name}", group.allowed_users.get(WHATSAPP, ())
    wrong = [entry for entry in listed if not normal(entry)]
    if wrong:
        return problem(check, f"{wrong[0]} is no phone number", 'write it as "+49 170 1234567"')
    if not listed:
        fix = f'in [groups.{name}]: allowed_users = {{ {WHATSAPP} = ["+49…"] }}'
        return problem(check, "nobody may answer", fix)
    return fine(check, f"{len(listed)} may answer")


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
    if state.status is ConnectionStatus.DISCONNECTED:
        why = f" ({state.detail})" if state.detail else ""
        return f"WhatsApp cannot be reached{why}: is this machine online? Then run this again"
    return state.problem() or "not connected"
