"""Look whether the WhatsApp channel can work, before a question depends on it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pynchy.channels.whatsapp.account import read_account
from pynchy.channels.whatsapp.addresses import normal, phone
from pynchy.channels.whatsapp.connection_status import ConnectionStatus, read_state
from pynchy.channels.whatsapp.process import STAND_IN, environment
from pynchy.config import WHATSAPP, GroupSettings, Settings
from pynchy.safe_folder import Folder

_SECONDS = 30.0
_MUSL = "neonize has no build for this system; it needs glibc, macOS or Windows"
_PAIR = "pynchy whatsapp pair"


@dataclass(frozen=True, slots=True)
class WhatsAppCheck:
    """What was looked at and found; without a fix, all is well."""

    check: str
    detail: str
    fix: str = ""


def examine(
    settings: Settings, home: Path, store: Path, environ: Mapping[str, str], *, running: bool
) -> Iterator[WhatsAppCheck]:
    """Yield everything that there is to say; `running` if a host tells its own troubles."""
    yield _look_at_library(environ)
    if STAND_IN in environ:
        told = "it talks to a stand-in for tests, not to WhatsApp"
        yield WhatsAppCheck(WHATSAPP, told, f"unset {STAND_IN} where pynchy runs")
    yield _look_at_session(home, store)
    if not running and (state := read_state(Folder(home))) is not None:
        lasting = state.status in {
            ConnectionStatus.BANNED,
            ConnectionStatus.REPLACED,
            ConnectionStatus.OUTDATED,
        }
        if lasting and (problem := state.problem()) is not None:
            yield WhatsAppCheck("whatsapp connection", problem, "see docs/whatsapp.md")
    for name, group in settings.groups.items():
        if WHATSAPP in group.channels:
            yield _look_at_chat(name, group)
            yield _look_at_people(name, group)


def _look_at_library(environ: Mapping[str, str]) -> WhatsAppCheck:
    """Load the library as the child does, in a process of its own."""
    command = [sys.executable, "-P", "-m", "pynchy.channels.whatsapp.child", "--version"]
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
        return WhatsAppCheck("whatsapp library", f"does not load within {_SECONDS:g} s", _MUSL)
    except (IndexError, ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return WhatsAppCheck("whatsapp library", f"cannot be loaded: {last}", _MUSL)
    return WhatsAppCheck("whatsapp library", f"neonize {found} loads")


def _look_at_session(home: Path, store: Path) -> WhatsAppCheck:
    check = "whatsapp session"
    account = read_account(Folder(home))
    if account is None:
        return WhatsAppCheck(check, "no phone is paired", _PAIR)
    try:
        mode = stat.S_IMODE(store.stat().st_mode)
    except OSError as exc:
        return WhatsAppCheck(
            check, f"{store}: {exc.strerror}", f"pynchy whatsapp logout, then {_PAIR}"
        )
    if mode & 0o077:
        return WhatsAppCheck(check, f"{store}: others can read it", f"chmod 600 {store}")
    return WhatsAppCheck(check, f"paired with {phone(account.jid)}")


def _look_at_chat(name: str, group: GroupSettings) -> WhatsAppCheck:
    check, written = f"whatsapp chat of {name}", group.chat.get(WHATSAPP, "")
    if group.self_chat:
        return WhatsAppCheck(check, "the chat of the paired account with itself")
    if not normal(written):
        fix = f'in [groups.{name}]: chat = {{ {WHATSAPP} = "…@g.us" }}, or a phone number'
        return WhatsAppCheck(check, written or "none", fix)
    return WhatsAppCheck(check, normal(written))


def _look_at_people(name: str, group: GroupSettings) -> WhatsAppCheck:
    check, listed = f"whatsapp people of {name}", group.allowed_users.get(WHATSAPP, ())
    wrong = [entry for entry in listed if not normal(entry)]
    if wrong:
        return WhatsAppCheck(
            check, f"{wrong[0]} is no phone number", 'write it as "+49 170 1234567"'
        )
    if not listed:
        fix = f'in [groups.{name}]: allowed_users = {{ {WHATSAPP} = ["+49…"] }}'
        return WhatsAppCheck(check, "nobody may answer", fix)
    return WhatsAppCheck(check, f"{len(listed)} may answer")
