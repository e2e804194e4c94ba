"""The files of one mailbox, as the agent's side may touch them.

A name appears in `tasks/` only when its content is whole and on disk. A receipt is created
exclusively: exactly one caller of `claim` in the world is told True.
"""

import hashlib
import os
import stat
import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Self

from agent_runner.asking import wire
from agent_runner.asking._model import Outcome, RequestId, Result, is_request_id
from agent_runner.errors import BadFile, MailboxMissing

DEFAULT_WAIT_SECONDS = 1800.0
# The host clears old names that begin so.
TEMPORARY = ".tmp-"
WORDS = ".words-"
MAX_REQUEST_BYTES = 256 * 1024

_MAX_RESPONSE_BYTES = 16 * 1024 * 1024
_MAX_RESPONSES = 20_000
_MAX_TASKS = 4 * _MAX_RESPONSES
_RECEIPT = ".received"
_MAX_WHY = 500
# A call that waits takes its answer sooner.
_TAKEN_SECONDS = 2.0
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Mailbox:
    """The folders `tasks`, `responses` and `input` under one path."""

    def __init__(self, ipc_dir: Path) -> None:
        self.tasks = ipc_dir / "tasks"
        self.responses = ipc_dir / "responses"
        self.input = ipc_dir / "input"

    @classmethod
    def open(cls, ipc_dir: Path) -> Self:
        """Return the mailbox. Raise MailboxMissing if a folder that asking needs is not there."""
        mailbox = cls(ipc_dir)
        for folder in (mailbox.tasks, mailbox.responses):
            if not folder.is_dir():
                raise MailboxMissing(f"there is no folder {folder}")
        return mailbox

    def send(self, name: str, data: bytes) -> None:
        """Put a request under its name, whole and on disk. Raise OSError if that fails."""
        write_whole(self.tasks / name, data)

    def send_about(self, type_: str, request_id: RequestId, data: bytes | None = None) -> None:
        """Say something of a question that was asked. Raise OSError if that fails."""
        name = f"{request_id}.{type_.removeprefix('ask_user:')}.json"
        self.send(name, data or wire.encode_about(type_, request_id))

    def is_unread(self, request_id: RequestId) -> bool:
        """Say whether the question still lies where we put it: no host has taken it."""
        return (self.tasks / f"{request_id}.json").exists()

    def read_response(self, request_id: RequestId) -> Result | None:
        """Return the response, None if there is none yet. Raise BadFile if it cannot be used."""
        try:
            data = read_small(self.responses / f"{request_id}.json", _MAX_RESPONSE_BYTES)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise BadFile(exc.strerror or str(exc)) from exc
        result = wire.decode_response(data, request_id)
        return self._with_implied(result) if result.outcome is Outcome.DECLINED else result

    def read_dismissal(self, request_id: RequestId) -> Result | None:
        """Return that a person has closed what showed the question, which stays open.

        None if nobody has, or if the question was declined by that: its response says so.
        """
        result, stays_open = self._dismissal(request_id)
        return result if stays_open else None

    def _dismissal(self, request_id: RequestId) -> tuple[Result | None, bool]:
        try:
            path = self.responses / dismissal_name(request_id)
            return wire.decode_dismissal(read_small(path, MAX_REQUEST_BYTES), request_id)
        except (OSError, BadFile):
            return None, False

    def _with_implied(self, result: Result) -> Result:
        """Return a declined result with the option that closing the popup stood for, if any."""
        closed, _ = self._dismissal(result.request_id)
        return result if closed is None else replace(result, implied_choice=closed.implied_choice)

    def why_unseen(self, request_id: RequestId) -> str:
        """Return why nobody can have seen the question yet; empty if somebody may have."""
        try:
            data = read_small(self.responses / f"{request_id}.unseen.json", MAX_REQUEST_BYTES)
            return str(wire.decode(data).get("why") or "")[:_MAX_WHY]
        except (OSError, BadFile):
            return ""

    def untaken(
        self, session_id: str, known: set[str], older_than: float = _TAKEN_SECONDS
    ) -> list[RequestId]:
        """Return the session's questions whose outcome lies there and that nobody has taken.

        What is younger is left to the call that may be waiting for it. Names of which it is certain
        that they are none of the session's are added to `known`, and not looked at again. What was
        taken is: the host takes the receipt of a process back that died with the answer.
        """
        found, young, taken = [], time.time() - older_than, self._receipts()
        with os.scandir(self.responses) as entries:
            for entry in islice(entries, _MAX_RESPONSES):
                request_id = RequestId(entry.name.removesuffix(".json"))
                if entry.name in known or request_id in taken or not is_request_id(request_id):
                    continue
                try:
                    if entry.stat(follow_symlinks=False).st_mtime > young:
                        continue
                    is_ours = self._is_of(session_id, entry.name)
                except OSError:
                    continue  # of descriptors there may be enough the next time
                if not is_ours:
                    known.add(entry.name)
                elif not (self.tasks / f"{request_id}{_RECEIPT}").exists():
                    found.append(request_id)
        return found

    def _receipts(self) -> set[str]:
        """Return the ids of what was taken. Of very many some may be missing."""
        with os.scandir(self.tasks) as entries:
            names = [entry.name for entry in islice(entries, _MAX_TASKS)]
        return {name.removesuffix(_RECEIPT) for name in names if name.endswith(_RECEIPT)}

    def _is_of(self, session_id: str, name: str) -> bool:
        """Say whether a response is to that session. Raise OSError if it cannot be read now."""
        try:
            data = read_small(self.responses / name, _MAX_RESPONSE_BYTES)
            return wire.decode(data).get("session_id") == session_id
        except BadFile:
            return False

    def claim(self, request_id: RequestId, lease: str = "") -> bool:
        """Create the receipt. False: it is there already, the answer belongs to someone else.

        With a lease it says that `passed_on` follows: if the lease's owner dies before, the answer
        is given to somebody else.
        """
        confirms = {"lease": lease} if lease else {}
        content = wire.encode({"by": "waiter", "at": wire.timestamp(), **confirms})
        return create_once(self.tasks / f"{request_id}{_RECEIPT}", content)

    def passed_on(self, request_id: RequestId) -> None:
        """Say that whoever asked has the answer. Raise OSError."""
        with suppress(FileExistsError):
            os.close(os.open(self.tasks / f"{request_id}.passed", _CREATE, 0o600))

    def wait_seconds(self) -> float:
        """Return how long a call blocks when it does not say."""
        return self._told_seconds("wait_seconds") or DEFAULT_WAIT_SECONDS

    def park_after_seconds(self) -> float | None:
        """Return how long a call waits until its agent is parked; None where none is parked."""
        return self._told_seconds("park_after_seconds")

    def asks_with(self) -> str:
        """Return the tool of the agent program's own that is to ask people; empty for ours."""
        return str(self._told().get("ask_with") or "")

    def takes_desk_answers(self) -> bool:
        """Say whether a question may be answered in the terminal of the agent's own client."""
        return self._told().get("desk_answers") is True

    def phux_prefix(self) -> str:
        """Return what ids begin with under which phux is told of questions; empty: it is not."""
        return str(self._told().get("phux_prefix") or "")

    def _told_seconds(self, name: str) -> float | None:
        seconds = self._told().get(name)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            return None
        return float(seconds)

    def _told(self) -> dict[str, object]:
        """Return what the host tells every agent of the group."""
        try:
            return wire.decode(read_small(self.input / "host.json", MAX_REQUEST_BYTES))
        except (OSError, BadFile):
            return {}


