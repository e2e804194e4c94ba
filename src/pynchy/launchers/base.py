"""What a launcher promises: a runner on a session, and never two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pynchy.model import GroupName, RequestId, SessionId


@dataclass(frozen=True, slots=True)
class Launch:
    """One attempt to put a runner on a session: with an answer, or with a first prompt.

    `name` is the answered question's id, or that of the session for a first prompt. `home` and
    `cwd` are those that the session began with, where they are known: agents find their sessions
    by them. `chosen` is the agent program that the session began with, if pynchy has started it.
    """

    group: GroupName
    session_id: SessionId
    name: str
    attempt: int
    initial: Path
    ipc_dir: Path
    request_id: RequestId | None = None
    agent: str = ""
    task: str = ""
    chosen: str = ""
    home: str = ""
    cwd: str = ""

    @property
    def stem(self) -> str:
        """What tells this attempt from all others of the group, but see `Launcher.find`."""
        # A question may have the id of its session, by which that one's first prompt is called.
        is_alike = self.request_id is not None and self.name == self.session_id
        return f"{self.name}.answer.{self.attempt}" if is_alike else f"{self.name}.{self.attempt}"


@dataclass(frozen=True, slots=True)
class RunnerEnd:
    """How a runner ended. `error` is None if it ended well; `stopped` if a person ended it."""

    error: str | None = None
    stopped: bool = False


class Runner(Protocol):
    """A process that works on a session, or has."""

    async def ended(self) -> RunnerEnd:
        """Return when the runner has ended. May be awaited by several."""

    async def stop(self) -> None:
        """Have the runner asked to end, and killed after its grace; `ended` tells when."""


@dataclass(frozen=True, slots=True)
class FollowedRunner:
    """A runner as the task that waits for its end."""

    task: asyncio.Task[RunnerEnd]
    ask_to_end: Callable[[], None]

    async def ended(self) -> RunnerEnd:
        """See Runner."""
        return await asyncio.shield(self.task)

    async def stop(self) -> None:
        """See Runner."""
        await asyncio.to_thread(self.ask_to_end)


@dataclass(frozen=True, slots=True)
class EndedRunner:
    """A runner that is gone."""

    end: RunnerEnd

    async def ended(self) -> RunnerEnd:
        """See Runner."""
        return self.end

    async def stop(self) -> None:
        """See Runner."""


def too_many_runners(most: int) -> str:
    """Say why no further runner of a group is started."""
    return (
        f"as many of its runners live as may at once (max_runners = {most}); this waits for one "
        "to end: see pynchy sessions, and pynchy stop"
    )


class Launcher(Protocol):
    """Starts runners and finds them again."""

    async def adopt(self) -> None:
        """Find the runners that an earlier host has started and that still live."""

    async def start(self, launch: Launch) -> Runner:
        """Start a runner. Raise DeliveryFailed if that cannot be done, or one is there."""

    async def find(self, stem: str, request_id: RequestId | None = None) -> Runner | None:
        """Return the runner of an earlier attempt, alive or ended, if there was one.

        With `request_id`, only if it was started with the answer to that question: an agent can
        ask under the id of another session, whose first prompt has the same stem.
        """

    def runner_on(self, group: GroupName, session_id: SessionId) -> Runner | None:
        """Return the living runner that this launcher has put on the session, if any."""

    def running(self, group: GroupName) -> frozenset[SessionId]:
        """Return the group's sessions that have a living runner, or are about to."""

    async def close(self) -> None:
        """Stop looking after runners; they go on."""
