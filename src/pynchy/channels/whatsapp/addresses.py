"""Addresses in WhatsApp: people in both of their forms, groups, and how people write them.

A person has a phone number (49170…@s.whatsapp.net) and a hidden id (…@lid), and each device adds a
suffix of its own. Everything here is compared without the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PHONE = "s.whatsapp.net"
LID = "lid"
GROUP = "g.us"
_SERVERS = (PHONE, LID, GROUP)
_OLD_PHONE = "c.us"
_USER = re.compile(r"[1-9][0-9]{4,19}(-[0-9]{5,20})?", re.ASCII)
_DECORATION = re.compile(r"[\s().-]")
MAX_ENTRIES = 80


def normal(written: str) -> str:
    """Return the address as pynchy compares it; empty if it is none.

    A bare number, however it is spaced, is a phone number; it must begin with the country's, for
    which no country has a zero.
    """
    written = written.strip()
    if len(written) > MAX_ENTRIES:
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