def dismissal_name(request_id: RequestId) -> str:
    """Return the name of the file that says that a person has closed what showed the question."""
    return f"{request_id}.dismissed.json"


def write_whole(path: Path, data: bytes) -> None:
    """Write under a dot name, then rename: a reader never sees half a file."""
    temporary = path.with_name(f"{TEMPORARY}{os.urandom(8).hex()}")
    try:
        _write_new(temporary, data)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def words_file(called: Path, call_id: str) -> Path:
    """Return where the words are kept that a model reads when that call of its program has ended.

    `called` is the file by which whoever started the program learns of the first call.
    """
    key = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:32]
    return called.with_name(f"{called.name}{WORDS}{key}")


def create_once(path: Path, data: bytes) -> bool:
    """Create the file exclusively, at once with its content. False if it is there already."""
    temporary = path.with_name(f"{TEMPORARY}{os.urandom(8).hex()}")
    try:
        _write_new(temporary, data)
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a full disk, or one without links
        return _create_in_place(path, data)
    finally:
        with suppress(OSError):
            temporary.unlink()
    with suppress(OSError):
        sync_folder(path.parent)
    return True


def _create_in_place(path: Path, data: bytes) -> bool:
    """Create the file exclusively; its content follows, as far as there is room."""
    try:
        handle = os.open(path, _CREATE, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(handle, data)
        os.fsync(handle)
        sync_folder(path.parent)
    except OSError:
        # The name is the claim, and it is ours: a full disk must not make us deny it.
        return True
    finally:
        os.close(handle)
    return True


def read_small(path: Path, limit: int) -> bytes:
    """Return the content of a regular file. Raise BadFile for anything else or beyond the limit."""
    handle = os.open(path, _READ)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadFile("not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise BadFile(f"larger than {limit} bytes")
    return data


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_new(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, _CREATE, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
