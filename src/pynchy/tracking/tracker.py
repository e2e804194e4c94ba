"""Which sessions there are, whoever started them, and what each is doing.

A session waits while a question of it is open (it is parked, if the agent has put its call off and
nothing of it lives; it works, if it lives and has given up the call), works while something lives
that works on it or an answer is on its way to it, and has ended otherwise. That is looked at, not
believed: it is true after a restart, and when an agent dies without a word.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.errors import DeliveryFailed
from pynchy.events import Event, EventKind
from pynchy.launchers.base import Launch, Launcher, Runner, RunnerEnd
from pynchy.model import GroupName, PendingQuestion, SessionId
from pynchy.pending.base import OpenQuestions, QuestionObserver
from pynchy.session import Session, SessionState, Unconfirmed
from pynchy.tracking.liveness import Liveness
from pynchy.tracking.table import SessionKey, SessionTable, is_over

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
_MAX_LAUNCHES = 50
_MAX_UNCONFIRMED = 8
_MAX_DENIED = 20
_REST_SHARE = 4.0
_GONE = "its process is gone"

_KINDS = {
    wire.SessionWord.STARTED: EventKind.SESSION_STARTED,
    wire.SessionWord.WAITING: EventKind.SESSION_WAITING,
    wire.SessionWord.PARKED: EventKind.SESSION_PARKED,
    wire.SessionWord.FINISHED: EventKind.SESSION_FINISHED,
    wire.SessionWord.FAILED: EventKind.SESSION_FAILED,
    wire.SessionWord.DENIED: EventKind.SESSION_DENIED,
}


class SessionTracker(QuestionObserver):
    """Every session that is known. What changes is told at once and saved by the next look."""

    def __init__(
        self,
        table: SessionTable,
        questions: OpenQuestions,
        audit: AuditLog,
        now: Callable[[], datetime],
        liveness: Liveness,
    ) -> None:
        self._table = table
        self._questions = questions
        self._audit = audit
        self._now = now
        self._changed: set[SessionKey] = set()
        self._starting: dict[SessionKey, asyncio.Event] = {}
        self._watching: set[tuple[SessionKey, str]] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._poked = asyncio.Event()
        self.liveness = liveness

    async def load(self, tasks: asyncio.TaskGroup) -> None:
        """Take up what an earlier host knew, and every session of a question that is open."""
        self._tasks = tasks
        await self._table.load()
        for pending in self._questions:
            self.question_changed(pending)
        for session in self._table:
            launcher = self.liveness.launcher(session.group)
            if is_over(session) or not session.launches or launcher is None:
                continue
            if runner := await launcher.find(session.launches[-1]):
                self._watch(session.key, session.launches[-1], runner)

    async def run(self) -> None:
        """Look at the sessions until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._poked.clear()
            try:
                await self.look()
            except Exception:
                log.exception("sessions.poll_failed")
            # Who has thousands of leases takes a share of the time, and no more.
            await asyncio.sleep((loop.time() - began) * _REST_SHARE)
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._poked.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Find out what the sessions are doing that may have changed, and save it."""
        restless = {s.key for s in self._table if self._may_change_by_itself(s)}
        keys, self._changed = self._changed | restless, set()
        # Who waits for a person is not looked for, unless it may be parked or have given that up.
        unsure = {key[0] for key in keys if not self._open(key) or self._has_given_up(key)}
        leased = {group: await self.liveness.leased_sessions(group) for group in unsure}
        for session in [s for key in keys if (s := self._table.get(key))]:
            self._settle(session, leased.get(session.group, ()))
        await self._table.save_all()
        await self._table.forget_too_many({group for group, _ in keys})

    def sessions(self) -> list[Session]:
        """Return every session, those that began last first."""
        return sorted(self._table, key=lambda s: s.started_at, reverse=True)

    def running(self) -> list[Session]:
        """Return the sessions that have a runner of ours."""
        return [
            session
            for session in self._table
            if not is_over(session) and self.liveness.runner_on(*session.key)
        ]

    def get(self, group: GroupName, session_id: SessionId) -> Session | None:
        """Return the session, if it is known."""
        return self._table.get((group, session_id))

    def find(self, target: str) -> Session:
        """See SessionTable."""
        return self._table.find(target)

    def find_running(self, target: str) -> Session:
        """See SessionTable; of several, the one that has a runner of ours."""
        return self._table.find(target, lambda s: bool(self.liveness.runner_on(*s.key)))

    def check_id(self, key: SessionKey, request_id: str) -> None:
        """Raise MalformedRequest for an id that no new session may have. Known ones go on."""
        if key[1] and key not in self._table:
            wire.check_session_id(key[1], request_id)

    def question_changed(self, pending: PendingQuestion) -> None:
        """Know the question's session, and look at it soon."""
        if not pending.session_id:
            return
        key = (pending.group, pending.session_id)
        known = self._table.get(key) or self._new(key)
        agent, task = pending.agent or known.agent, pending.task or known.task
        self._table.put(replace(known, agent=agent, task=task))
        self._changed.add(key)
        self._poked.set()

    async def heard(self, group: GroupName, event: wire.SessionEvent) -> None:
        """Take what a runner says of its session. The same word again is not told again."""
        key = (group, SessionId(event.session_id))
        self.check_id(key, event.request_id)
        known = self._table.get(key) or self._new(key)
        said = f"{event.event}: {event.detail}" if event.detail else event.event.value
        if event.event is wire.SessionWord.DENIED:
            denied = (*known.denied, event.detail or "a tool")[-_MAX_DENIED:]
            self._table.put(replace(known, denied=denied, agent=event.agent or known.agent))
            self._tell(_KINDS[event.event], self._table[key], event.detail)
        elif said != known.said:
            is_old_news = await self._is_old_news(known)
            known = self._table.get(key) or known  # others may have changed it meanwhile
            failed = event.event is wire.SessionWord.FAILED
            session = replace(known, said=said, failed=failed, agent=event.agent or known.agent)
            # What a dead runner said before its end was known is told, and changes nothing.
            if not is_old_news:
                self._table.put(session)
            self._tell(_KINDS[event.event], session, event.detail)
        self._changed.add(key)
        self._poked.set()
        await self._table.save(key)

    async def _is_old_news(self, session: Session) -> bool:
        """True for the word of a session whose runner has died, and that nobody works on since."""
        if not session.failed or not session.launches or self._has_runner(session.key):
            return False
        return not await self.liveness.leases_of(*session.key)

    async def start(self, launcher: Launcher, launch: Launch) -> Runner | RunnerEnd:
        """Put a runner on the session, and see it to its end. Return why, if that cannot be."""
        await self.launching(launch)
        result: Runner | RunnerEnd = RunnerEnd("its start was broken off")
        try:
            result = await launcher.start(launch)
        except DeliveryFailed as exc:
            result = RunnerEnd(str(exc))
        finally:
            self.launched(launch, result)
        return result

    async def launching(self, launch: Launch) -> None:
        """Remember, durably, that a runner is about to be put on the session."""
        if not launch.session_id:
            return
        key = (launch.group, launch.session_id)
        is_new = key not in self._table
        known = self._table.get(key) or self._new(key)
        earlier = [stem for stem in known.launches if stem != launch.stem]
        session = replace(
            known,
            said="",
            failed=False,
            stopped=False,
            denied=(),
            agent=launch.agent or launch.chosen or known.agent,
            task=launch.task or known.task,
            launches=(*earlier, launch.stem)[-_MAX_LAUNCHES:],
            # Its prompt restates them: whether they arrive depends on this runner now.
            unconfirmed=tuple(Unconfirmed(m.request_id, launch.stem) for m in known.unconfirmed),
            launched_at=self._now(),
            chosen=launch.chosen,
            home=launch.home,
            cwd=launch.cwd,
        )
        self._starting[key] = asyncio.Event()
        self._table.put(session)
        if is_new:
            self._tell(EventKind.SESSION_CHANGED, session, None)
        self._turn(session, SessionState.WORKING, "")
        try:
            await self._table.save(key)
        except BaseException:
            self._no_longer_starting(key)
            raise

    def launched(self, launch: Launch, result: Runner | RunnerEnd) -> None:
        """See what was started to its end, or note that it could not be."""
        key = (launch.group, launch.session_id)
        self._no_longer_starting(key)
        if isinstance(result, RunnerEnd):
            self._runner_ended(key, launch.stem, result)
        else:
            self._watch(key, launch.stem, result)

    async def start_over(self, key: SessionKey) -> None:
        """Return when no runner is just being put on the session."""
        if starting := self._starting.get(key):
            await starting.wait()

    def _no_longer_starting(self, key: SessionKey) -> None:
        if starting := self._starting.pop(key, None):
            starting.set()

    def _watch(self, key: SessionKey, stem: str, runner: Runner) -> None:
        """Notice the runner's end. To watch a runner twice is harmless."""
        if (key, stem) not in self._watching and self._tasks is not None:
            self._watching.add((key, stem))
            work = self._see_it_end(key, stem, runner)
            self._tasks.create_task(work, name=f"session {key[1]}")

    async def _see_it_end(self, key: SessionKey, stem: str, runner: Runner) -> None:
        try:
            end = await runner.ended()
        except Exception:
            log.exception("runner.end_unknown")
            end = RunnerEnd("how its runner ended cannot be found out")
        finally:
            self._watching.discard((key, stem))
        self._runner_ended(key, stem, end)

    async def hold_back(self, key: SessionKey) -> None:
        """Remember that a person has stopped the session: only a person's will brings it back."""
        if known := self._table.get(key):
            self._table.put(replace(known, stopped=True))
            await self._table.save_all()

    def stopped(self, session: Session, by: str) -> None:
        """Tell that a person ended the runner."""
        self._tell(EventKind.SESSION_STOPPED, session, None, by)

    async def mark(self, session: Session, mark: Unconfirmed) -> None:
        """Remember, durably, that the answer has not been followed by a sign of life."""
        known = self._table.get(session.key) or session
        others = [m for m in known.unconfirmed if m.request_id != mark.request_id]
        self._table.put(replace(known, unconfirmed=(*others, mark)[-_MAX_UNCONFIRMED:]))
        await self._table.save(session.key)

    def confirm(self, key: SessionKey, oldest: int = _MAX_UNCONFIRMED) -> None:
        """Take it that the session has used the oldest answers that it received, or all."""
        known = self._table.get(key)
        if known is not None and known.unconfirmed:
            # Saved by the next look: if that is lost, an answer is told once too often.
            self._table.put(replace(known, unconfirmed=known.unconfirmed[oldest:]))

    def spared(self, group: GroupName) -> frozenset[str]:
        """Return the leases that still tell, or may yet have to tell, how a session ended."""
        marks = (m for s in self._table if s.group == group for m in s.unconfirmed)
        marked = {lease for mark in marks for lease in mark.leases}
        # A receipt that we have not noticed yet will need the lease of who asked.
        return frozenset(marked | {pending.lease for pending in self._questions.in_group(group)})

    async def tidy(self, before: datetime) -> None:
        """Forget the sessions that ended before that moment."""
        await self._table.forget([s for s in self._table if is_over(s) and s.since < before])

    def _new(self, key: SessionKey) -> Session:
        now = self._now()
        group, session_id = key
        return Session(group, session_id, SessionState.WORKING, since=now, started_at=now)

    def _runner_ended(self, key: SessionKey, stem: str, end: RunnerEnd) -> None:
        known = self._table.get(key)
        if known is None or known.launches[-1:] != (stem,):
            return
        if end.error is not None:
            why = known.said.startswith(wire.SessionWord.FAILED) and not end.stopped
            said = f"{known.said} ({end.error})" if why else end.error
            self._table.put(replace(known, said=said, failed=True))
        else:
            # What others have received since, it cannot have used: its end may be old news.
            had = [n for n, m in enumerate(known.unconfirmed, start=1) if m.launch == stem]
            self.confirm(key, max(had, default=0))
            self._table.put(replace(self._table[key], said=_last_word(known.said)))
        self._changed.add(key)
        self._poked.set()

    def _settle(self, session: Session, leased: Collection[SessionId]) -> None:
        """Bring the session into the state that it is found in."""
        is_leased = session.session_id in leased
        if oldest := next(iter(self._open(session.key)), None):
            lives = is_leased or self._has_runner(session.key)
            if lives and not self._waits_for_answer(session.key):
                self._turn(session, SessionState.WORKING, "")
                return
            is_parked = self._is_parking(session.key) and not lives
            state = SessionState.PARKED if is_parked else SessionState.WAITING
            self._turn(session, state, oldest.short_id, oldest.timestamp)
        elif is_leased or self._is_busy(session.key):
            self._turn(session, SessionState.WORKING, "")
        else:
            if session.launches and not session.said.startswith(wire.SessionWord.FINISHED):
                self._table.put(replace(session, failed=True))
            self._turn(session, SessionState.ENDED, session.said or _GONE)

    def _may_change_by_itself(self, session: Session) -> bool:
        waits = session.state is SessionState.WAITING
        return session.state is SessionState.WORKING or (waits and self._has_given_up(session.key))

    def _is_parking(self, key: SessionKey) -> bool:
        """True if the agent has put off the call of a question that is open."""
        return any(q.parked for q in self._open(key))

    def _waits_for_answer(self, key: SessionKey) -> bool:
        """True unless every call by which it asked was given up; the questions stay open."""
        return any(q.call_waits or q.parked for q in self._open(key))

    def _has_given_up(self, key: SessionKey) -> bool:
        """True if a call is put off or given up, so that its agent need not be waiting."""
        return any(q.parked or not q.call_waits for q in self._open(key))

    def _open(self, key: SessionKey) -> list[PendingQuestion]:
        return [q for q in self._questions.in_session(*key) if q.state.waits_for_person]

    def _has_runner(self, key: SessionKey) -> bool:
        if key in self._starting or self.liveness.runner_on(*key):
            return True
        # How a runner ended is known a moment after that it has.
        return any((key, stem) in self._watching for stem in self._table[key].launches[-1:])

    def _is_busy(self, key: SessionKey) -> bool:
        """True while a runner is on it, or is about to be, or an answer is on its way to it."""
        return self._has_runner(key) or any(
            q.ending and not q.is_at_rest for q in self._questions.in_session(*key)
        )

    def _turn(
        self, session: Session, state: SessionState, detail: str, since: datetime | None = None
    ) -> None:
        known = self._table[session.key]
        if known.state is state:
            self._table.put(replace(known, detail=detail or known.detail))
            return
        turned = replace(known, state=state, since=since or self._now(), detail=detail)
        self._table.put(turned)
        self._tell(EventKind.SESSION_CHANGED, turned, detail)

    def _tell(
        self, kind: EventKind, session: Session, detail: str | None, by: str | None = None
    ) -> None:
        self._audit.publish(
            Event(
                kind,
                self._now(),
                session.group,
                agent=session.agent,
                by=by,
                detail=detail or None,
                session_id=session.session_id,
                state=session.state,
            )
        )


def _last_word(said: str) -> str:
    """Return how a runner ended that ended well: as it said itself, if it did."""
    ends = (wire.SessionWord.FINISHED, wire.SessionWord.FAILED)
    return said if said.startswith(ends) else wire.SessionWord.FINISHED.value
