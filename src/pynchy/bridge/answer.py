"""Accept a person's reply: authorise it, understand it, and end the question with it, once.

When `answer` or `decline` returns an ended question, that ending is on the disk. Of all who
answer at once one wins, and every other is told what won.
"""

from __future__ import annotations

from collections.abc import Mapping

from pynchy.bridge import replies
from pynchy.bridge.desk import Desk
from pynchy.bridge.lifecycle import PartlyAnswered
from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.errors import AlreadyOver, IllegalTransition, InvalidReply, NotAllowed, UnknownQuestion
from pynchy.model import Answer, Draft, Ending, OutcomeKind, PendingQuestion, Reply
from pynchy.pending.base import History

MAX_REASON = 2_000


class Answering:
    """The desk where every channel takes its replies."""

    def __init__(
        self, desk: Desk, history: History, channels: Mapping[str, Channel], settings: Settings
    ) -> None:
        self._desk = desk
        self._history = history
        self._channels = channels
        self._settings = settings

    async def answer(self, reply: Reply) -> PendingQuestion:
        """See ReplyDesk."""
        pending = await self._open_question(reply)
        given = _answers(pending, reply)
        drafts = {draft.question: draft for draft in pending.drafts}
        drafts |= {number: Draft(number, answer, reply.by) for number, answer in given.items()}
        if len(drafts) < len(pending.questions):
            pending = await self._note(pending, [drafts[number] for number in given])
            # Others answer at the same time, so that ours may have been the last that was missing.
            if len(pending.drafts) < len(pending.questions):
                return pending
            drafts = {draft.question: draft for draft in pending.drafts}
        ending = replies.complete(drafts.values(), self._desk.now(), reply.channel)
        return await self._desk.end(pending.key, ending)

    async def _note(self, pending: PendingQuestion, drafts: list[Draft]) -> PendingQuestion:
        """Keep the drafts. Raise AlreadyOver if the question has ended meanwhile."""
        try:
            return await self._desk.take(pending.key, *map(PartlyAnswered, drafts))
        except (IllegalTransition, UnknownQuestion):
            over = self._desk.index.get(pending.key) or await self._history.find(*pending.key)
            if over is None or over.ending is None:
                raise
            raise AlreadyOver(over.ending) from None

    async def decline(self, reply: Reply, reason: str | None = None) -> PendingQuestion:
        """See ReplyDesk."""
        pending = await self._open_question(reply)
        if reason and len(reason) > MAX_REASON:
            raise InvalidReply(f"a reason may have at most {MAX_REASON} characters")
        ending = Ending(
            OutcomeKind.DECLINED,
            self._desk.now(),
            by=reply.by,
            channel=reply.channel,
            reason=reason or None,
        )
        return await self._desk.end(pending.key, ending)

    async def find(self, target: str) -> PendingQuestion:
        """Return the question, open or over. Raise UnknownQuestion if there is none."""
        try:
            return self._desk.index.resolve(target)
        except UnknownQuestion:
            found = await self._history.search(target)
            if not found:
                raise UnknownQuestion(f"no question has the id {target}") from None
            return found[0]

    async def _open_question(self, reply: Reply) -> PendingQuestion:
        pending = await self.find(reply.target)
        self._authorise(pending, reply)
        if pending.ending is not None:
            raise AlreadyOver(pending.ending)
        return pending

    def _authorise(self, pending: PendingQuestion, reply: Reply) -> None:
        channel = self._channels.get(reply.channel)
        if channel is not None and not channel.checks_users:
            return
        card = pending.card_of(reply.channel)
        if channel is None or card is None or card.chat != reply.chat:
            raise NotAllowed("this question was not asked here")
        allowed = self._settings.group(pending.group).allowed_users.get(reply.channel, ())
        if not reply.user_id or reply.user_id not in allowed:
            raise NotAllowed("you are not on the list of people who may answer this")


def _answers(pending: PendingQuestion, reply: Reply) -> dict[int, Answer]:
    """Return the answers in the reply, by the number of their question from 0."""
    questions = pending.questions
    if reply.question is None:
        if reply.answers:
            return _checked(pending, reply.answers)
        spread = replies.spread(questions, reply.values)
        return {n: replies.match(questions[n], values) for n, values in enumerate(spread)}
    if not 1 <= reply.question <= len(questions):
        raise InvalidReply(f"there is no question {reply.question}: choose 1 to {len(questions)}")
    number = reply.question - 1
    if reply.answers:
        return {number: replies.check(questions[number], reply.answers[0])}
    return {number: replies.match(questions[number], reply.values)}


def _checked(pending: PendingQuestion, answers: tuple[Answer, ...]) -> dict[int, Answer]:
    if len(answers) != len(pending.questions):
        raise InvalidReply(f"{len(pending.questions)} answers are needed, {len(answers)} came")
    pairs = zip(pending.questions, answers, strict=True)
    return {
        number: replies.check(question, answer) for number, (question, answer) in enumerate(pairs)
    }
