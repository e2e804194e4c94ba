"""Claude Code's hooks: asking before a tool is called, and what a reopened session has missed.

PreToolUse, in a group: ask before the tool is called, wait a little, then park.

    fired ─► ask ─► wait ─┬─ answered ──────────────► allow: the tool returns the answer at once
                          ├─ not alone in its turn ─► allow: the tool waits
                          └─ too long ─► park ──────► defer: Claude Code ends, and is resumed later

Only what a host has taken is put off, and only if there is no response after we have said so. A
host that ends the question looks for our word after its response: one of the two sees the other.

Parking is a saving and nothing else: whatever goes wrong, `ask_user` is allowed and waits itself.
The built-in AskUserQuestion cannot wait: for that one the hook does, and hands the answer over.

SessionStart and Stop, in a session that a person has opened again by hand:

    SessionStart ─► answers that nobody has taken ─► told as context ─► Stop ─► receipts

An answer counts as received when the model has replied after it was told, not when it was printed:
a session that is closed before is told again.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from agent_runner.asking import Mailbox, Outcome, Request, Result, arguments, request_id_of, wire
from agent_runner.asking.mailbox import read_small, words_file
from agent_runner.asking.notes import Notes
from agent_runner.asking.text import describe
from agent_runner.errors import AgentRunnerError, BadArguments, BadFile
from agent_runner.session_ids import state_folder

_TAIL_BYTES = 8 * 1024 * 1024

BUILT_IN = "AskUserQuestion"
# Longer than a turn takes to be written down once its last call has begun.
UNSURE_SECONDS = 60.0

_ASK_END, _APPROVAL_END = "__ask_user", "__request_approval"
# An inotify watch would take longer to set up than most answers that come this soon.
_POLL_SECONDS = 0.02
_TURN_POLL_SECONDS = 0.25

_ENDS_OF_CALLS = ("PostToolUse", "PostToolUseFailure")
_INTRO = "While this session was closed, a person answered what you had asked in it:"
_MAX_WORDS_BYTES = 1024 * 1024

Decision = Mapping[str, Any]
ALLOW: Decision = {"permissionDecision": "allow"}


class Turn(Enum):
    """How a call stands in its turn. UNSEEN: the turn is not written down, or not complete."""

    UNSEEN = auto()
    ALONE = auto()
    TOGETHER = auto()


def look(path: Path, call_id: str) -> Turn:
    """Return how the call stands, as far as the transcript tells."""
    messages = list(_messages(_tail(path)))
    own = next((m for m in messages if call_id in _calls(m)), None)
    if own is None:
        return Turn.UNSEEN
    calls = {call for m in messages if m.get("id") == own.get("id") for call in _calls(m)}
    if len(calls) > 1:
        return Turn.TOGETHER
    return Turn.ALONE if own.get("id") and own.get("stop_reason") else Turn.UNSEEN


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read(_TAIL_BYTES)
    except OSError:
        return b""


def _messages(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield what the model said, a piece for each line."""
    for line in data.splitlines():
        if b'"tool_use"' not in line:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut at the beginning of the tail, or not written to its end
        message = entry.get("message") if isinstance(entry, dict) else None
        if isinstance(message, dict) and entry.get("type") == "assistant":
            yield message


def _calls(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [
        str(block.get("id"))
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "tool_use"
    ]


@dataclass(frozen=True, slots=True)
class Fired:
    """A call that Claude Code is about to make. `may_be_parked`: not that of a subagent."""

    tool: str
    call_id: str
    input: Mapping[str, object]
    session_id: str
    transcript: Path
    may_be_parked: bool

    @property
    def is_built_in(self) -> bool:
        """Whether it is Claude Code's own tool, which cannot reach anybody by itself."""
        return self.tool == BUILT_IN


def main(ipc_dir: Path, environ: Mapping[str, str], given: bytes | None = None) -> int:
    """Decide on the call that is told of, on stdin or as given. Return the exit code."""
    decision: Decision | None = None
    try:
        event = _event(sys.stdin.buffer.read() if given is None else given)
        if event.get("hook_event_name") in _ENDS_OF_CALLS:
            _tell_words(event, environ)
        elif fired := _read(event):
            decision = ToolHook(Mailbox.open(ipc_dir), environ).decide(fired)
    except (AgentRunnerError, OSError) as exc:
        print(f"pynchy: {exc}", file=sys.stderr)  # noqa: T201 - Claude Code keeps it in its log
    if decision is not None:
        print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}))  # noqa: T201 - the protocol
    return 0


