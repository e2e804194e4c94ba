"""The life of a question as a pure function: (pending, step) -> pending.

A question ends once: no step leads from an ended question back to an open one, and the ending
that is stored is never replaced.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from pynchy.errors import IllegalTransition
from pynchy.events import EventKind
from pynchy.model import (
    CardRef,
    CardState,
    DeliveryPath,
    Draft,
    Ending,
    PendingQuestion,
    State,
)
from pynchy.outcome_text import delivery_note
from pynchy.unicode_safety import strip_hidden


@dataclass(frozen=True, slots=True)
class Shown:
    """A channel shows the card."""

    channel: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ShowFailed:
    """A channel could not show the card. See CardRef for the rest."""

    channel: str
    reason: str
    maybe_shown: bool = False
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Routed:
    """A channel that does not show the question, as yet or because it failed, is about to."""

    channel: str
    chat: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The agent's call no longer waits; the question stays."""

    reason: str


@dataclass(frozen=True, slots=True)
class Parked:
    """The agent has put its call off, and ends; it makes the call again when it is resumed."""


@dataclass(frozen=True, slots=True)
class Unparked:
    """The call that was put off is being made, or can no longer be."""


@dataclass(frozen=True, slots=True)
class PartlyAnswered:
    """One question of several has its answer, or one person of several has approved."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class Ended:
    """The question is over."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Held:
    """The answer is kept: for a runner that lives but does not wait, or else for that reason."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RuleNotMade:
    """The rule that the person chose could not be made; the answer counts all the same."""

    reason: str


@dataclass(frozen=True, slots=True)
class TakerDied:
    """A process of the agent took the answer, and died before it passed it on."""


@dataclass(frozen=True, slots=True)
class Resuming:
    """The host has taken the receipt under `claim` and resumes the session."""

    claim: str


@dataclass(frozen=True, slots=True)
class ResumeFailed:
    """An attempt to resume failed; the next one is due at `retry_at`."""

    reason: str
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The answer is kept and shown as undelivered."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retried:
    """A person asked for the delivery to be tried again, or for its next attempt to be made now."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Delivered:
    """The agent has it, or nobody needs to."""

    path: DeliveryPath
    at: datetime


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The answer is no longer kept for the agent; it is in history alone."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CardSettled:
    """A channel's card shows how the question ended, and `delivery`."""

    channel: str
    delivery: str = ""


@dataclass(frozen=True, slots=True)
class SettleFailed:
    """A channel's card could not be settled; after too often it is abandoned."""

    channel: str
    reason: str
    abandon: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """Delivered and every card settled: it moves into history."""


Step = (
    Shown
    | ShowFailed
    | Routed
    | CallEnded
    | Parked
    | Unparked
    | PartlyAnswered
    | Ended
    | RuleNotMade
    | Held
    | TakerDied
    | Resuming
    | ResumeFailed
    | GaveUp
    | Retried
    | Delivered
    | Dismissed
    | CardSettled
    | SettleFailed
    | Closed
)


def advance(pending: PendingQuestion, step: Step) -> PendingQuestion:
    """Return the question after the step. Raise IllegalTransition where there is no such step."""
    match step:
        case Shown() | ShowFailed() | Routed() | CardSettled() | SettleFailed():
            return _advance_card(pending, step)
        case CallEnded() | RuleNotMade():
            return _advance_aside(pending, step)
        case Parked() | Unparked():
            # Said by an agent at any time; what has arrived stays as it arrived.
            is_over = pending.delivered is not None
            return pending if is_over else replace(pending, parked=isinstance(step, Parked))
        case PartlyAnswered(draft=draft):
            _require(pending, step, pending.state.waits_for_person)
            others = tuple(d for d in pending.drafts if not _replaces(pending, draft, d))
            return replace(pending, drafts=(*others, draft))
        case Ended(ending=ending):
            _require(pending, step, pending.state.waits_for_person)
            return replace(pending, state=State.DELIVERING, ending=ending)
        case Held() | TakerDied() | Resuming() | ResumeFailed() | GaveUp() | Retried():
            return _advance_delivery(pending, step)
        case Delivered(path=path, at=at):
            _require(pending, step, pending.ending is not None and pending.delivered is None)
            state = State.DELIVERING
            return replace(pending, state=state, delivered=path, delivered_at=at)
        case Dismissed(at=at):
            _require(pending, step, pending.state is State.UNDELIVERED)
            state, path = State.DELIVERING, DeliveryPath.DISMISSED
            return replace(pending, state=state, delivered=path, delivered_at=at)
        case Closed():
            _require(pending, step, is_finished(pending))
            return replace(pending, state=State.CLOSED)
    assert_never(step)


def _advance_aside(pending: PendingQuestion, step: CallEnded | RuleNotMade) -> PendingQuestion:
    """Note what does not change where the question stands."""
    if isinstance(step, CallEnded):
        return replace(pending, call_waits=False)
    _require(pending, step, pending.ending is not None)
    return replace(pending, rule_problem=step.reason)


def is_finished(pending: PendingQuestion) -> bool:
    """True when the outcome has arrived and no card shows anything else."""
    return pending.delivered is not None and not unsettled(pending)


def unsettled(pending: PendingQuestion) -> tuple[CardRef, ...]:
    """Return the cards that do not show yet how the question ended and what became of it."""
    note = delivery_note(pending)
    return tuple(
        card
        for card in pending.cards
        if card.state in {CardState.SENDING, CardState.SHOWN}
        or (card.state is CardState.FAILED and card.maybe_shown)
        or (card.state is CardState.SETTLED and card.delivery != note)
    )


