"""Start a session because a person wants one, and end its runner when they want that.

A session is on the disk before its runner is started, so it is never lost from sight.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pynchy import wire
from pynchy.config import LauncherSettings, Settings
from pynchy.errors import NotStarted, NotStopped, SessionOver, UnknownSession
from pynchy.ipc.base import MailboxDirectory
from pynchy.launchers.base import Launch, RunnerEnd
from pynchy.misspelling import similar_group
from pynchy.model import GroupName, SessionId
from pynchy.session import Session, SessionState
from pynchy.tracking.redelivery import LostAnswers

# Lets no runner be put on a session for answers that are on their way; True if there were any.
HaltResumes = Callable[[GroupName, SessionId], Awaitable[bool]]

SESSION_PREFIX = "session:"
# Beyond its grace: the supervisor looks, ends what it runs, and writes that down.
_STOP_MARGIN_SECONDS = 10.0
_TASK_LETTERS = 200
_SIGNS_OF_LIFE = (
    wire.SessionWord.WAITING,
    wire.SessionWord.PARKED,
    wire.SessionWord.FINISHED,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person wants started. `agent` is empty for the launcher's own."""

    group: str
    prompt: str
    agent: str = ""


class SessionControl:
    """Starts and stops runners at a person's word, and hears what runners say."""

    def __init__(
        self,
        lost_answers: LostAnswers,
        halt_resumes: HaltResumes,
        mailboxes: MailboxDirectory,
        settings: Settings,
        environ: Mapping[str, str],
    ) -> None:
        self._tracker = lost_answers.tracker
        self._halt_resumes = halt_resumes
        self._lost_answers = lost_answers
        self._mailboxes = mailboxes
        self._settings = settings
        self._environ = environ

    async def handle(self, group: GroupName, envelope: wire.Envelope) -> None:
        """Take what a runner says of its session. Raise MalformedRequest if that is nonsense."""
        event = wire.read_session_event(envelope)
        await self._tracker.heard(group, event)
        # A runner that has only started has not shown that its model has read anything.
        if event.event in _SIGNS_OF_LIFE:
            await self._lost_answers.confirm_activity(group, SessionId(event.session_id))

    async def start(self, wanted: Wanted) -> Session:
        """Start a session. Raise UnknownSession for a group, or NotStarted with the reason."""
        group = await self._group(wanted.group)
        settings = self._launcher_settings(group, wanted.agent)
        launcher = self._tracker.liveness.launcher(group)
        if launcher is None:
            raise NotStarted(f"group {group} has no launcher")
        launch = await self._prepare(group, wanted, settings)
        result = await self._tracker.start(launcher, launch)
        if isinstance(result, RunnerEnd):
            raise NotStarted(result.error or "")
        return self._tracker.find(f"{group}/{launch.session_id}")

    async def stop(self, target: str, by: str) -> tuple[Session, RunnerEnd]:
        """End the session's runner and return how it ended.

        Raise UnknownSession, SessionOver if there is nothing to end, or NotStopped if its runner
        is not one of ours.
        """
        # Only what runs can be stopped, whatever ids other groups make up.
        session = self._tracker.find_running(target)
        limit = self._limit_seconds(session.group)
        try:
            async with asyncio.timeout(limit):
                end = await self._end(session, by)
        except TimeoutError:
            raise NotStopped(
                f"the runner of {session.session_id} was asked to end and has not; "
                "its supervisor may be gone: look for its process"
            ) from None
        return session, end

    async def _end(self, session: Session, by: str) -> RunnerEnd:
        await self._tracker.start_over(session.key)
        # Before its runner ends: what it has asked with a default may fall due at any time.
        await self._tracker.hold_back(session.key)
        runner = self._tracker.liveness.runner_on(*session.key)
        if runner is not None:
            await runner.stop()
            self._tracker.stopped(session, by)
            return await runner.ended()
        # It may be about to be started: after a failure, or because others are first.
        if await self._halt_resumes(*session.key):
            # A runner that was just being started stands for somebody's wish.
            await self._tracker.hold_back(session.key)
            self._tracker.stopped(session, by)
            return RunnerEnd("stopped before its runner was started again", stopped=True)
        raise _nothing_to_stop(session)

    def _limit_seconds(self, group: GroupName) -> float:
        launcher = self._settings.group(group).launcher
        return (launcher.term_grace.total_seconds() if launcher else 0.0) + _STOP_MARGIN_SECONDS

    async def _group(self, name: str) -> GroupName:
        known = {*self._settings.groups, *await asyncio.to_thread(self._mailboxes.groups)}
        if name not in known:
            near = similar_group(name, known)
            meant = f" (did you mean {near}?)" if near else ""
            listed = ", ".join(sorted(known)) or "none"
            raise UnknownSession(f"no group is called {name}{meant}; known groups: {listed}")
        return GroupName(name)

    def _launcher_settings(self, group: GroupName, agent: str) -> LauncherSettings:
        settings = self._settings.group(group).launcher
        if settings is None:
            raise NotStarted(
                f"group {group} has no launcher: say in [groups.{group}.launcher] how its agent "
                "is started, and restart pynchy serve"
            )
        if agent and settings.kind == "command":
            raise NotStarted(
                f"group {group} is started by a command of its own, so no agent can be chosen"
            )
        return settings

    async def _prepare(
        self, group: GroupName, wanted: Wanted, settings: LauncherSettings
    ) -> Launch:
        """Write what the session begins with, and say where it will live."""
        session_id = SessionId(str(uuid.uuid4()))
        mailbox = self._mailboxes.of(group)
        await asyncio.to_thread(mailbox.make)
        first = wire.first_json(session_id, wanted.prompt)
        initial = await asyncio.to_thread(mailbox.write_initial, session_id, first)
        home, cwd = settings.places(mailbox.path.parents[1], group, self._environ)
        return Launch(
            group=group,
            session_id=session_id,
            name=session_id,
            attempt=1,
            initial=initial,
            ipc_dir=mailbox.path,
            agent=wanted.agent or settings.agent or "",
            task=_task(wanted.prompt),
            chosen=wanted.agent or settings.agent or "",
            home=home,
            cwd=cwd,
        )


def _nothing_to_stop(session: Session) -> Exception:
    if session.state is SessionState.ENDED:
        return SessionOver(f"{session.session_id} has ended already: {session.detail}")
    if session.state is SessionState.PARKED:
        return SessionOver(
            f"nothing of {session.session_id} runs: it is parked. `pynchy decline {session.detail}`"
            " ends what it asks, and it is resumed to be told so"
        )
    if session.launches:
        return SessionOver(
            f"no runner works on {session.session_id} now: it is {session.state}. Only a person's "
            "answer brings it back, no default of its own"
        )
    return NotStopped(
        f"pynchy has not started what works on {session.session_id}: end it where it runs"
    )


def _task(prompt: str) -> str:
    """Return the first line of the prompt, as what the session is about."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= _TASK_LETTERS else f"{line[: _TASK_LETTERS - 1]}…"
