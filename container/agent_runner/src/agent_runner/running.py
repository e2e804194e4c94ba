"""Run one agent program from its start to its end, and say what happens to it.

The session's lease is held from before the program starts until it has ended. The receipt for an
answer is written when the model has answered the prompt that carries it, never before; a program
that ends without that has failed, whatever its exit code says.
"""

import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import assert_never

from agent_runner.asking import Mailbox, fresh_request_id, wire
from agent_runner.cores import base
from agent_runner.cores.base import AgentEvent, Command, Core, Start
from agent_runner.errors import Exit
from agent_runner.initial import FirstPrompt, Initial, acknowledge
from agent_runner.permissions import PermissionAsker, RunningAgent
from agent_runner.program import Line, Lookout, Program, kept_alive
from agent_runner.session_ids import SessionIds

TYPE_EVENT = "session:event"
# A model that tries again and again what a rule denies would never end by itself.
MAX_DENIED = 100

_MAX_DETAIL_CHARACTERS = 500

_MAX_LOG_CHARACTERS = 10_000
_HOOK_MARGIN_SECONDS = 120.0


class Event(StrEnum):
    """What can happen to a session."""

    STARTED = "started"
    WAITING = "waiting"
    PARKED = "parked"
    FINISHED = "finished"
    FAILED = "failed"
    DENIED = "denied"


