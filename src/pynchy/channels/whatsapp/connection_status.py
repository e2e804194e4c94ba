"""How the connection to WhatsApp stands, and what each status means for the channel."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from pynchy.safe_folder import Folder, UnsafeFile

_FILE = "state.json"
_CAP = 10_000
_MAX_DETAIL = 300


class ConnectionStatus(StrEnum):
    """Where the connection stands."""

    UNPAIRED = "unpaired"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    LOGGED_OUT = "logged_out"
    REPLACED = "replaced"
    BANNED = "banned"
    OUTDATED = "outdated"
    CRASHED = "crashed"

    @property
    def may_pass(self) -> bool:
        """True if it is worth a moment's wait."""
        return self in {
            ConnectionStatus.CONNECTING,
            ConnectionStatus.DISCONNECTED,
            ConnectionStatus.CRASHED,
        }

    @property
    def needs_person(self) -> bool:
        """True if connecting again does not help, or does harm, until somebody acts."""
        return self in {ConnectionStatus.REPLACED, ConnectionStatus.OUTDATED}


_WORDS = {
    ConnectionStatus.UNPAIRED: "not paired with a phone: run `pynchy whatsapp pair`",
    ConnectionStatus.CONNECTING: "not connected yet",
    ConnectionStatus.DISCONNECTED: "the connection to WhatsApp is interrupted; trying again",
    ConnectionStatus.LOGGED_OUT: (
        "logged out by the phone or by WhatsApp: run `pynchy whatsapp pair`"
    ),
    ConnectionStatus.REPLACED: (
        "another program has taken over this session; stop that one, then restart pynchy"
    ),
    ConnectionStatus.BANNED: "WhatsApp has banned this account for a time; nothing is sent",
    ConnectionStatus.OUTDATED: (
        "WhatsApp refuses this version of neonize: update it, then restart pynchy"
    ),
    ConnectionStatus.CRASHED: "the process that talks to WhatsApp has died; starting it again",
}


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """A status, since when, and more in words; `until` is when a ban ends, where it is known."""

    status: ConnectionStatus
    detail: str = ""
    until: float = 0.0
    since: float = 0.0

    @classmethod
    def of(cls, status: ConnectionStatus, now: float, detail: str = "", until: float = 0.0) -> Self:
        """Return the state as it is from now on."""
        return cls(status, detail[:_MAX_DETAIL], until, now)

    def problem(self) -> str | None:
        """Say what is wrong; None if nothing is."""
        if self.status is ConnectionStatus.CONNECTED:
            return None
        words = _WORDS[self.status]
        if self.status is ConnectionStatus.BANNED and self.until:
            ends = datetime.fromtimestamp(self.until, UTC)
            words = f"{words} until {ends:%Y-%m-%d %H:%M} UTC"
        return f"{words} ({self.detail})" if self.detail else words

    def keep(self, home: Folder) -> None:
        """Write it down, for `pynchy whatsapp status` and for the next start."""
        body = {"state": self.status, "detail": self.detail}
        home.replace(_FILE, json.dumps(body | {"until": self.until, "since": self.since}).encode())


def read_state(home: Folder) -> ConnectionState | None:
    """Return how it stood last; None if nobody knows."""
    try:
        body = json.loads(home.read(_FILE, _CAP))
        state = ConnectionState(ConnectionStatus(body["state"]), str(body["detail"]))
        return replace(state, until=float(body["until"]), since=float(body["since"]))
    except (OSError, UnsafeFile, ValueError, KeyError, TypeError):
        return None
