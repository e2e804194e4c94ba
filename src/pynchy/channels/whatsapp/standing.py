"""How the connection to WhatsApp stands, and what each standing means for the channel."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from pynchy.folder import Folder, UnsafeFile

_FILE = "state.json"
_CAP = 10_000
_MOST_DETAIL = 300


class Standing(StrEnum):
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
        return self in {Standing.CONNECTING, Standing.DISCONNECTED, Standing.CRASHED}

    @property
    def needs_person(self) -> bool:
        """True if connecting again does not help, or does harm, until somebody acts."""
        return self in {Standing.REPLACED, Standing.OUTDATED}


_WORDS = {
    Standing.UNPAIRED: "not paired with a phone: run `pynchy whatsapp pair`",
    Standing.CONNECTING: "not connected yet",
    Standing.DISCONNECTED: "the connection to WhatsApp is interrupted; trying again",
    Standing.LOGGED_OUT: "logged out by the phone or by WhatsApp: run `pynchy whatsapp pair`",
    Standing.REPLACED: (
        "another program has taken over this session; stop that one, then restart pynchy"
    ),
    Standing.BANNED: "WhatsApp has banned this account for a time; nothing is sent",
    Standing.OUTDATED: "WhatsApp refuses this version of neonize: update it, then restart pynchy",
    Standing.CRASHED: "the process that talks to WhatsApp has died; starting it again",
}


@dataclass(frozen=True, slots=True)
class State:
    """A standing, since when, and more in words; `until` is when a ban ends, where it is known."""

    standing: Standing
    detail: str = ""
    until: float = 0.0
    since: float = 0.0

    @classmethod
    def of(cls, standing: Standing, now: float, detail: str = "", until: float = 0.0) -> Self:
        """Return the state as it is from now on."""
        return cls(standing, detail[:_MOST_DETAIL], until, now)

    def problem(self) -> str | None:
        """Say what is wrong; None if nothing is."""
        if self.standing is Standing.CONNECTED:
            return None
        words = _WORDS[self.standing]
        if self.standing is Standing.BANNED and self.until:
            ends = datetime.fromtimestamp(self.until, UTC)
            words = f"{words} until {ends:%Y-%m-%d %H:%M} UTC"
        return f"{words} ({self.detail})" if self.detail else words

    def keep(self, home: Folder) -> None:
        """Write it down, for `pynchy whatsapp status` and for the next start."""
        body = {"state": self.standing, "detail": self.detail}
        home.replace(_FILE, json.dumps(body | {"until": self.until, "since": self.since}).encode())


def read_state(home: Folder) -> State | None:
    """Return how it stood last; None if nobody knows."""
    try:
        body = json.loads(home.read(_FILE, _CAP))
        state = State(Standing(body["state"]), str(body["detail"]))
        return replace(state, until=float(body["until"]), since=float(body["since"]))
    except (OSError, UnsafeFile, ValueError, KeyError, TypeError):
        return None
