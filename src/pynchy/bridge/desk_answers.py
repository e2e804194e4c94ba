"""Take what a person answered in the agent's own terminal, where the group allows that.

Such an answer passes through the agent's hands: it counts for the group's own questions alone,
never for a permission or an approval, and only as far as nobody else has answered before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pynchy import wire
from pynchy.bridge.answer import AnswerService
from pynchy.channels.base import AT_DESK
from pynchy.config import Settings
from pynchy.errors import (
    AlreadyOver,
    MalformedRequest,
    NotAllowed,
    ReplyRejected,
    UnknownQuestion,
)
from pynchy.model import Answer, GroupName, Kind, PendingQuestion, Reply

log = logging.getLogger(__name__)


class DeskAnswers:
    """Handles `ask_user:desk_answer`."""

    def __init__(self, answers: AnswerService, settings: Settings) -> None:
        self._answers = answers
        self._settings = settings

    async def handle(self, group: GroupName, envelope: wire.Envelope) -> None:
        """Answer the question, unless it is over. Raise MalformedRequest if that may not be."""
        request = wire.read_desk_answer(envelope)
        try:
            await self._answer(group, request)
        except AlreadyOver:
            log.info("desk_answer.late", extra={"group": group, "id": request.request_id})
        except UnknownQuestion as exc:
            # Nobody is told: an error under this id would stand in the way of a question.
            raise MalformedRequest(str(exc)) from exc
        except ReplyRejected as exc:
            raise MalformedRequest(str(exc), request.request_id) from exc

    async def _answer(self, group: GroupName, request: wire.DeskAnswer) -> None:
        pending = await self._answers.find(request.request_id, group)
        self._authorise(pending)
        if pending.ending is not None:
            raise AlreadyOver(pending.ending)
        reply = Reply(
            target=request.request_id,
            by=request.by,
            channel=AT_DESK,
            answers=_left_open(pending, request.answers),
            group=group,
        )
        await self._answers.accept(pending, reply)

    def _authorise(self, pending: PendingQuestion) -> None:
        if not self._settings.group(pending.group).desk_answers:
            raise NotAllowed(
                f"the agent's terminal answers nothing here: "
                f"[groups.{pending.group}] does not set desk_answers = true"
            )
        if pending.kind is not Kind.QUESTION or pending.source:
            raise NotAllowed(
                f"the agent's terminal answers the questions of its agents alone: "
                f"this is of kind {pending.kind}, from {pending.source or 'the mailbox'}"
            )


def _left_open(pending: PendingQuestion, given: Sequence[wire.AnswerIn]) -> tuple[Answer, ...]:
    """Return the answers without those to parts that somebody has answered before."""
    return tuple(
        Answer() if number in pending.answered else Answer(tuple(one.selected), one.text)
        for number, one in enumerate(given, start=1)
    )
