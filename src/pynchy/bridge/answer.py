"""Accept a person's reply: authorise it, understand it, and end the question with it, once.

When `answer` or `decline` returns an ended question, that ending is on the disk. Of all who
answer at once one wins, and every other is told what won.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pynchy.bridge import matching
from pynchy.bridge.cards import card_of
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import PartlyAnswered
from pynchy.channels.base import Channel
from pynchy.config import TOKEN_CHANNELS, Settings
from pynchy.errors import AlreadyOver, AmbiguousQuestion, InvalidReply, NotAllowed, UnknownQuestion
from pynchy.model import (
    CardState,
    Ending,
    GroupName,
    OutcomeKind,
    PendingQuestion,
    Reply,
    RequestId,
    ShownCard,
)
from pynchy.pending.base import read_short_id

MAX_REASON = 2_000
_MAX_LISTED = 5


class AnswerService:
    """What every channel calls with its replies."""

    def __init__(
        self,
        ledger: QuestionLedger,
        channels: Mapping[str, Channel],
        settings: Settings,
    ) -> None:
        self._ledger = ledger
        self._channels = channels
        self._settings = settings

    async def answer(self, reply: Reply) -> PendingQuestion:
        """See ReplyHandler."""
        pending = await self._open_question(reply)
        given = matching.read_reply(pending, reply)

        def choose(now: PendingQuestion) -> Ending | list[PartlyAnswered]:
            # Others may have answered their parts since we looked.
            ending = matching.complete(now, given, self._ledger.now())
            return ending or [PartlyAnswered(draft) for draft in given]

        return await self._decide(pending, choose)

    async def decline(self, reply: Reply, reason: str | None = None) -> PendingQuestion:
        """See ReplyHandler."""
        pending = await self._open_question(reply)
        if reason and len(reason) > MAX_REASON:
            raise InvalidReply(f"a reason may have at most {MAX_REASON} characters")
        ending = Ending(
            OutcomeKind.DECLINED,
            self._ledger.now(),
            by=reply.by,
            user_id=reply.user_id,
            channel=reply.channel,
            reason=reason or None,
        )
        return await self._decide(pending, lambda _: ending)

    async def _decide(
        self,
        pending: PendingQuestion,
        choose: Callable[[PendingQuestion], Ending | Sequence[PartlyAnswered]],
    ) -> PendingQuestion:
        """Commit to the ledger. Raise AlreadyOver, too, if the question was closed meanwhile."""
        try:
            return await self._ledger.commit(pending.key, choose)
        except UnknownQuestion:
            over = await self._ledger.history.find(*pending.key)
            if over is None or over.ending is None:
                raise
            raise AlreadyOver(over.ending) from None

    def open_cards(self, channel: str) -> list[ShownCard]:
        """See ReplyHandler."""
        public_url = self._settings.http.public_url
        return [
            ShownCard(
                c.chat,
                c.message_id,
                p.request_id,
                p.questions,
                card_of(p, public_url),
                p.answered,
            )
            for p in self._ledger.index
            for c in p.cards
            if p.ending is None and c.channel == channel
            if c.state is CardState.SHOWN and c.message_id
        ]

    async def find(self, target: str, group: GroupName | None = None) -> PendingQuestion:
        """Return the question, open or over, by its group and request id, or by what was typed.

        What was typed is a short id, or a request id that one question alone has. Raise
        UnknownQuestion if there is none, AmbiguousQuestion if several have it.
        """
        if group is not None:
            return await self._find_in(group, RequestId(target))
        index, history = self._ledger.index, self._ledger.history
        if short_id := read_short_id(target):
            found = index.with_short_id(short_id) or await history.with_short_id(short_id)
            named = [found] if found else []
        else:
            request_id = RequestId(target)
            # What is closed meanwhile is in both.
            found_open = {p.key: p for p in index.with_request_id(request_id)}
            over = {p.key: p for p in await history.with_request_id(request_id)}
            named = list((found_open | over).values())
        if len(named) > 1:
            raise AmbiguousQuestion(_which(target, named))
        if not named:
            raise UnknownQuestion(f"no question has the id {target}")
        return named[0]

    async def _find_in(self, group: GroupName, request_id: RequestId) -> PendingQuestion:
        found = await self._ledger.find((group, request_id))
        if found is None:
            raise UnknownQuestion(f"no question has the id {request_id}")
        return found

    async def _open_question(self, reply: Reply) -> PendingQuestion:
        pending = await self.find(reply.target, reply.group)
        self._authorise(pending, reply)
        if pending.ending is not None:
            raise AlreadyOver(pending.ending)
        return pending

    def _authorise(self, pending: PendingQuestion, reply: Reply) -> None:
        channel = self._channels.get(reply.channel)
        if channel is not None and reply.channel in TOKEN_CHANNELS:
            return
        card = pending.card_of(reply.channel)
        if channel is None or card is None or card.chat != reply.chat:
            raise NotAllowed("this question was not asked here")
        allowed = self._settings.group(pending.group).allowed_users.get(reply.channel, ())
        if not reply.user_id or reply.user_id not in allowed:
            raise NotAllowed("you are not on the list of people who may answer this")


def _which(target: str, named: Sequence[PendingQuestion]) -> str:
    listed = [
        f"{p.short_id} (group {p.group}, {p.ending.outcome if p.ending else 'open'})"
        for p in named[:_MAX_LISTED]
    ]
    more = f" and {len(named) - len(listed)} more" if len(named) > len(listed) else ""
    return f"{target} is the request id of several; use a short id: {', '.join(listed)}{more}"
