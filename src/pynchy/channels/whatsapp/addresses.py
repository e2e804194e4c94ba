"""Addresses in WhatsApp: people in both forms, the paired account, and the groups' chats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pynchy.safe_folder import Folder, UnsafeFile

PHONE = "s.whatsapp.net"
LID = "lid"
GROUP = "g.us"
_SERVERS = (PHONE, LID, GROUP)
_OLD_PHONE = "c.us"
_USER = re.compile(r"[1-9][0-9]{4,19}(-[0-9]{5,20})?", re.ASCII)
_DECORATION = re.compile(r"[\s().-]")
_MAX_LENGTH = 80

_FILE = "account.json"
_CAP = 10_000


def normal(written: str) -> str:
    """Return the address as pynchy compares it; empty if it is none.

    A bare number, however it is spaced, is a phone number; it must begin with the country's, for
    which no country has a zero.
    """
    written = written.strip()
    if len(written) > _MAX_LENGTH:
        return ""
    user, at, server = written.rpartition("@")
    if not at:
        user, server = _DECORATION.sub("", written).removeprefix("+"), PHONE
    server = PHONE if server == _OLD_PHONE else server
    # A device is written behind a colon, an agent behind a dot.
    user = user.partition(":")[0].partition(".")[0]
    return f"{user}@{server}" if server in _SERVERS and _USER.fullmatch(user) else ""


def is_group(jid: str) -> bool:
    """True for a group's address."""
    return jid.endswith(f"@{GROUP}")


def is_hidden(jid: str) -> bool:
    """True for the form that hides the phone number."""
    return jid.endswith(f"@{LID}")


def all_normal(written: Iterable[str]) -> frozenset[str]:
    """Return the addresses among them, as pynchy compares them."""
    return frozenset(filter(None, map(normal, written)))


def phone(jid: str) -> str:
    """Return how a person would write it: +49170… for a phone number."""
    user, _, server = jid.partition("@")
    return f"+{user}" if server == PHONE else jid


@dataclass(frozen=True, slots=True)
class Account:
    """The paired account, in both forms of its address."""

    jid: str
    lid: str = ""
    name: str = ""

    @property
    def forms(self) -> frozenset[str]:
        """Return the addresses that are known of it."""
        return all_normal((self.jid, self.lid))


def read_account(home: Folder) -> Account | None:
    """Return the paired account; None if there is none."""
    try:
        body = json.loads(home.read(_FILE, _CAP))
        return Account(str(body["jid"]), str(body["lid"]), str(body["name"]))
    except (OSError, UnsafeFile, ValueError, KeyError, TypeError):
        return None


def keep_account(home: Folder, account: Account) -> None:
    """Remember the paired account."""
    body = {"jid": account.jid, "lid": account.lid, "name": account.name}
    home.replace(_FILE, json.dumps(body).encode())


def forget_account(home: Folder) -> None:
    """Say that nothing is paired any more."""
    home.remove(_FILE)
