"""What a run of an agent begins with, and the receipt that an answer has really been taken in.

`acknowledge` creates `tasks/<id>.resumed` exclusively: it says once, for good, that the answer
has arrived.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from agent_runner.asking import Answer, Outcome, Question, RequestId, is_request_id, wire
from agent_runner.asking import mailbox as files
from agent_runner.errors import BadFile

_MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Initial:
    """The content of `input/<id>/initial.json`.

    `parked`: the program has put the call off that asked, and can still make it.
    """

    request_id: RequestId
    prompt: str
    session_id: str = ""
    questions: tuple[Question, ...] = ()
    answers: tuple[Answer, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    answered_by: str | None = None
    answered_at: str | None = None
    parked: bool = False


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """An `initial.json` without a question: what a session is begun with."""

    prompt: str
    session_id: str = ""


def load_start(path: Path) -> Initial | FirstPrompt:
    """Return what the run begins with. Raise BadFile if the file does not say it."""
    fields = _load(path)
    if "request_id" in fields:
        return _initial(path, fields)
    prompt = wire.optional_text(fields, "prompt") or ""
    if not prompt.strip():
        raise BadFile(f"{path}: neither a request_id nor a prompt")
    return FirstPrompt(prompt, wire.optional_text(fields, "session_id") or "")


def load_initial(path: Path) -> Initial:
    """Return what the session is resumed with. Raise BadFile if the file does not say it."""
    return _initial(path, _load(path))


def _load(path: Path) -> dict[str, object]:
    try:
        return wire.decode(files.read_small(path, _MAX_BYTES))
    except OSError as exc:
        raise BadFile(f"{path}: {exc.strerror}") from exc


def _initial(path: Path, fields: dict[str, object]) -> Initial:
    request_id = wire.optional_text(fields, "request_id") or ""
    if not is_request_id(request_id):
        raise BadFile(f"{path}: no usable request_id")
    return Initial(
        request_id=RequestId(request_id),
        prompt=wire.optional_text(fields, "prompt") or "",
        session_id=wire.optional_text(fields, "session_id") or "",
        questions=wire.decode_questions(fields.get("questions")),
        answers=wire.decode_answers(fields.get("answers")),
        outcome=wire.decode_outcome(fields.get("outcome", Outcome.ANSWERED)),
        answered_by=wire.optional_text(fields, "answered_by"),
        answered_at=wire.optional_text(fields, "answered_at"),
        parked=fields.get("parked") is True,
    )


def find_ipc_dir(initial_path: Path) -> Path:
    """Return the mailbox: PYNCHY_IPC_DIR, or the one that holds `input/<id>/initial.json`."""
    given = os.environ.get("PYNCHY_IPC_DIR")
    return Path(given) if given else initial_path.absolute().parents[2]


def acknowledge(initial: Initial, ipc_dir: Path) -> bool:
    """Say that the session has taken the answer in. False if that was said before.

    Raise OSError if it cannot be said.
    """
    path = ipc_dir / "tasks" / f"{initial.request_id}.resumed"
    return files.create_once(path, wire.encode({"at": wire.timestamp()}))
