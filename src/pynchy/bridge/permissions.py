"""What the rules say of a call before a person is asked, and the rule that a person makes.

A rule's word is an answer like any other: it ends the question, and is in the history. The rule
that somebody chose is kept before the agent hears of the answer; to keep it again changes nothing.
Other open questions that it covers are ended by it.
What was allowed when its call had ended may be done once by the session that asked for it: who
allowed it is not asked again for the same call, until `answer_ttl` is over. A request whose host
died between using that and recording the yes has it from the next host, and no later one does.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pynchy.calls import ToolCall
from pynchy.channels.base import BY_GRANT, BY_RULE, NO_CHANNELS
from pynchy.config import Settings
from pynchy.errors import InvalidReply, RuleRefused
from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    Late,
    OutcomeKind,
    PendingQuestion,
    SessionId,
    State,
)
from pynchy.pending.base import Key, OpenQuestions
from pynchy.permissions.card import (
    APPROVE,
    DENY,
    MAKES_RULE,
    SESSION,
    allowed_call,
    check_edited,
    is_granted,
    permission_question,
)
from pynchy.permissions.judging import NOT_JUDGED
from pynchy.permissions.rulebook import MAX_SESSION_RULE, RuleBook
from pynchy.permissions.rules import NO_ALLOW_RULE, Decided, describe
from pynchy.rule import Effect, Grant, Origin, Rule

log = logging.getLogger(__name__)

_DENIED = "A rule of the group denies this."


class PermissionRules:
    """The rules, as the story of a question needs them."""

    def __init__(
        self,
        book: RuleBook,
        settings: Settings,
        now: Callable[[], datetime],
        index: OpenQuestions,
    ) -> None:
        self._book = book
        self._settings = settings
        self._now = now
        self._index = index
        # How often a rule was made. What was judged before one is judged again after it.
        self.count_made = 0

    async def judge(self, pending: PendingQuestion) -> tuple[PendingQuestion, Ending | None]:
        """Return the question as it is put to a person, and how the rules end it, if they do."""
        call = pending.call
        if call is None:
            return pending, None
        said = await self._book.weigh(call, pending.group, pending.session_id, pending.request_id)
        if said.effect is not Effect.ASK:
            return pending, self._by_rule(pending, said)
        if granted := await self._use_grant(pending, call):
            return pending, self._by_grant(pending, granted)
        # Who wants to be asked each time is offered no rule: it would not count.
        pattern = await self._book.offer(call, pending.group) if not said.rules else None
        offered = self._covers(pending, pattern) if pattern else ("", "")
        # Why no rule has answered; nothing where there is none that could have.
        because = said.because if said.because != NO_ALLOW_RULE else None
        question = permission_question(call, *offered, because)
        return replace(pending, questions=(question,), offered_rule=pattern or ""), None

    async def check_edited(
        self, pending: PendingQuestion, edited: object
    ) -> Mapping[str, Any] | None:
        """Return what a call is to be made with; None if that is as it was.

        Raise InvalidReply for what its program cannot take, and for what a rule denies.
        """
        call, given = pending.call, check_edited(pending.call, edited)
        if call is None or given is None:
            return None
        said = await self._book.foresee(
            replace(call, input=given), pending.group, pending.session_id
        )
        if said.because == NOT_JUDGED:
            raise InvalidReply("edited: the rules cannot be looked at just now; try again")
        if said.effect is Effect.DENY:
            rule = said.rules[0]
            covered = describe(rule.pattern, rule.effect)
            raise InvalidReply(f"a rule of the group denies this: {covered} ({rule.short_id})")
        return given

    async def keep_grant(self, pending: PendingQuestion) -> None:
        """Remember what was allowed when its call had ended, before the question is closed."""
        call = allowed_call(pending)
        if call is None or not _outlived_its_call(pending):
            return
        try:
            await self._book.add_grant(self._grant(pending, call))
        except (RuleRefused, OSError) as exc:
            # The session is asked again.
            log.warning("grant.not_kept", extra={"id": pending.request_id, "why": str(exc)})

    def covered_by(self, made: PendingQuestion) -> list[PendingQuestion]:
        """Return the open permissions that the rule which an answer made may cover."""
        ending = made.ending
        if ending is None or not _makes_rule(made, ending):
            return []
        in_session = _chose(made, ending, SESSION)
        key = (made.group, made.session_id)
        asked = self._index.in_session(*key) if in_session else self._index.in_group(made.group)
        return [other for other in asked if other.call is not None and other.ending is None]

    async def end_by_rule(self, pending: PendingQuestion, rule_id: str = "") -> Ending | tuple[()]:
        """Return how rules end an open question, with a use counted; nothing where they do not.

        With a `rule_id`, that rule must be one of them, and is the one that is named.
        """
        if (call := pending.call) is None:
            return ()
        said = await self._book.foresee(call, pending.group, pending.session_id)
        is_meant = not rule_id or any(rule.id == rule_id for rule in said.rules)
        if said.effect is not Effect.ALLOW or not is_meant:
            return ()
        decided = await self._book.decide(
            call, pending.group, pending.session_id, pending.request_id
        )
        if decided is None or decided.effect is not Effect.ALLOW:
            return ()
        named = sorted(decided.rules, key=lambda rule: rule.id != rule_id)
        return self._by_rule(pending, replace(decided, rules=tuple(named)))

    async def end_by_grant(self, pending: PendingQuestion) -> Ending | tuple[()]:
        """Return the yes that a host used for an open question, and died before it was written."""
        used = [grant for grant in self._book.unspent_grants() if grant.user == pending.key]
        if not used or (call := pending.call) is None:
            return ()
        said = await self._book.foresee(call, pending.group, pending.session_id)
        fitting = [grant for grant in used if grant.is_for(self._grant(pending, call))]
        is_denied = said.effect is Effect.DENY
        return self._by_grant(pending, fitting[0]) if fitting and not is_denied else ()

    def half_used(self) -> set[Key]:
        """Return the requests that have used a grant, and whose yes may not be recorded."""
        return {grant.user for grant in self._book.unspent_grants() if grant.user}

    async def spend_grants(self, key: Key) -> None:
        """Let the request not have again what it has used: its yes is recorded."""
        if key in self.half_used():
            await self._book.spend_grants(key)

    async def keep(self, pending: PendingQuestion) -> str:
        """Make the rule that the person chose with the answer, if they did; or say why not."""
        ending = pending.ending
        if ending is None:
            return ""
        # Whoever has answered, a grant that the question had used before is used up.
        await self.spend_grants(pending.key)
        if not _makes_rule(pending, ending):
            return ""
        in_session = _chose(pending, ending, SESSION)
        rule = Rule(
            id=pending.request_id,
            effect=Effect.ALLOW,
            pattern=pending.offered_rule,
            group=pending.group,
            made_by=ending.by or "",
            made_at=ending.at,
            session_id=pending.session_id if in_session else SessionId(""),
            expires_at=ending.at + self._lasts(pending, ending),
        )
        try:
            await self._book.add(rule)
        except (RuleRefused, OSError) as exc:
            # The answer counts all the same: the next call like it is asked for again.
            why = (isinstance(exc, OSError) and exc.strerror) or str(exc)
            log.warning("rule.not_made", extra={"id": pending.request_id, "why": why})
            return why
        self.count_made += 1
        return ""

    def _lasts(self, pending: PendingQuestion, ending: Ending) -> timedelta:
        if ending.rule_seconds is not None:
            return timedelta(seconds=ending.rule_seconds)
        return self._settings.group(pending.group).permissions.rule_ttl

    def _covers(self, pending: PendingQuestion, pattern: str) -> tuple[str, str]:
        """Return what a rule for the group covers, and one for the session, if there is one."""
        lasts = self._settings.group(pending.group).permissions.rule_ttl
        covered = describe(pattern, origin=Origin.CARD)
        group = f"{covered}; for every agent of {pending.group}, for {_days(lasts)}"
        if not pending.session_id:
            return group, ""
        return group, f"{covered}; in this session alone, for {_days(min(lasts, MAX_SESSION_RULE))}"

    def _by_rule(self, pending: PendingQuestion, decided: Decided) -> Ending:
        value = APPROVE if decided.effect is Effect.ALLOW else DENY
        answers = (_answer(pending, value, _DENIED if value == DENY else None),)
        by = f"rule {decided.rules[0].short_id}"
        return Ending(OutcomeKind.ANSWERED, self._now(), answers, by=by, channel=BY_RULE)

    def _by_grant(self, pending: PendingQuestion, grant: Grant) -> Ending:
        answers, by = (_answer(pending, APPROVE),), grant.made_by or None
        why = f"allowed before, as request {grant.request_id}"
        now, channel = self._now(), BY_GRANT
        return Ending(OutcomeKind.ANSWERED, now, answers, by=by, channel=channel, reason=why)

    async def _use_grant(self, pending: PendingQuestion, call: ToolCall) -> Grant | None:
        """Return the grant that the session has for the call, which is used by that."""
        if not pending.session_id:
            return None
        asked = self._index.in_session(pending.group, pending.session_id)
        # A session may be told of an answer, and go on, before that is written down.
        newest = [
            self._grant(earlier, allowed)
            for earlier in asked
            if (allowed := allowed_call(earlier)) and _outlived_its_call(earlier)
        ]
        return await self._book.use_grant(self._grant(pending, call), newest)

    def _grant(self, pending: PendingQuestion, call: ToolCall) -> Grant:
        ending = pending.ending
        made_at = ending.at if ending else self._now()
        return Grant(
            pending.request_id,
            pending.group,
            pending.session_id,
            _digest(call),
            made_by=(ending.by if ending else None) or "",
            expires_at=made_at + self._settings.answer_ttl,
        )


def _outlived_its_call(pending: PendingQuestion) -> bool:
    """True if a person said yes, and the call that asked was not there to use it.

    What was said before, as a rule or as a grant for one call, is not said anew.
    """
    ending = pending.ending
    if ending is None or ending.channel in NO_CHANNELS or not is_granted(pending):
        return False
    if pending.source or not pending.session_id:
        return False
    had_ended = not pending.call_waits or pending.state is State.HELD or pending.late != Late()
    match pending.delivered:
        case None | DeliveryPath.LIVE:
            return had_ended
        case path:
            return path is DeliveryPath.LATE


def _digest(call: ToolCall) -> str:
    """Return what is the same for calls that do the same."""
    done = call.command() or dict(call.input)
    text = json.dumps([call.tool, done, call.cwd], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _answer(pending: PendingQuestion, value: str, text: str | None = None) -> Answer:
    [label] = [o.label for o in pending.questions[0].options if o.value == value]
    return Answer((label,), text)


def _days(lasts: timedelta) -> str:
    return f"{lasts.days} days" if lasts.days > 1 else f"{lasts.total_seconds() / 3600:g} hours"


def _makes_rule(pending: PendingQuestion, ending: Ending) -> bool:
    chosen = any(_chose(pending, ending, value) for value in MAKES_RULE)
    return bool(pending.offered_rule) and chosen


def _chose(pending: PendingQuestion, ending: Ending, value: str) -> bool:
    labels = {label for answer in ending.answers for label in answer.selected}
    return any(o.value == value and o.label in labels for o in pending.questions[0].options)
