"""Calls that wait as tasks of MCP: the extension io.modelcontextprotocol/tasks of 2026-07-28.

    tools/call ─► question and note on disk ─► task ─► tasks/get … tasks/get ─► receipt ─► result

A task's id is the request_id of its question, and a note in the state folder says that it exists:
a client may come back to it after either side has died. A task that is over stays as it ended;
where it ended without the answer, the answer comes as to any other call that waits no longer.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from agent_runner.asking import Asker, Outcome, Request, RequestId, Result, is_request_id, wire
from agent_runner.asking import mailbox as files
from agent_runner.asking._asker import DEFAULT_GRACE_SECONDS
from agent_runner.errors import BadFile

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MILLISECONDS = 1_000

_MAX_BYTES = 64 * 1024
_KEEP_SECONDS = 30 * 86_400.0


class UnknownTask(Exception):
    """There is no task of that id."""


class Status(StrEnum):
    """What a client sees of a task; the extension knows more than we need."""

    WORKING = "working"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class State(StrEnum):
    """What the note says: a task that is not over may have its answer lying in the mailbox."""

    OPEN = "open"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Note:
    """What is on disk of a task."""

    request_id: RequestId
    created_at: str
    updated_at: str
    ends_at: float
    state: State = State.OPEN


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it is now. `result` is set when it is completed."""

    note: Note
    status: Status
    result: Result | None = None


class TaskBook:
    """The notes of one mailbox's tasks."""

    def __init__(self, folder: Path, ipc_dir: Path) -> None:
        self._folder = folder / "tasks"
        self._mailbox = str(ipc_dir)

    def find(self, task_id: str) -> Note:
        """Return the note. Raise UnknownTask if there is none for this mailbox."""
        if not is_request_id(task_id):
            raise UnknownTask(task_id)
        try:
            fields = wire.decode(files.read_small(self._folder / f"{task_id}.json", _MAX_BYTES))
            if fields["mailbox"] != self._mailbox:
                raise UnknownTask(task_id)
            return Note(
                RequestId(task_id),
                created_at=str(fields["created_at"]),
                updated_at=str(fields["updated_at"]),
                ends_at=float(str(fields["ends_at"])),
                state=State(str(fields["state"])),
            )
        except (OSError, BadFile, KeyError, ValueError) as exc:
            raise UnknownTask(task_id) from exc

    def write(self, note: Note) -> None:
        """Put the note on disk, and clear away those of long ago. Raise OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget_old()
        fields = {
            "mailbox": self._mailbox,
            "created_at": note.created_at,
            "updated_at": note.updated_at,
            "ends_at": note.ends_at,
            "state": note.state,
        }
        files.write_whole(self._folder / f"{note.request_id}.json", wire.encode(fields))

    def _forget_old(self) -> None:
        limit = _now() - _KEEP_SECONDS
        for path in self._folder.glob("*.json"):
            with suppress(FileNotFoundError):  # another server of this user does the same
                if path.stat().st_mtime < limit:
                    path.unlink()


class Tasks:
    """Makes tasks of questions, and says how they are."""

    def __init__(self, asker: Asker, book: TaskBook) -> None:
        self._asker = asker
        self._book = book

    async def create(self, request: Request) -> Task | None:
        """Ask, and return the task. None where it cannot be noted: then nothing was asked."""
        note = self._begun(request)
        try:
            self._book.write(note)
        except OSError:
            return None
        result = await self._asker.ask(request, wait=False)
        if result.outcome is not Outcome.PENDING:  # it was asked before, or cannot be asked
            return Task(note, Status.COMPLETED, result)
        self._asker.set_aside(request.request_id)
        return Task(note, Status.WORKING)

    def _begun(self, request: Request) -> Note:
        """Return the note of a new task, or that of the same call sent twice."""
        with suppress(UnknownTask):
            note = self._book.find(request.request_id)
            if note.state is State.OPEN:
                return note
        seconds = request.wait_seconds or self._asker.default_wait_seconds
        grace = DEFAULT_GRACE_SECONDS if request.has_all_defaults else 0.0
        at = wire.timestamp()
        return Note(request.request_id, at, at, ends_at=_now() + seconds + grace)

    async def get(self, task_id: str) -> Task:
        """Return how the task is now, taking the answer if it is there. Raise UnknownTask."""
        note = self._book.find(task_id)
        if note.state is State.CANCELLED:
            return Task(note, Status.CANCELLED)
        if note.state is State.TIMED_OUT:
            return Task(note, Status.COMPLETED, Result(note.request_id, Outcome.PENDING))
        result = await self._asker.look_again(note.request_id)
        if result.outcome is not Outcome.PENDING:
            return Task(note, Status.COMPLETED, result)
        if _now() < note.ends_at:
            return Task(note, Status.WORKING)
        return Task(self._end(note, State.TIMED_OUT), Status.COMPLETED, result)

    async def cancel(self, task_id: str) -> None:
        """End the task; its question stays open, as with any call that is given up.

        Raise UnknownTask.
        """
        task = await self.get(task_id)
        if task.status is Status.WORKING:
            self._end(task.note, State.CANCELLED)
            await self._asker.stop_waiting(task.note.request_id)

    def update(self, task_id: str) -> None:
        """Take what we never ask for. Raise UnknownTask."""
        self._book.find(task_id)

    def _end(self, note: Note, state: State) -> Note:
        ended = replace(note, state=state, updated_at=wire.timestamp())
        self._book.write(ended)
        # From now on the answer is for the next result of any tool.
        self._asker.take_up(note.request_id)
        return ended


def _now() -> float:
    return datetime.now(UTC).timestamp()