class HostReporter:
    """Tells the host of one session."""

    def __init__(self, mailbox: Mailbox, *, session_id: str, agent: str) -> None:
        self._mailbox = mailbox
        self._session_id = session_id
        self._agent = agent

    def tell(self, event: Event, detail: str = "") -> None:
        """Write the event. Raise OSError if that fails."""
        request_id = fresh_request_id()
        fields = {
            "type": TYPE_EVENT,
            "request_id": request_id,
            "session_id": self._session_id,
            "agent": self._agent,
            "event": event,
            **({"detail": detail[:_MAX_DETAIL_CHARACTERS]} if detail else {}),
        }
        self._mailbox.send(f"{request_id}.json", wire.encode(fields))


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run, and for whom."""

    agent: str
    core: Core
    session_id: str
    resumes: bool
    ipc_dir: Path
    initial: Initial | FirstPrompt
    server: base.McpServer
    book: SessionIds
    extra: tuple[str, ...] = ()
    hook: base.HookCommand | None = None
    goes_on: bool = False

    @property
    def program(self) -> str:
        """What the program is called, to people."""
        return self.core.program or base.name_of(self.extra)

    @property
    def parked_on(self) -> str:
        """The question that the session was parked on and is resumed for, if so."""
        if isinstance(self.initial, Initial) and self.initial.parked:
            return self.initial.request_id
        return ""

    def start(self, environ: Mapping[str, str]) -> Start:
        """Return what the core is asked to start."""
        known = self.book.find(self.session_id)
        return Start(
            session_id=self.session_id,
            mailbox=self.ipc_dir,
            program_id=known,
            resumes=self.resumes,
            server=self.server,
            environ=environ,
            extra=self.extra,
            hook=self.hook,
            goes_on=self.goes_on,
        )


def run(job: Job, environ: Mapping[str, str]) -> Exit:
    """Run the program to its end. Raise MailboxMissing, ProgramMissing or SessionUnknown."""
    mailbox = Mailbox.open(job.ipc_dir)
    teller = HostReporter(mailbox, session_id=job.session_id, agent=job.agent)
    with kept_alive(mailbox.tasks, job.session_id, say) as lease:
        job = replace(job, hook=_hook(mailbox, lease))
        for way in [_going_on(job), job] if job.parked_on else [job]:
            permissions = PermissionAsker(mailbox, _asking(job, lease, environ), say)
            lookout = Lookout(mailbox.tasks, job.session_id, lease)
            run = _Run(way, teller, lookout, permissions)
            end = run.from_start_to_end(environ)
            if not run.needs_prompt:
                break
        return end


def _asking(job: Job, lease: str, environ: Mapping[str, str]) -> RunningAgent:
    agent, task = environ.get("PYNCHY_AGENT", job.agent), environ.get("PYNCHY_TASK", "")
    return RunningAgent(job.program, job.session_id, agent, task, lease)


def _going_on(job: Job) -> Job:
    """Return the job for a program that makes the call which it has put off: no prompt."""
    granted = {"PYNCHY_RESUMED": job.parked_on}
    hook = job.hook and replace(job.hook, env={**job.hook.env, **granted})
    return replace(job, server=job.server.with_env(**granted), hook=hook, goes_on=True)


def _hook(mailbox: Mailbox, lease: str) -> base.HookCommand | None:
    """Return what is called before a person is asked; None where the tool itself waits."""
    park_after, tool = mailbox.park_after_seconds(), mailbox.asks_with()
    if park_after is None and not tool:
        return None
    return base.HookCommand(
        command=(sys.executable, "-P", "-m", "agent_runner.hooks.claude"),
        tool=tool or base.ASK_TOOL,
        limit_seconds=mailbox.wait_seconds() + (park_after or 0.0) + _HOOK_MARGIN_SECONDS,
        env={"PYNCHY_LEASE": lease},
    )


class _Run:
    """One process of the program and what is known of it."""

    def __init__(
        self, job: Job, teller: HostReporter, lookout: Lookout, permissions: PermissionAsker
    ) -> None:
        called = str(lookout.called)
        self._job = replace(job, server=job.server.with_env(PYNCHY_CALLED=called))
        self._teller = teller
        self._lookout = lookout
        self._permissions = permissions
        self._program: Program | None = None
        self._command = Command(())
        self._taken_in = False
        self._receipt_lack = ""
        self._taking_in = threading.Lock()
        self._program_id = ""
        self._parked = False
        self._not_parked = False
        self._denied: dict[str, str] = {}
        self._trouble: tuple[Exit, str] | None = None
        self._stop: Callable[[], None] = lambda: None

    @property
    def needs_prompt(self) -> bool:
        """Whether the program was to go on where it was parked, and did not."""
        # Some versions say that nothing was put off, and some end in order without a word.
        knew_nothing = self._not_parked or self._trouble is None
        return self._job.goes_on and knew_nothing and not self._taken_in

    def from_start_to_end(self, environ: Mapping[str, str]) -> Exit:
        """Run the program, and tell how it ended."""
        try:
            end, detail = self._to_its_end(
                self._job.core.command(self._job.start(environ)), environ
            )
        except Exception as exc:
            self.tell(Event.FAILED, str(exc))
            raise
        if self.needs_prompt:
            say("the call that was put off is gone; going on with a prompt")
        elif end is Exit.FINISHED:
            self.tell(Event.PARKED if self._parked else Event.FINISHED, detail)
        else:
            self.tell(Event.FAILED, detail)
        return end

    def _to_its_end(self, command: Command, environ: Mapping[str, str]) -> tuple[Exit, str]:
        """Start it, feed it, read it; return how it ended and why."""
        # Before there is a program: a signal in between must not leave it behind.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stopped)
        self._command = command
        program = self._program = Program(command, environ)
        try:
            self._stop = program.ask_to_end
            if self._trouble is not None:
                self._stop()
            self.tell(Event.STARTED)
            goes_on = self._job.goes_on
            # The call that was put off is made again before the model has read anything.
            with self._lookout.looking(_pass if goes_on else self._take_in):
                for line in program.lines("" if goes_on else self._job.initial.prompt):
                    self._read(line)
        finally:
            self._permissions.close()
            program.end()
        return self._end(program.exit_code())

    def tell(self, event: Event, detail: str = "") -> None:
        """Tell the host, if it can be told, and whoever reads the log."""
        say(f"{event}: {detail}" if detail else event)
        try:
            self._teller.tell(event, detail)
        except OSError as exc:
            say(f"the host cannot be told: {exc}")

    def _end(self, code: int) -> tuple[Exit, str]:
        if self._trouble is not None:
            return self._trouble
        if self._permissions.is_parked:
            # However it has ended, that was our doing.
            self._parked = True
            return Exit.FINISHED, ""
        stopped = self._program is not None and self._program.is_told_to_end
        if code and not stopped:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Exit.FAILED, f"{self._job.program} ended with {how}"
        if self._receipt_lack:
            return Exit.FAILED, self._receipt_lack
        if not self._taken_in:
            return Exit.FAILED, f"{self._job.program} ended before its model said anything"
        return Exit.FINISHED, self._what_was_denied()

    def _what_was_denied(self) -> str:
        if not self._denied:
            return ""
        calls = "1 call was" if len(self._denied) == 1 else f"{len(self._denied)} calls were"
        return f"{calls} not allowed: {'; '.join(self._denied.values())}"

    def _read(self, line: Line) -> None:
        if line.is_error:
            read = self._job.core.read_error
        else:
            read = self._command.talk.read if self._command.talk else self._job.core.read
        for sign in read(line.text):
            # A call that is put off ends the program, and is not denied.
            is_told = self._permissions.is_parked and isinstance(sign, base.Denied | base.Failed)
            if not is_told:
                self._heed(sign)

    def _heed(self, sign: AgentEvent) -> None:
        match sign:
            case base.Named(program_id):
                self._remember(program_id)
            case base.PromptAccepted():
                self._take_in()
            case base.Said(text):
                say(text)
            case base.Asking():
                self.tell(Event.WAITING)
            case base.Parked() | base.NotParked():
                self._parked = self._parked or isinstance(sign, base.Parked)
                self._not_parked = self._not_parked or isinstance(sign, base.NotParked)
            case base.Denied(call_id, detail):
                self._note_denied(call_id, detail)
            case (
                base.Send()
                | base.PermissionWanted()
                | base.QuestionWanted()
                | base.RequestDropped()
                | base.TurnEnded()
            ):
                self._talk(sign)
            case base.NoServer(detail) | base.NoSession(detail):
                is_server = isinstance(sign, base.NoServer)
                self._lack(Exit.NO_SERVER if is_server else Exit.NO_SESSION, detail)
            case base.Failed(detail):
                self._trouble = self._trouble or (Exit.FAILED, detail)
            case _ as unreachable:
                assert_never(unreachable)

    def _talk(
        self,
        sign: base.Send
        | base.PermissionWanted
        | base.QuestionWanted
        | base.RequestDropped
        | base.TurnEnded,
    ) -> None:
        """Go on with a program that reads what it is told while it works."""
        if self._program is None:
            return
        match sign:
            case base.Send(text):
                self._program.send(text)
            case base.PermissionWanted() | base.QuestionWanted():
                wants = sign.tool if isinstance(sign, base.PermissionWanted) else "an answer"
                say(f"asks a person for: {wants}")
                self.tell(Event.WAITING)
                self._permissions.ask(sign, self._program.send)
            case base.RequestDropped(key):
                self._permissions.give_up(key)
            case base.TurnEnded(stop_after_seconds):
                self._program.end_input()
                if stop_after_seconds is not None:
                    self._program.end_within(stop_after_seconds)

    def _note_denied(self, call_id: str, detail: str) -> None:
        """Tell of a call that was not allowed, once; what it was to do may be known later."""
        if call_id not in self._denied:
            self.tell(Event.DENIED, detail)
        self._denied[call_id] = detail
        if len(self._denied) >= MAX_DENIED:
            tried = f"{len(self._denied)} calls were not allowed, and it goes on: {detail}"
            self._give_up(Exit.FAILED, f"{self._job.program} was stopped: {tried}")

    def _remember(self, program_id: str) -> None:
        if program_id == self._program_id:
            return
        self._program_id = program_id
        try:
            self._job.book.remember(self._job.session_id, program_id)
        except OSError as exc:
            say(f"the session cannot be resumed later, its id cannot be written down: {exc}")

    def _take_in(self) -> None:
        with self._taking_in:
            if not self._taken_in and self._trouble is None:
                self._take_in_first()

    def _take_in_first(self) -> None:
        if not self._lookout.has_seen_server():
            program = self._job.program
            self._give_up(Exit.NO_SERVER, f"{program} has not started the MCP server for ask_user")
            return
        self._receipt_lack = ""
        if isinstance(self._job.initial, Initial):
            try:
                acknowledge(self._job.initial, self._job.ipc_dir)
            except OSError as exc:
                self._receipt_lack = f"the receipt cannot be written: {exc}"
                say(self._receipt_lack)
                return
        self._taken_in = True

    def _lack(self, end: Exit, detail: str) -> None:
        """Heed what a program lacks that cannot begin; later, such words are anybody's."""
        if self._taken_in:
            say(detail)
        else:
            self._give_up(end, detail)

    def _give_up(self, end: Exit, detail: str) -> None:
        """Stop the program: going on would be of no use to anybody."""
        self._trouble = self._trouble or (end, detail)
        self._stop()

    def _stopped(self, _number: int, _frame: FrameType | None) -> None:
        self._give_up(Exit.STOPPED, "stopped by a signal")


def _pass() -> None:
    """Heed no call."""


def say(text: str) -> None:
    """Write a line to the log, which is stdout."""
    with suppress(OSError):
        print(f"agent_runner: {text[:_MAX_LOG_CHARACTERS]}", flush=True)  # noqa: T201 - the log