class ToolHook:
    """Decides on calls of one group's agent."""

    def __init__(self, mailbox: Mailbox, environ: Mapping[str, str]) -> None:
        self._mailbox = mailbox
        self._session_id = environ.get("PYNCHY_SESSION_ID", "")
        self._agent = environ.get("PYNCHY_AGENT", "")
        self._task = environ.get("PYNCHY_TASK", "")
        self._lease = environ.get("PYNCHY_LEASE", "")
        self._granted = environ.get("PYNCHY_RESUMED", "")
        self._park_after = mailbox.park_after_seconds()

    def decide(self, fired: Fired) -> Decision | None:
        """Return what Claude Code is to do; None if that is no matter of ours."""
        try:
            request = self._request(fired)
        except BadArguments as exc:
            return _deny(f"Correct this and call again: {exc}") if fired.is_built_in else ALLOW
        if request is None:
            return None
        if request.request_id != self._granted:
            self._ask(request, self._session(fired))
        found = self._wait(fired, request)
        if isinstance(found, Result):
            return self._hand_over(fired, found) if fired.is_built_in else ALLOW
        return found

    def _request(self, fired: Fired) -> Request | None:
        """Return what to ask; None if this call is not to be put off."""
        request, wait = _parse(fired)
        # Without a session our server cannot tell that its call is this one.
        is_ours = self._park_after and wait and request.wait_seconds is None and self._session_id
        if not is_ours and not fired.is_built_in:
            return None
        # The tool's own call has the same id: of the two only one asks.
        session = self._session(fired)
        request_id = request_id_of(session, f"/{fired.call_id}", fired.input)
        seconds = self._mailbox.wait_seconds()
        request = replace(request, request_id=request_id, wait_seconds=seconds)
        return arguments.asked_by(request, self._agent, self._task)

    def _session(self, fired: Fired) -> str:
        return self._session_id or fired.session_id

    def _ask(self, request: Request, session_id: str) -> None:
        data = wire.encode_request(request, session_id=session_id, lease=self._lease)
        self._mailbox.send(f"{request.request_id}.json", data)

    def _wait(self, fired: Fired, request: Request) -> Result | Decision:
        """Return the answer, or what is to be done without one."""
        started = time.monotonic()
        turn, looked = Turn.UNSEEN, started
        while True:
            if (found := self._look(request)) is not None:
                return found
            waited = time.monotonic() - started
            if time.monotonic() - looked >= _TURN_POLL_SECONDS:
                turn, looked = self._turn(fired), time.monotonic()
            if decision := self._without_answer(fired, request, turn, waited):
                return decision
            time.sleep(_POLL_SECONDS)

    def _park(self, request: Request) -> Result | Decision:
        """Have the call put off, unless a response has come meanwhile."""
        self._mailbox.send_about(wire.TYPE_PARK, request.request_id)
        return self._look(request) or {"permissionDecision": "defer"}

    def _without_answer(
        self, fired: Fired, request: Request, turn: Turn, waited: float
    ) -> Result | Decision | None:
        """Return what is to be done if nobody has answered by now; None to wait on."""
        park_after = self._park_after or float("inf")
        is_taken = not self._mailbox.is_unread(request.request_id)
        if turn is Turn.ALONE and waited >= park_after and is_taken:
            return self._park(request)
        if fired.is_built_in:
            is_over = waited >= (request.wait_seconds or 0.0)
            pending = Result(request.request_id, Outcome.PENDING)
            return _deny(describe(pending)) if is_over else None
        is_unsure = waited >= park_after + UNSURE_SECONDS
        return ALLOW if turn is Turn.TOGETHER or is_unsure or not fired.may_be_parked else None

    def _turn(self, fired: Fired) -> Turn:
        if not fired.may_be_parked:
            return Turn.UNSEEN
        return look(fired.transcript, fired.call_id)

    def _look(self, request: Request) -> Result | None:
        try:
            return self._mailbox.read_response(request.request_id)
        except BadFile:
            return None  # looked at again, as long as the call waits

    def _hand_over(self, fired: Fired, found: Result) -> Decision:
        """Give the built-in tool its answer, receipt first."""
        if found.request_id != self._granted and not self._mailbox.claim(found.request_id):
            found = Result(found.request_id, Outcome.ELSEWHERE)
        if found.outcome is not Outcome.ANSWERED:
            return _deny(describe(found))
        answers = {
            answer.question: _in_words(answer.selected, answer.text) for answer in found.answers
        }
        return {**ALLOW, "updatedInput": {**fired.input, "answers": answers}}


