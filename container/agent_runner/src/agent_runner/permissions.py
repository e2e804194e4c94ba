"""Ask a person what a program waits for, in a thread of its own for each request.

It waits for permission to make a call, or for answers. What is asked stays open when the program
ends or nobody answers in time: a person may still say yes, and the session hears of it later. A
program that gives the call up takes its question back.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_runner.asking import (
    Mailbox,
    Outcome,
    Permission,
    Request,
    Result,
    arguments,
    fresh_request_id,
    request_id_of,
    wire,
)
from agent_runner.asking.mailbox import MAX_REQUEST_BYTES
from agent_runner.asking.text import describe_allowed, describe_permission
from agent_runner.cores.base import Fields, PermissionWanted, QuestionWanted, Verdict
from agent_runner.errors import BadArguments, BadFile

# An inotify watch would take longer to set up than most answers that come this soon.
_POLL_SECONDS = 0.02
_SLOW_POLL_SECONDS = 0.2
_SOON_SECONDS = 10.0

Wanted = PermissionWanted | QuestionWanted


@dataclass(frozen=True, slots=True)
class RunningAgent:
    """Who asks: one runner's program on one session."""

    program: str
    session_id: str
    agent: str
    task: str
    lease: str


class PermissionAsker:
    """Asks for one program while it runs."""

    def __init__(self, mailbox: Mailbox, asking: RunningAgent, say: Callable[[str], None]) -> None:
        self._mailbox = mailbox
        self._asking = asking
        self._say = say
        self._ended = threading.Event()
        self._given_up: dict[str, threading.Event] = {}
        self._park_after = mailbox.park_after_seconds()
        self.is_parked = False
        # As long as it is there: the agent may remove it.
        self._cwd = str(Path.cwd())

    def ask(self, wanted: Wanted, send: Callable[[str], bool]) -> None:
        """Ask, and send the program what becomes of it."""
        given_up = self._given_up[wanted.key] = threading.Event()
        args = (wanted, send, given_up)
        threading.Thread(target=self._see_through, args=args, daemon=True).start()

    def give_up(self, key: str) -> None:
        """Take back what the program no longer waits for."""
        if key in self._given_up:
            self._given_up[key].set()

    def close(self) -> None:
        """Stop waiting: the program has ended."""
        self._ended.set()

    def _see_through(
        self, wanted: Wanted, send: Callable[[str], bool], given_up: threading.Event
    ) -> None:
        try:
            request = self._request(wanted)
            self._send(request)
            found = self._wait(wanted, request, given_up)
            if found is None:
                self._leave(request, given_up)
                return
            reply = found if isinstance(found, str) else _reply(wanted, found)
        except Exception as exc:  # noqa: BLE001 - else the program would wait for ever
            self._say(f"nobody can be asked: {exc}")
            failure = f"nobody could be asked: {exc}"
            send(_reply(wanted, Result(fresh_request_id(), Outcome.ERROR, error=failure)))
            return
        is_over = isinstance(found, Result) and found.outcome is not Outcome.PENDING
        if send(reply) and is_over:
            try:
                self._mailbox.passed_on(request.request_id)
            except OSError as exc:
                self._say(f"it cannot be written down that the program has the answer: {exc}")

    def _request(self, wanted: Wanted) -> Request:
        asking, seconds = self._asking, self._mailbox.wait_seconds()
        if isinstance(wanted, PermissionWanted):
            key = f"/permission/{wanted.call_id or wanted.key}"
            cwd = wanted.cwd or self._cwd
            request = Request(
                questions=(),
                request_id=request_id_of(asking.session_id, key, wanted.input),
                permission=Permission(
                    asking.program, wanted.tool, wanted.input, cwd, wanted.editable, wanted.why
                ),
                wait_seconds=seconds,
            )
        else:
            request = Request(wanted.questions, title=wanted.title, wait_seconds=seconds)
        return arguments.asked_by(request, asking.agent, asking.task)

    def _send(self, request: Request) -> None:
        asking = self._asking
        data = wire.encode_request(request, session_id=asking.session_id, lease=asking.lease)
        if len(data) > MAX_REQUEST_BYTES:
            most = f"at most {MAX_REQUEST_BYTES} can be sent to a person"
            raise BadArguments(f"the call has {len(data)} bytes, {most}")
        self._mailbox.send(f"{request.request_id}.json", data)

    def _wait(
        self, wanted: Wanted, request: Request, given_up: threading.Event
    ) -> Result | str | None:
        """Return how it ended, PENDING when the time is over; None if nobody needs to know.

        Where the group parks its agents, return what ends the program once it has waited enough.
        """
        started = time.monotonic()
        while not given_up.is_set() and not self._ended.is_set():
            if (found := self._look(request)) is not None:
                return self._take(found)
            waited = time.monotonic() - started
            if self._may_park(request, waited) and (parked := self._park(wanted, request)):
                return parked
            if waited >= (request.wait_seconds or 0.0):
                self._mailbox.send_about(wire.TYPE_CANCEL, request.request_id)
                return Result(request.request_id, Outcome.PENDING)
            given_up.wait(_POLL_SECONDS if waited < _SOON_SECONDS else _SLOW_POLL_SECONDS)
        return None

    def _may_park(self, request: Request, waited: float) -> bool:
        """Say whether to put the call off. Only what a host has taken is."""
        is_time = self._park_after is not None and waited >= self._park_after
        return is_time and not self._mailbox.is_unread(request.request_id)

    def _park(self, wanted: Wanted, request: Request) -> Result | str:
        """Return what ends the program, or an answer that came meanwhile; empty: it goes on.

        A host that ends the question looks for our word after its response, and we for a response
        after our word: one of the two sees the other.
        """
        end = wanted.park() if isinstance(wanted, PermissionWanted) else ""
        if not end:
            return ""
        self._mailbox.send_about(wire.TYPE_PARK, request.request_id)
        if (found := self._look(request)) is not None:
            return self._take(found)
        self.is_parked = True
        return end

    def _leave(self, request: Request, given_up: threading.Event) -> None:
        if given_up.is_set():
            self._mailbox.send_about(wire.TYPE_WITHDRAW, request.request_id)

    def _look(self, request: Request) -> Result | None:
        try:
            return self._mailbox.read_response(request.request_id)
        except BadFile:
            return None  # looked at again, as long as the call waits

    def _take(self, found: Result) -> Result:
        if self._mailbox.claim(found.request_id, self._asking.lease):
            return found
        return Result(found.request_id, Outcome.ELSEWHERE)


def verdict(result: Result, given: Fields) -> Verdict:
    """Return what the program is told of a call with that input."""
    if not result.is_granted:
        return Verdict(is_allowed=False, words=describe_permission(result))
    words = describe_allowed(result.answered_by, result.note, given, result.input)
    return Verdict(is_allowed=True, words=words, input=result.input)


def _reply(wanted: Wanted, found: Result) -> str:
    if isinstance(wanted, PermissionWanted):
        return wanted.reply(verdict(found, wanted.input))
    return wanted.reply(found)
