"""What Codex asks people, as a question of ours, and their answer as Codex takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_runner.codex_calls import INPUT, decide, read_call
from pynchy import wire
from pynchy.calls import ToolCall
from pynchy.model import GroupName, Kind, OutcomeKind, PendingQuestion, RequestId, SessionId
from pynchy.permissions.card import is_granted
from pynchy.sources.base import SourceQuestion

PROGRAM = "codex"


@dataclass(slots=True)
class CodexRequest:
    """One request of the daemon that is for people. `resolved`: somebody has answered it."""

    rpc_id: int | str
    method: str
    params: Mapping[str, Any]
    asked: wire.CodexAsked
    resolved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def request_id(self) -> RequestId:
        """The same each time that the daemon shows it, also to another host."""
        return RequestId(f"x{self.asked.digest(self.method, self.rpc_id)[:24]}")

    @property
    def can_be_allowed_once(self) -> bool:
        """False for what could only be allowed for good."""
        decisions = self.asked.availableDecisions
        return decisions is None or "accept" in decisions

    def questions(self, group: GroupName, task: str) -> SourceQuestion | None:
        """Return its questions; None for secrets, which belong in no chat.

        Raise MalformedRequest.
        """
        put = self._put()
        if any(one.isSecret for one in put):
            return None
        return SourceQuestion(
            group,
            self.request_id,
            tuple(one.to_model() for one in put),
            agent=PROGRAM,
            task=task,
            session_id=SessionId(self.asked.threadId),
        )

    def permission(
        self, group: GroupName, task: str, cwd: str, changes: list[Mapping[str, Any]]
    ) -> SourceQuestion:
        """Return the permission that it asks for; `changes` are those of the files in question."""
        tool, given = read_call(self.method, self.params, changes)
        return SourceQuestion(
            group,
            self.request_id,
            (),
            kind=Kind.PERMISSION,
            agent=PROGRAM,
            task=task,
            session_id=SessionId(self.asked.threadId),
            call=ToolCall(PROGRAM, tool, given, self.asked.cwd or cwd),
        )

    def answer(self, ended: PendingQuestion) -> Mapping[str, Any]:
        """Return what Codex is told. "Always" of Codex is never chosen."""
        if self.method != INPUT:
            return decide(self.method, self.params, is_allowed=is_granted(ended))
        answers = ended.ending.answers if ended.ending else ()
        told = {
            one.id: {"answers": [*answer.selected, *([answer.text] if answer.text else [])]}
            for one, answer in zip(self._put(), answers, strict=False)
        }
        return {"answers": told}

    def words(self, ended: PendingQuestion) -> str:
        """Return what a person has said beside a "no", for the model and the terminal."""
        ending = ended.ending
        if ending is None or self.method == INPUT or is_granted(ended):
            return ""
        notes = [answer.text for answer in ending.answers if answer.text]
        if ending.outcome is OutcomeKind.DECLINED and ending.reason:
            notes.append(ending.reason)
        said = " ".join(notes)
        return f"{ending.by or 'A person'} did not allow this. They say: {said}" if said else ""

    def _put(self) -> list[wire.CodexQuestion]:
        return wire.read_codex(wire.CodexQuestions, dict(self.params)).questions
