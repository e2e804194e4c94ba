"""Accept a person's reply: authorise it, understand it, and end the question with it, once.

When `answer` or `decline` returns an ended question, that ending is on the disk. Of all who
answer at once one wins, and every other is told what won. What was answered in the agent's own
terminal passes through the agent's hands: it counts where the group allows that, for the group's
own questions alone, never for a permission or an approval, and only as far as nobody else has
answered before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pynchy import wire
from pynchy.bridge import matching
from pynchy.bridge.cards import card_of, offered
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import PartlyAnswered
from pynchy.bridge.permissions import PermissionRules
from pynchy.calls import RuleScope
from pynchy.channels.base import AT_DESK, Channel
from pynchy.config import LOCAL, TOKEN_CHANNELS, WEB, Settings
from pynchy.errors import (
    AlreadyOver,
    AmbiguousQuestion,
    InvalidReply,
    MalformedRequest,
    NotAllowed,
    ReplyRejected,
    UnknownQuestion,
)
from pynchy.ipc.base import MailboxDirectory
from pynchy.model import (
    Answer,
    Card,
    CardState,
    Draft,
    Ending,
    GroupName,
    Kind,
    OutcomeKind,
    PendingQuestion,
    Question,
    Reply,
    RequestId,
    ShownCard,
)
from pynchy.pending.base import read_short_id
from pynchy.permissions.card import APPROVE, MAKES_RULE, SESSION

log = logging.getLogger(__name__)

MAX_REASON = 2_000
_MAX_LISTED = 5


class AnswerService:
    """What every channel calls with its replies."""

    def __init__(
        self,
        ledger: QuestionLedger,
        channels: Mapping[str, Channel],
        settings: Settings,
        rules: PermissionRules | None = None,
        mailboxes: MailboxDirectory | None = None,
    ) -> None:
        self._rules = rules
        self._mailboxes = mailboxes
        self._ledger = ledger
        self._channels = channels
        self._settings = settings

    async def answer(self, reply: Reply) -> PendingQuestion:
        """See ReplyHandler."""
        return await self.accept(await self._open_question(reply), reply)

    async def accept(self, pending: PendingQuestion, reply: Reply) -> PendingQuestion:
        """Take the reply of somebody who may answer the question. Raise ReplyRejected."""
        given = matching.read_reply(pending, reply)
        if reply.rule_seconds is not None or reply.rule_scope is not None:
            _check_rule(pending, given)
        if reply.rule_scope is not None:
            given = [_scoped(pending, draft, reply.rule_scope) for draft in given]
        self._check_offered(pending, given)
        if reply.edited is not None:
            given = await self._edited(pending, given, reply.edited)

        def choose(now: PendingQuestion) -> Ending | list[PartlyAnswered]:
            # Others may have answered their parts since we looked.
            ending = matching.complete(now, given, self._ledger.now())
            if ending is None:
                return [PartlyAnswered(draft) for draft in given]
            return replace(ending, rule_seconds=reply.rule_seconds)

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

    async def dismiss(self, reply: Reply, implied_choice: str = "") -> None:
        """See ReplyHandler. It is told to who asked, if they want to know.

        Where nothing else shows the question, it is declined: nobody could answer any more.
        """
        pending = await self._open_question(reply)
        if not pending.hears_dismissal or self._mailboxes is None:
            return
        stays_open = _shows_elsewhere(pending, reply.channel)
        note = wire.dismissal_json(
            pending.request_id, reply.by, implied_choice, stays_open=stays_open
        )
        mailbox = self._mailboxes.of(pending.group)
        await asyncio.to_thread(mailbox.note_dismissed, pending.request_id, note)
        if not stays_open:
            await self.decline(reply)

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

    async def _edited(
        self, pending: PendingQuestion, given: Sequence[Draft], edited: object
    ) -> list[Draft]:
        """Return what is given, with what a call is to be made with. Raise InvalidReply."""
        if self._rules is None or any(APPROVE not in _chosen(pending, draft) for draft in given):
            raise InvalidReply("only what is allowed once can be edited: say approve with it")
        change = await self._rules.check_edited(pending, edited)
        return [replace(one, answer=replace(one.answer, edited=change)) for one in given]

    def open_cards(self, channel: str) -> list[ShownCard]:
        """See ReplyHandler."""
        return [
            ShownCard(
                c.chat,
                c.message_id,
                p.request_id,
                self._offered(p, channel),
                self._card(p),
                p.answered,
            )
            for p in self._ledger.index
            for c in p.cards
            if p.ending is None and c.channel == channel
            if c.state is CardState.SHOWN and c.message_id
        ]

    def _card(self, pending: PendingQuestion) -> Card:
        return card_of(pending, self._settings.http.public_url)

    def _offered(self, pending: PendingQuestion, channel: str) -> tuple[Question, ...]:
        known = self._channels.get(channel)
        return pending.questions if known is None else offered(pending, known, self._card(pending))

    def _check_offered(self, pending: PendingQuestion, given: Sequence[Draft]) -> None:
        """Raise InvalidReply for a choice that the channel could not offer."""
        for draft in given:
            labels = self._offered(pending, draft.channel)[draft.question].labels
            if not set(draft.answer.selected) <= set(labels):
                raise InvalidReply(
                    f"this is too long to be shown here, so it cannot be allowed here: read it "
                    f"with pynchy show {pending.short_id} and allow it with pynchy approve "
                    f"{pending.short_id}, or do both on its page"
                )

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
        group = self._settings.group(pending.group)
        if not reply.user_id or reply.user_id not in group.allowed_users.get(reply.channel, ()):
            raise NotAllowed("you are not on the list of people who may answer this")
        if not group.may_approve(reply.channel, reply.user_id) and _is_for_approvers(pending):
            raise NotAllowed("you are not on the list of people who may approve this")


def _shows_elsewhere(pending: PendingQuestion, channel: str) -> bool:
    """True if a card in another place shows the question, or may yet. The inbox is one."""
    others = [card for card in pending.cards if card.channel != channel and not card.hopeless]
    return bool(others) or channel in {LOCAL, WEB}


def _is_for_approvers(pending: PendingQuestion) -> bool:
    return pending.kind in {Kind.APPROVAL, Kind.PERMISSION}


def _check_rule(pending: PendingQuestion, given: Sequence[Draft]) -> None:
    """Raise InvalidReply if it is said of a choice that makes no rule how that is to hold."""
    for draft in given:
        if MAKES_RULE.isdisjoint(_chosen(pending, draft)):
            raise InvalidReply(
                "how long a rule holds, and for whom, can be said only of a choice that makes one"
            )


def _scoped(pending: PendingQuestion, draft: Draft, scope: RuleScope) -> Draft:
    """Return the choice that makes a rule of that scope. Raise InvalidReply if there is none."""
    labels = {option.value: option.label for option in pending.questions[draft.question].options}
    if scope is RuleScope.GROUP:
        if SESSION in _chosen(pending, draft):
            raise InvalidReply("this choice makes a rule for the session: choose “always” instead")
        return draft
    if SESSION not in labels:
        raise InvalidReply("no rule can be made for this session alone: it has no id")
    return replace(draft, answer=replace(draft.answer, selected=(labels[SESSION],)))


def _chosen(pending: PendingQuestion, draft: Draft) -> frozenset[str]:
    """Return the values of the options that were chosen."""
    options = pending.questions[draft.question].options
    return frozenset(o.value for o in options if o.label in draft.answer.selected)


def _which(target: str, named: Sequence[PendingQuestion]) -> str:
    listed = [
        f"{p.short_id} (group {p.group}, {p.ending.outcome if p.ending else 'open'})"
        for p in named[:_MAX_LISTED]
    ]
    more = f" and {len(named) - len(listed)} more" if len(named) > len(listed) else ""
    return f"{target} is the request id of several; use a short id: {', '.join(listed)}{more}"


class DeskAnswers:
    """Takes what a person answered in the agent's own terminal: `ask_user:desk_answer`."""

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
