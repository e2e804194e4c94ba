"""Ask, wait, and hand each answer on once.

A call that ends without an answer leaves its question open: the asker remembers it, and `collect`
brings the answer when it has come. Between the receipt and the return of a Result there is no
`await`, so no cancellation can lose an answer that was claimed.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_runner.asking import wire
from agent_runner.asking._heartbeat import Heartbeat, note
from agent_runner.asking._model import (
    Announcement,
    Answer,
    Outcome,
    Request,
    RequestId,
    Result,
    failure,
    safe_wait,
)
from agent_runner.asking._waiter import Waiter, finish_in_thread
from agent_runner.asking.lease import Lease
from agent_runner.asking.mailbox import MAX_REQUEST_BYTES, Mailbox, dismissal_name
from agent_runner.asking.notes import Notes
from agent_runner.errors import BadArguments, BadFile

# The host counts from when it read the question: its `defaulted` comes a little after our limit.
DEFAULT_GRACE_SECONDS = 5.0
WITHDRAW_GRACE_SECONDS = 2.0
PICKED_UP_SECONDS = 0.1


class Asker:
    """Asks on behalf of one process, as an async context manager.

    `max_wait` is the limit of whoever calls: each wait ends before it. `is_heard` says whether
    whoever calls is still there: an answer is not taken for somebody who is gone. The answer to
    `granted` is ours without a receipt: the host took that before it resumed our session for it.
    `confirms`: whoever calls takes what was claimed (`take_in_hand`) and says when it has passed it
    on (`pass_on`). What stands in the Notes below `state_dir` the session was told before. `agent`
    and `task` name it before it asks, and `tell` hears what goes wrong on the way.
    Raise MailboxMissing if there is no mailbox at `ipc_dir`.
    """

    def __init__(  # noqa: PLR0913 - all that one asker needs
        self,
        ipc_dir: Path,
        *,
        session_id: str = "",
        max_wait: float | None = None,
        waiter: Waiter | None = None,
        is_heard: Callable[[], bool] = lambda: True,
        granted: str = "",
        confirms: bool = False,
        state_dir: Path | None = None,
        agent: str = "",
        task: str = "",
        tell: Callable[[str], None] = note,
    ) -> None:
        self._mailbox = Mailbox.open(ipc_dir)
        self._tell = tell
        self._session_id = session_id
        self._is_heard = is_heard
        self._granted = granted
        self._confirms = confirms
        self._ipc_dir, self._state_dir = ipc_dir, state_dir
        self._longest_wait = float("inf") if max_wait is None else safe_wait(max_wait)
        self._waiter = waiter or Waiter(self._mailbox.responses)
        lease = Lease(self._mailbox.tasks, session_id=session_id, agent=agent, task=task)
        self._heartbeat = Heartbeat(lease, self._note_once)
        self._open: dict[RequestId, None] = {}  # in the order of asking
        self._waiting: Counter[RequestId] = Counter()
        self._taken: set[RequestId] = set()
        self._in_hand: list[RequestId] = []
        self._unsent: set[RequestId] = set()
        self._reported: set[RequestId] = set()
        self._noted: set[str] = set()
        self._known_responses: set[str] = set()

    async def __aenter__(self) -> Self:
        if self._session_id:
            # From the start: whoever resumes a session must see that somebody works on it.
            try:
                await self._heartbeat.begin(self._session_id)
            except OSError as exc:
                self._note_once(f"cannot take a lease: {exc}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The lease first: who started us may not wait for the threads to end.
        await self._heartbeat.end()
        await asyncio.to_thread(self._waiter.stop)

    def work_for(self, session_id: str) -> None:
        """Say from now on that it is this session that asks, where only its calls tell."""
        if session_id != self._session_id:
            self._known_responses.clear()
        self._session_id = session_id

    async def ask(self, request: Request, *, wait: bool = True) -> Result:
        """Put the questions and wait for how they end; PENDING when the time is over first.

        Cancelled: the question stays open and the host is told that the call is gone.
        Raise BadArguments if the questions are too long for the mailbox.
        """
        request_id = request.request_id
        if request_id == self._granted and (granted := self._look(request_id)) is not None:
            self._taken.add(request_id)
            return granted
        seconds = request.wait_seconds or self._mailbox.wait_seconds()
        request = replace(request, wait_seconds=seconds)
        if request.has_all_defaults:
            seconds += DEFAULT_GRACE_SECONDS
        try:
            with self._waiting_for(request_id):
                await self._send(request)
                hears = request.hears_dismissal
                found = await self._wait(request_id, seconds, hears=hears) if wait else None
        except OSError as exc:
            return failure(request_id, f"the question could not be written: {exc}")
        except asyncio.CancelledError:
            with suppress(OSError):  # the host also notices when our lease ends
                await self._send_about(wire.TYPE_CANCEL, request_id)
            raise
        if found is not None and found.outcome is Outcome.DISMISSED:
            with suppress(OSError):  # as above
                await self.stop_waiting(request_id)
            return found
        return self._pending(request_id) if found is None else self._take_own(found)

    async def announce(self, told: Announcement) -> None:
        """Tell people something without wanting an answer. Raise OSError."""
        data = wire.encode_announcement(told)
        await finish_in_thread(partial(self._mailbox.send, f"{told.request_id}.json", data))

    async def check(self, request_id: RequestId, *, seconds: float = 0.0) -> Result:
        """Return how a question ended, waiting that long for it; PENDING if it has not.

        `repeated` is set when its outcome was delivered before, here or elsewhere.
        """
        with self._waiting_for(request_id):
            found = await self._wait(request_id, seconds)
        return self._pending(request_id) if found is None else self._as_told(self._take(found))

    async def look_again(self, request_id: RequestId) -> Result:
        """Return how a question ended, as the call that asked it hears it, however often it asks.

        `repeated` is set only where somebody else has taken the outcome before.
        """
        ours = request_id in self._taken
        result = await self.check(request_id)
        return replace(result, repeated=result.repeated and not ours)

    def has_asked(self, request_id: RequestId) -> bool:
        """True for a question of this process that has not ended, as far as it knows."""
        return request_id in self._open

    def set_aside(self, request_id: RequestId) -> None:
        """Leave a question out of `collect`: somebody will ask for it by its id."""
        self._open.pop(request_id, None)

    def take_up(self, request_id: RequestId) -> None:
        """Let `collect` bring the answer to a question that nobody asks for any longer."""
        self._open[request_id] = None

    async def stop_waiting(self, request_id: RequestId) -> None:
        """Tell the host that nobody waits; the question stays open. Raise OSError."""
        await self._send_about(wire.TYPE_CANCEL, request_id)

    @property
    def default_wait_seconds(self) -> float:
        """How long a call blocks when it does not say."""
        return self._mailbox.wait_seconds()

    @property
    def takes_desk_answers(self) -> bool:
        """Whether a question may be answered in the terminal of the agent's own client."""
        return self._mailbox.takes_desk_answers()

    async def picked_up(self, request_id: RequestId) -> None:
        """Return when the question was asked and a host has taken it out of the mailbox."""
        # No notification tells that a file is gone.
        while request_id not in self._open or not self.is_picked_up(request_id):  # noqa: ASYNC110
            await asyncio.sleep(PICKED_UP_SECONDS)

    async def answer_at_desk(
        self, request_id: RequestId, by: str, answers: Iterable[Answer]
    ) -> None:
        """Tell the host what the person at the terminal says; it decides whether that counts.

        Raise OSError.
        """
        data = wire.encode_desk_answer(request_id, by, tuple(answers))
        send = self._mailbox.send_about
        await finish_in_thread(partial(send, wire.TYPE_DESK_ANSWER, request_id, data))

    async def outcome(self, request_id: RequestId, *, seconds: float) -> Result | None:
        """Return how a question ended, waiting that long for it. It is nobody's until `claim`."""
        with self._waiting_for(request_id):
            return await self._wait(request_id, seconds)

    def claim(self, found: Result) -> bool:
        """Take an outcome for whoever asked. False if it cannot be taken, or somebody else has it.

        From then on nobody else gets it: `pass_on` is to follow.
        """
        taken = self._take(found)
        return taken.outcome is found.outcome and not taken.repeated

    async def take_back(
        self, request_id: RequestId, reason: str, *, maybe_typed: bool = False
    ) -> None:
        """Say that a terminal asks the question no more, and why. Raise OSError."""
        self._open.pop(request_id, None)
        data = wire.encode_taken_back(request_id, reason, maybe_typed=maybe_typed)
        send = self._mailbox.send_about
        await finish_in_thread(partial(send, wire.TYPE_WITHDRAW, request_id, data))

    async def withdraw(self, request_id: RequestId) -> Result:
        """End a question that is no longer needed; PENDING if the host has not confirmed it."""
        try:
            await self._send_about(wire.TYPE_WITHDRAW, request_id)
        except OSError as exc:
            return failure(request_id, f"the withdrawal could not be written: {exc}")
        if self._waiting[request_id]:
            return self._pending(request_id)  # the call that waits will take what comes
        return await self.check(request_id, seconds=WITHDRAW_GRACE_SECONDS)

    def collect(self) -> tuple[Result, ...]:
        """Take what has come for questions that no call waits for.

        This process has left them open, or one before it that worked on the same session.
        `repeated` is set for what the session was told at its start.
        """
        self._adopt()
        idle = [request_id for request_id in self._open if not self._waiting[request_id]]
        found = [result for request_id in idle if (result := self._look(request_id))]
        taken = [self._take(result) for result in found]
        fresh = [r for r in taken if not r.repeated and r.outcome is not Outcome.PENDING]
        return tuple(self._as_told(result) for result in fresh)

    def _as_told(self, result: Result) -> Result:
        """Say that it is repeated if our session was told of it when it was opened again."""
        if result.request_id not in self._taken or not self._session_id or not self._state_dir:
            return result
        try:
            told = Notes(self._state_dir, self._session_id).of_mailbox(self._ipc_dir)
        except (OSError, RuntimeError) as exc:  # a folder that leads in circles
            self._note_once(f"cannot look what was told at the start: {exc}")
            return result
        return replace(result, repeated=result.repeated or result.request_id in told)

    def _adopt(self) -> None:
        """Take up what was asked by a process that worked on our session before."""
        if not self._session_id:
            return
        try:
            found = self._mailbox.untaken(self._session_id, self._known_responses)
        except OSError as exc:
            self._note_once(f"cannot look for earlier answers: {exc}")
            return
        self._open.update(dict.fromkeys(each for each in found if each not in self._taken))

    def take_in_hand(self) -> tuple[RequestId, ...]:
        """Return what was claimed since the last time, and is to be passed on."""
        taken, self._in_hand = tuple(self._in_hand), []
        return taken

    def pass_on(self, taken: Iterable[RequestId]) -> None:
        """Say that whoever asked has these answers. From any thread."""
        for request_id in taken:
            try:
                self._mailbox.passed_on(request_id)
            except OSError as exc:
                self._note_once(f"cannot say that an answer was passed on: {exc}")

    def is_picked_up(self, request_id: RequestId) -> bool:
        """Say whether a host has taken the question out of the mailbox."""
        return request_id not in self._unsent and not self._mailbox.is_unread(request_id)

    def why_unseen(self, request_id: RequestId) -> str:
        """Return why nobody can have seen the question yet; empty if somebody may have."""
        return self._mailbox.why_unseen(request_id)

    async def _send(self, request: Request) -> None:
        data = wire.encode_request(
            request, session_id=self._session_id, lease=self._heartbeat.lease.name
        )
        if len(data) > MAX_REQUEST_BYTES:
            raise BadArguments(
                f"questions: {len(data)} bytes together, at most {MAX_REQUEST_BYTES} can be sent"
            )
        await self._heartbeat.begin(self._session_id)
        self._arm()
        # Before the write: a call that is cancelled in the midst of it has asked all the same.
        self._open[request.request_id] = None
        self._unsent.add(request.request_id)
        await finish_in_thread(partial(self._mailbox.send, f"{request.request_id}.json", data))
        self._unsent.discard(request.request_id)
        self._report(request)

    def _report(self, request: Request) -> None:
        """Let phux know of it, where this runs in a terminal of phux. Nobody waits for that."""
        if "PHUX_TERMINAL_ID" not in os.environ or request.request_id in self._reported:
            return
        self._reported.add(request.request_id)
        if prefix := self._mailbox.phux_prefix():
            from agent_runner.asking import phux  # noqa: PLC0415 - hardly anybody needs it

            phux.report(prefix, request, os.environ)

    async def _send_about(self, type_: str, request_id: RequestId) -> None:
        await finish_in_thread(partial(self._mailbox.send_about, type_, request_id))

    async def _wait(
        self, request_id: RequestId, seconds: float, *, hears: bool = False
    ) -> Result | None:
        if seconds > 0:
            self._arm()
        look = partial(self._look, request_id, hears=hears)
        other = dismissal_name(request_id) if hears else ""
        seconds = min(seconds, self._longest_wait)
        return await self._waiter.wait_for(f"{request_id}.json", look, seconds, other)

    def _arm(self) -> None:
        if (reason := self._waiter.arm()) is not None:
            self._note_once(f"cannot watch the mailbox ({reason}); looking often instead")

    def _look(self, request_id: RequestId, *, hears: bool = False) -> Result | None:
        try:
            found = self._mailbox.read_response(request_id)
            return found or (self._mailbox.read_dismissal(request_id) if hears else None)
        except BadFile as exc:
            self._note_once(f"the response to {request_id} cannot be used yet: {exc}")
            return None

    @contextmanager
    def _waiting_for(self, request_id: RequestId) -> Iterator[None]:
        self._waiting[request_id] += 1
        try:
            yield
        finally:
            self._waiting[request_id] -= 1
            if not self._waiting[request_id]:
                del self._waiting[request_id]

    def _take_own(self, found: Result) -> Result:
        """Take the answer for the call that asked; nothing of it if another session has it."""
        result = self._take(found)
        if result.repeated and result.request_id not in self._taken:
            return Result(result.request_id, Outcome.ELSEWHERE)
        return replace(result, repeated=False)  # the same call, sent twice, hears the same

    def _take(self, found: Result) -> Result:
        """Claim the answer, at once: an await here could lose what was claimed."""
        request_id = found.request_id
        if request_id in self._taken:
            return replace(found, repeated=True)
        if not self._is_heard():
            return self._pending(request_id)
        try:
            won = self._mailbox.claim(request_id, self._own_lease())
        except OSError as exc:
            return failure(request_id, f"a response is there but cannot be taken: {exc}")
        self._open.pop(request_id, None)
        if won:
            self._taken.add(request_id)
            self._in_hand.append(request_id)
        return replace(found, repeated=not won)

    def _own_lease(self) -> str:
        """Return the lease by which the host sees whether we live to pass an answer on."""
        heartbeat = self._heartbeat
        return heartbeat.lease.name if self._confirms and heartbeat.has_begun else ""

    def _pending(self, request_id: RequestId) -> Result:
        return Result(request_id, Outcome.PENDING, picked_up=self.is_picked_up(request_id))

    def _note_once(self, message: str) -> None:
        if message not in self._noted:
            self._noted.add(message)
            self._tell(message)


async def ask(
    ipc_dir: Path,
    request: Request,
    *,
    session_id: str = "",
    max_wait: float | None = None,
    wait: bool = True,
) -> Result:
    """Ask one thing and return how it ended. Raise MailboxMissing or BadArguments."""
    async with Asker(ipc_dir, session_id=session_id, max_wait=max_wait) as asker:
        return await asker.ask(request, wait=wait)
