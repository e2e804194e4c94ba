"""Take requests from agents: record a question, end or put off a call, withdraw a question.

A request is durable when the handler returns, so intake may remove its file. The same request again
changes nothing. A question's id is never answered with an error while the question lives.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pynchy import wire
from pynchy.aio import finish
from pynchy.bridge import matching
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import CallEnded, Parked, Step, Unparked
from pynchy.bridge.permissions import PermissionRules
from pynchy.bridge.terminals import ASKED_ITSELF, TerminalRoute, is_stronger, same_asks
from pynchy.config import Settings
from pynchy.errors import (
    AlreadyOver,
    DuplicateRequest,
    InvalidReply,
    MalformedRequest,
    UnknownQuestion,
)
from pynchy.events import EventKind
from pynchy.ipc.base import IntakeHandler, MailboxDirectory
from pynchy.misspelling import similar_group
from pynchy.model import (
    CardRef,
    Ending,
    GroupName,
    Kind,
    OutcomeKind,
    PendingQuestion,
    Question,
    RequestId,
    Urgency,
)
from pynchy.pending.base import Key, MakeShortId
from pynchy.permissions.card import approval_question, permission_question
from pynchy.sources.base import MAILBOX, SourceQuestion
from pynchy.tracking.redelivery import LostAnswers

log = logging.getLogger(__name__)

PREFIX = "ask_user:"
_TAKEN = "request_id: another question has this id already"
_UNUSABLE = "request_id: the record under this id cannot be used; pynchy doctor may say why"


class AskHandler(IntakeHandler):
    """Handles every request whose type begins with `ask_user:`, and what intake cannot decide."""

    def __init__(  # noqa: PLR0913, PLR0917 - its parts
        self,
        ledger: QuestionLedger,
        lost_answers: LostAnswers,
        make_short_id: MakeShortId,
        settings: Settings,
        rules: PermissionRules,
        terminals: TerminalRoute,
    ) -> None:
        self._rules = rules
        self._terminals = terminals
        self._ledger = ledger
        self._mailboxes: MailboxDirectory = lost_answers.mailboxes
        self._lost_answers = lost_answers
        self._make_short_id = make_short_id
        self._settings = settings

    async def load(self) -> None:
        """Note which grants are used up: an earlier host may have died before it wrote that."""
        for key in self._rules.half_used():
            found = await self._ledger.find(key)
            if found is not None and found.ending is not None:
                await self._rules.spend_grants(key)

    async def joined(self, group: GroupName) -> None:
        """Give a new group its folders."""
        greeting = _greeting(self._settings, group)
        await asyncio.to_thread(self._mailboxes.of(group).prepare, greeting)
        log.info("group.joined", extra={"group": group})
        if near := similar_group(group, self._settings.groups):
            log.warning("group.not_in_settings", extra={"group": group, "did_you_mean": near})

    def receipt_seen(self, group: GroupName, request_id: RequestId) -> None:
        """Let a delivery that waits for this receipt look."""
        self._ledger.notify((group, request_id))

    async def handle(self, group: GroupName, envelope: wire.Envelope) -> None:
        """Do what the request says."""
        match wire.read_request(envelope):
            case wire.AskRequest() as request:
                await self._ask(group, request)
            case wire.CancelRequest() as request:
                await self._cancel((group, RequestId(request.request_id)))
            case wire.WithdrawRequest() as request:
                await self._withdraw((group, RequestId(request.request_id)), request)
            case wire.ParkRequest() as request:
                await self._park((group, RequestId(request.request_id)))

    async def refuse(
        self, group: GroupName, name: str, malformed: MalformedRequest, content: bytes
    ) -> None:
        """Answer a request that cannot be understood, and file it with the reason."""
        mailbox = self._mailboxes.of(group)
        request_id = RequestId(malformed.request_id) if malformed.request_id else None
        keep = self._settings.retention.rejected_files
        if request_id and await self._ledger.find((group, request_id)) is None:
            response = wire.error_json(request_id, malformed.reason)
            await asyncio.to_thread(mailbox.respond_refused, request_id, response, keep)
        now = self._ledger.now()
        # Before it goes: a crash may repeat the event but not hide it.
        self._ledger.publish_for_group(EventKind.REJECTED, group, request_id, malformed.reason)
        await asyncio.to_thread(mailbox.reject, name, malformed.reason, now, content, keep)

    async def asked(self, source: str, question: SourceQuestion) -> PendingQuestion | None:
        """Record what has appeared at a source. What is known already is returned as it is.

        Raise MalformedRequest if that is a question of somebody else, or cannot be asked.
        """
        key = (question.group, question.request_id)
        known = await self._ledger.find(key)
        if known is None:
            pending = await asyncio.to_thread(self._from_source, source, question)
            try:
                await self._record(pending)
            except DuplicateRequest as exc:
                known = await self._ledger.find(key)
                if known is None:
                    raise MalformedRequest(_UNUSABLE, question.request_id) from exc
        if known is not None and known.source != source:
            raise MalformedRequest(_TAKEN, question.request_id)
        return known

    async def cleared(
        self, source: str, group: GroupName, request_id: RequestId, reason: str
    ) -> None:
        """End a question that its source took back."""
        pending = self._ledger.index.get((group, request_id))
        if pending is not None and pending.source == source:
            await self._clear(pending, reason)

    async def _clear(self, pending: PendingQuestion, reason: str) -> None:
        ending = Ending(OutcomeKind.CLEARED, self._ledger.now(), reason=reason)
        await self._end(pending.key, ending)

    async def _ask(self, group: GroupName, request: wire.AskRequest) -> None:
        request_id = RequestId(request.request_id)
        known = await self._ledger.find((group, request_id))
        if known is not None and known.digest != request.digest():
            raise MalformedRequest(_TAKEN)
        if known is not None:
            await self._take_again(known)
            raise DuplicateRequest(request_id)
        if await asyncio.to_thread(self._mailboxes.of(group).has_response, request_id):
            # It was refused under this id, and the agent has been told so.
            raise DuplicateRequest(request_id)
        pending = await asyncio.to_thread(self._from_mailbox, group, request)
        pending = await self._with_asker(pending)
        await self._record(pending)
        await self._lost_answers.confirm_activity(group, pending.session_id)

    async def _with_asker(self, pending: PendingQuestion) -> PendingQuestion:
        """Note whether the session lives that it says it is of; only who is resumed needs that."""
        liveness = self._lost_answers.tracker.liveness
        if not pending.session_id or liveness.launcher(pending.group) is None:
            return pending
        return replace(pending, asker_seen=await liveness.is_asker_seen(pending))

    async def _record(self, pending: PendingQuestion) -> None:
        """Take up what can be asked; what a rule answers is shown nowhere."""
        self._check(pending)
        if any(question.default for question in pending.questions):
            await asyncio.to_thread(_check_defaults, pending)
        made_before = self._rules.count_made
        pending, ending = await self._rules.judge(pending)
        await finish(self._take_up(pending, ending, made_before))

    async def _take_up(
        self, pending: PendingQuestion, ending: Ending | None, made_before: int
    ) -> None:
        """Record what was judged; what a rule that was made meanwhile covers is ended by that."""
        await self._ledger.record(replace(pending, cards=()) if ending else pending, ending)
        for weaker in same_asks(self._ledger.index, pending):
            await self._clear(weaker, ASKED_ITSELF)
        await self._spend_grants(pending.key)
        if ending is None and self._rules.count_made != made_before:
            # What cannot be written now is left to a person.
            with suppress(AlreadyOver, UnknownQuestion, OSError):
                await self._ledger.commit(pending.key, self._rules.end_by_rule)

    async def _take_again(self, known: PendingQuestion) -> None:
        """Go on with a question that is asked again, as after a crash."""
        if known.parked and known.ending is None:
            await self._take(known.key, Unparked())
        if known.key in self._rules.half_used():
            with suppress(AlreadyOver, UnknownQuestion):
                await self._ledger.commit(known.key, self._rules.end_by_grant)
            await self._spend_grants(known.key)

    async def _spend_grants(self, key: Key) -> None:
        """Let grants that the question has used be used up, unless its yes could not be written."""
        found = self._ledger.index.get(key)
        if found is None or found.ending is not None:
            await self._rules.spend_grants(key)

    def _check(self, pending: PendingQuestion) -> None:
        """Raise MalformedRequest if this cannot be asked."""
        tracker = self._lost_answers.tracker
        tracker.check_id((pending.group, pending.session_id), pending.request_id)
        for other in same_asks(self._ledger.index, pending):
            if is_stronger(other, pending):
                raise MalformedRequest(f"{other.short_id}: {ASKED_ITSELF}", pending.request_id)
        self._check_room(pending)

    def _check_room(self, pending: PendingQuestion) -> None:
        """Raise MalformedRequest if the group has as much open as it may have."""
        index, settings, group = self._ledger.index, self._settings, pending.group
        if index.count_in_group(group) >= settings.max_open_per_group:
            full = f"{settings.max_open_per_group} questions of this group are open"
        elif index.bytes_in_group(group) + pending.size_bytes > settings.max_open_size_per_group:
            full = "the open questions of this group are too large together"
        else:
            return
        raise MalformedRequest(f"{full}; withdraw some, or ask again later", pending.request_id)

    def _from_mailbox(self, group: GroupName, request: wire.AskRequest) -> PendingQuestion:
        wait = self._settings.wait_timeout
        if request.wait_seconds is not None:
            wait = timedelta(seconds=request.wait_seconds)
        return self._new(
            group,
            wait,
            request_id=RequestId(request.request_id),
            kind=request.kind,
            questions=_questions(request),
            call=request.permission and request.permission.to_model(),
            digest=request.digest(),
            title=request.title or "",
            agent=request.agent or "",
            task=request.task or "",
            urgency=request.urgency or Urgency.NORMAL,
            session_id=wire.session_id(request.session_id),
            lease=request.lease or "",
            hears_dismissal=request.hears_dismissal,
            source=wire.TERMINAL if request.terminal else MAILBOX,
            ask_id=request.terminal.ask_id if request.terminal else "",
        )

    def _from_source(self, source: str, question: SourceQuestion) -> PendingQuestion:
        return self._new(
            question.group,
            self._settings.answer_ttl,
            request_id=question.request_id,
            questions=_source_questions(question),
            call=question.call,
            digest="",
            kind=question.kind,
            title=question.title,
            agent=question.agent,
            task=question.task,
            urgency=question.urgency,
            session_id=question.session_id,
            source=source,
            ask_id=question.ask_id,
        )

    def _new(
        self,
        group: GroupName,
        wait: timedelta,
        **fields: Any,  # noqa: ANN401 - of PendingQuestion
    ) -> PendingQuestion:
        """Return a question that was asked just now, with its short id, deadlines and cards."""
        now = self._ledger.now()
        expires_at = now + self._settings.answer_ttl
        routing = self._settings.group(group)
        needed = routing.approvals_needed if fields.get("kind") is Kind.APPROVAL else 1
        pending = PendingQuestion(
            short_id=self._make_short_id(),
            group=group,
            timestamp=now,
            wait_until=min(now + wait, expires_at),
            expires_at=expires_at,
            cards=tuple(CardRef(n, routing.chat.get(n, "")) for n in routing.channels),
            approvals_needed=needed,
            **fields,
        )
        # What is kept counts: a permission's card says more than its request.
        return replace(pending, size_bytes=len(wire.pending_json(pending)))

    def _of_mailbox(self, key: Key) -> PendingQuestion | None:
        """Return the open question; None for one of a source, which agents have no say in."""
        pending = self._ledger.index.get(key)
        return pending if pending is not None and pending.source == MAILBOX else None

    async def _cancel(self, key: Key) -> None:
        pending = self._of_mailbox(key)
        # What has arrived was used by the call, if that waited for it.
        if pending is not None and pending.call_waits and pending.delivered is None:
            await self._take(key, CallEnded("cancelled"))

    async def _park(self, key: Key) -> None:
        pending = self._of_mailbox(key)
        # Without a session there is nothing to be resumed: it is as if the call were gone.
        if pending is not None and pending.session_id:
            await self._take(key, Parked())

    async def _take(self, key: Key, step: Step) -> None:
        with suppress(UnknownQuestion):  # closed while we waited for our turn
            await self._ledger.apply(key, step)

    async def _withdraw(self, key: Key, request: wire.WithdrawRequest) -> None:
        found = self._ledger.index.get(key)
        if found is not None and found.source == wire.TERMINAL:
            await self._clear(found, request.reason)
            self._terminals.lose(key, request.reason, maybe_typed=request.maybe_typed)
            return
        pending = self._of_mailbox(key)
        if pending is None:
            return
        # Not so a cancel: a server writes one also when the agent that it served is gone.
        await self._lost_answers.confirm_activity(pending.group, pending.session_id)
        await self._end(key, Ending(OutcomeKind.WITHDRAWN, self._ledger.now(), by="the agent"))

    async def _end(self, key: Key, ending: Ending) -> None:
        try:
            await self._ledger.end(key, ending)
        except (AlreadyOver, UnknownQuestion):
            log.info("question.taken_back_late", extra={"id": key[1]})


def _questions(request: wire.AskRequest) -> tuple[Question, ...]:
    """Return what is asked, whichever way it is put."""
    if request.permission is not None:
        return (permission_question(request.permission.to_model()),)
    if request.approval is not None:
        asked = request.approval
        return (approval_question(asked.action, asked.details, asked.preview, asked.risk or ""),)
    return tuple(question.to_model() for question in request.questions)


def _source_questions(question: SourceQuestion) -> tuple[Question, ...]:
    """Return what a source asks, whichever way it is put."""
    if question.call is not None:
        return (permission_question(question.call),)
    return question.questions


def _check_defaults(pending: PendingQuestion) -> None:
    """Raise MalformedRequest for a default that could never be applied. Many choices take long."""
    try:
        matching.defaults(tuple(q for q in pending.questions if q.default))
    except InvalidReply as exc:
        raise MalformedRequest(f"default: {exc}", pending.request_id) from exc


def _greeting(settings: Settings, name: GroupName) -> bytes:
    """Return what the agents of the group are told of how they wait."""
    group = settings.group(name)
    parks, built_in = group.wait == "park", group.ask_with != "ask_user"
    return wire.host_json(
        settings.wait_timeout.total_seconds(),
        park_after_seconds=group.park_after.total_seconds() if parks else None,
        ask_with=group.ask_with if built_in else None,
        desk_answers=group.desk_answers,
        phux_prefix=f"pynchy:{name}" if settings.report_to_phux else None,
    )