def event_kind(step: Step) -> EventKind | None:
    """What the step is called in the event log. None for one that nobody needs to hear of."""
    match step:
        case Ended(ending=ending):
            return EventKind(ending.outcome.value)
        case Routed() | Unparked():
            return None
        case _:
            return _KINDS[type(step)]


_KINDS: dict[type, EventKind] = {
    Shown: EventKind.SHOWN,
    ShowFailed: EventKind.SHOW_FAILED,
    CallEnded: EventKind.CALL_ENDED,
    Parked: EventKind.PARKED,
    PartlyAnswered: EventKind.PARTLY_ANSWERED,
    RuleNotMade: EventKind.RULE_NOT_MADE,
    Held: EventKind.HELD,
    TakerDied: EventKind.TAKER_DIED,
    Resuming: EventKind.RESUMING,
    ResumeFailed: EventKind.RESUME_FAILED,
    GaveUp: EventKind.UNDELIVERED,
    Retried: EventKind.RETRIED,
    Delivered: EventKind.DELIVERED,
    Dismissed: EventKind.DISMISSED,
    CardSettled: EventKind.CARD_SETTLED,
    SettleFailed: EventKind.SETTLE_FAILED,
    Closed: EventKind.CLOSED,
}


def may_be_same_person(one: Draft, other: Draft) -> bool:
    """True unless two people gave these for sure, as far as ids and names tell.

    An id tells people apart within its channel. Between channels only a name can.
    """
    if one.channel == other.channel and one.user_id and other.user_id:
        return one.user_id == other.user_id
    return _seen_name(one.by) == _seen_name(other.by)


def _seen_name(name: str) -> str:
    """Return the name as far as a person can tell it from others."""
    seen = unicodedata.normalize("NFKC", strip_hidden(name))
    return " ".join(seen.casefold().split())


def _replaces(pending: PendingQuestion, draft: Draft, earlier: Draft) -> bool:
    if pending.approvals_needed > 1:
        return may_be_same_person(earlier, draft)
    return earlier.question == draft.question


def _advance_card(
    pending: PendingQuestion, step: Shown | ShowFailed | Routed | CardSettled | SettleFailed
) -> PendingQuestion:
    card = pending.card_of(step.channel)
    if isinstance(step, Routed):
        failed = card is not None and card.state is CardState.FAILED
        _require(pending, step, card is None or (failed and pending.state.waits_for_person))
        sending = replace(card or CardRef(step.channel), chat=step.chat, state=CardState.SENDING)
        return pending.with_card(sending)
    if card is None:
        raise IllegalTransition(f"{pending.request_id}: no card in {step.channel}")
    if isinstance(step, Shown):
        opened = State.OPEN if pending.state is State.RECORDED else pending.state
        shown = replace(
            card, message_id=step.message_id, state=CardState.SHOWN, attempts=0, error=None
        )
        return replace(pending.with_card(shown), state=opened)
    return pending.with_card(_card_after(pending, card, step))


def _card_after(
    pending: PendingQuestion, card: CardRef, step: ShowFailed | CardSettled | SettleFailed
) -> CardRef:
    match step:
        case ShowFailed(reason=reason):
            return replace(
                card,
                state=CardState.FAILED,
                attempts=card.attempts + 1,
                error=reason,
                maybe_shown=card.maybe_shown or step.maybe_shown,
                hopeless=step.hopeless,
            )
        case CardSettled(delivery=delivery):
            _require(pending, step, pending.ending is not None)
            return replace(card, state=CardState.SETTLED, error=None, delivery=delivery)
        case SettleFailed(reason=reason, abandon=abandon):
            state = CardState.ABANDONED if abandon else card.state
            return replace(card, state=state, attempts=card.attempts + 1, error=reason)
    assert_never(step)


def _advance_delivery(
    pending: PendingQuestion, step: Held | TakerDied | Resuming | ResumeFailed | GaveUp | Retried
) -> PendingQuestion:
    _require(pending, step, pending.ending is not None and pending.delivered is None)
    late = pending.late
    match step:
        case Held(reason=reason):
            return replace(pending, state=State.HELD, late=replace(late, error=reason))
        case TakerDied():
            late = replace(late, taker_died=True)
            return replace(pending, state=State.DELIVERING, late=late)
        case Resuming(claim=claim):
            late = replace(late, claim=claim, attempts=late.attempts + 1, retry_at=None)
            return replace(pending, state=State.RESUMING, late=late)
        case ResumeFailed(reason=reason, retry_at=retry_at):
            late = replace(late, error=reason, retry_at=retry_at)
            return replace(pending, state=State.RESUMING, late=late)
        case GaveUp(reason=reason):
            late = replace(late, error=reason, retry_at=None)
            return replace(pending, state=State.UNDELIVERED, late=late)
        case Retried(at=at) if pending.state is State.RESUMING:
            # Due, and nothing else: the attempt is begun as it would have been later.
            _require(pending, step, late.retry_at is not None)
            return replace(pending, late=replace(late, retry_at=at, wanted=True))
        case Retried():
            _require(pending, step, pending.state is State.UNDELIVERED)
            late = replace(late, attempts=0, error=None, wanted=True)
            return replace(pending, state=State.DELIVERING, late=late)
    assert_never(step)


def _require(pending: PendingQuestion, step: Step, allowed: bool) -> None:  # noqa: FBT001 - a guard
    if not allowed:
        name = type(step).__name__
        raise IllegalTransition(f"{pending.request_id}: {name} does not follow {pending.state}")
