"""What a session is: a durable conversation of an agent, whoever started it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pynchy.model import GroupName, RequestId, SessionId


class SessionState(StrEnum):
    """What a session is doing: working, waiting on a person (parked: without a process), ended."""

    WORKING = "working"
    WAITING = "waiting"
    PARKED = "parked"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """An answer that a session has received, and has given no sign of life since.

    `launch` is the runner that worked on the session then, `leases` are those by which it lived:
    by them it can be told whether what received the answer ended in order.
    """

    request_id: RequestId
    launch: str = ""
    leases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """A durable conversation of an agent, whoever started it.

    `since` is when it came into its state, and `detail` says more of that; `said` is the last word
    of its runner, and `failed` if that was a bad one. `denied` are the calls of tools that were not
    allowed in its last run. `launches` are the attempts to put a runner
    on it, the newest last; there are none where pynchy only saw it ask. `stopped`: a person has
    ended it, and nobody has wanted a runner on it since.
    """

    group: GroupName
    session_id: SessionId
    state: SessionState
    since: datetime
    started_at: datetime
    agent: str = ""
    task: str = ""
    detail: str = ""
    said: str = ""
    failed: bool = False
    launches: tuple[str, ...] = ()
    launched_at: datetime | None = None
    chosen: str = ""
    home: str = ""
    cwd: str = ""
    unconfirmed: tuple[Unconfirmed, ...] = ()
    denied: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def key(self) -> tuple[GroupName, SessionId]:
        """What tells this session from all others; ids are only unique within a group."""
        return (self.group, self.session_id)
