"""Which account the session is paired with; the file is there as long as there is a session."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pynchy.channels.whatsapp.addresses import all_normal
from pynchy.safe_folder import Folder, UnsafeFile

_FILE = "account.json"
_CAP = 10_000


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
