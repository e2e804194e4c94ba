"""What a launcher promises: to resume a session, and never to have two runners on one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pynchy.model import GroupName, RequestId, SessionId


@dataclass(frozen=True, slots=True)
class Resumption:
    """One attempt to bring a session back with an answer."""

    group: GroupName
    session_id: SessionId
    request_id: RequestId
    attempt: int
    initial: Path
    ipc_dir: Path


@dataclass(frozen=True, slots=True)
class RunnerEnd:
    """How a runner ended. `error` is None if it ended well."""

    error: str | None = None


class Runner(Protocol):
    """A living process that works on a session."""

    async def ended(self) -> RunnerEnd:
        """Return when the runner has ended. May be awaited by several."""


class Launcher(Protocol):
    """Starts runners and finds them again."""

    async def adopt(self) -> None:
        """Find the runners that an earlier host has started and that still live."""

    async def start(self, resumption: Resumption) -> Runner:
        """Start a runner. Raise DeliveryFailed if that cannot be done."""

    async def find(self, resumption: Resumption) -> Runner | None:
        """Return the runner of an earlier attempt, alive or ended, if there was one."""

    def is_live(self, group: GroupName, session_id: SessionId) -> bool:
        """True while a runner that this launcher started works on the session."""

    async def close(self) -> None:
        """Stop looking after runners; they go on."""