def _parse(fired: Fired) -> tuple[Request, bool]:
    """Return the request and whether it waits. Raise BadArguments where our own tool would too."""
    if fired.tool.endswith(_APPROVAL_END):
        return arguments.parse_approval(fired.input)
    if not fired.is_built_in:
        arguments.check_ask_names(fired.input)
    return arguments.parse_ask(fired.input)


def _in_words(selected: tuple[str, ...], text: str | None) -> str:
    return ", ".join([*selected, *([text] if text else [])])


def _deny(words: str) -> Decision:
    return {"permissionDecision": "deny", "permissionDecisionReason": words}


def _tell_words(event: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Let the model read what a person said beside their yes to the call that has ended."""
    path = words_file(Path(environ.get("PYNCHY_CALLED", "")), str(event.get("tool_use_id", "")))
    try:
        words = read_small(path, _MAX_WORDS_BYTES).decode()
    except (FileNotFoundError, BadFile):
        return
    path.unlink(missing_ok=True)
    said = {"hookEventName": event["hook_event_name"], "additionalContext": words}
    print(json.dumps({"hookSpecificOutput": said}))  # noqa: T201 - the protocol


def _event(data: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise BadFile(f"stdin has no hook event of Claude Code: {exc}") from exc
    if not isinstance(event, dict):
        raise BadFile("stdin has no hook event of Claude Code")
    return event


def _read(event: Mapping[str, Any]) -> Fired | None:
    """Return the call that Claude Code tells of; None if it is none of those that ask a person."""
    tool, given = str(event.get("tool_name", "")), event.get("tool_input")
    is_ours = tool.startswith("mcp__") and tool.endswith((_ASK_END, _APPROVAL_END))
    is_asking = tool == BUILT_IN or is_ours
    if not is_asking or not isinstance(given, dict) or not event.get("tool_use_id"):
        return None
    return Fired(
        tool=tool,
        call_id=str(event["tool_use_id"]),
        input=given,
        session_id=str(event.get("session_id", "")),
        transcript=Path(str(event.get("transcript_path", os.devnull))),
        may_be_parked=not event.get("agent_id"),
    )


def tell_missed(mailboxes: Iterable[Path], environ: Mapping[str, str], given: bytes) -> int:
    """Heed the event that is given, for the session that it names. Return the exit code."""
    try:
        event = json.loads(given)
        session_id = str(event["session_id"])
        notes = Notes(state_folder(environ), session_id)
        match event["hook_event_name"]:
            case "SessionStart":
                _tell(notes, session_id, mailboxes)
            case "Stop":
                notes.confirm()
    except (ValueError, LookupError, TypeError, RecursionError, RuntimeError) as exc:
        print(f"pynchy: no hook event of Claude Code: {exc}", file=sys.stderr)  # noqa: T201 - its log
    except (AgentRunnerError, OSError) as exc:
        print(f"pynchy: {exc}", file=sys.stderr)  # noqa: T201 - Claude Code keeps it in its log
    return 0


def _tell(notes: Notes, session_id: str, mailboxes: Iterable[Path]) -> None:
    found = [(path, result) for path in mailboxes for result in _missed(path, session_id)]
    # Also if that is nothing: what an earlier start has told does not count for this one.
    notes.write((path, result.request_id) for path, result in found)
    if not found:
        return
    told = "\n\n".join([_INTRO, *(describe(result) for _, result in found)])
    said = {"hookEventName": "SessionStart", "additionalContext": told}
    print(json.dumps({"hookSpecificOutput": said}))  # noqa: T201 - the protocol


def _missed(path: Path, session_id: str) -> list[Result]:
    """Return how questions of the session ended of which nobody has been told."""
    try:
        mailbox = Mailbox.open(path)
        # The session only begins: no call of it can be waiting.
        waiting = mailbox.untaken(session_id, set(), older_than=0.0)
        return [result for each in waiting if (result := mailbox.read_response(each))]
    except (AgentRunnerError, OSError):
        return []


if __name__ == "__main__":
    sys.exit(main(Path(os.environ.get("PYNCHY_IPC_DIR", "")), os.environ))
