"""The life cycle as a table: from which state which step leads where, and which is refused."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.bridge.lifecycle import (
    CallEnded,
    CardSettled,
    Closed,
    Delivered,
    Ended,
    GaveUp,
    Held,
    Parked,
    PartlyAnswered,
    ResumeFailed,
    Resuming,
    Retried,
    Routed,
    SettleFailed,
    ShowFailed,
    Shown,
    Step,
    Unparked,
    advance,
    event_kind,
    is_finished,
    unsettled,
)
from pynchy.errors import IllegalTransition
from pynchy.model import (
    Answer,
    CardRef,
    CardState,
    DeliveryPath,
    Draft,
    Ending,
    OutcomeKind,
    PendingQuestion,
    State,
)
from pynchy.outcome_text import delivery_note
from pynchy.testing import NOON, make_pending

YES = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="ana")
LATER = NOON + timedelta(minutes=1)

RECORDED = make_pending(state=State.RECORDED, cards=(CardRef("local"),))
OPEN = advance(RECORDED, Shown("local", "m1"))
ENDED = advance(OPEN, Ended(YES))
HELD = advance(ENDED, Held())
RESUMING = advance(ENDED, Resuming("secret"))
FAILED = advance(RESUMING, ResumeFailed("exit code 1", LATER))
UNDELIVERED = advance(FAILED, GaveUp("exit code 1"))
DELIVERED = advance(ENDED, Delivered(DeliveryPath.LIVE, NOON))
FINISHED = advance(DELIVERED, CardSettled("local"))
CLOSED = advance(FINISHED, Closed())

STAGES = {
    "recorded": RECORDED,
    "open": OPEN,
    "ended": ENDED,
    "held": HELD,
    "resuming": RESUMING,
    "failed": FAILED,
    "undelivered": UNDELIVERED,
    "delivered": DELIVERED,
    "finished": FINISHED,
    "closed": CLOSED,
}
DRAFT = PartlyAnswered(Draft(0, Answer(("Yes",)), "ana"))
STEPS: dict[str, Step] = {
    "partly answered": DRAFT,
    "ended": Ended(YES),
    "held": Held(),
    "resuming": Resuming("secret"),
    "resume failed": ResumeFailed("why", LATER),
    "gave up": GaveUp("why"),
    "retried": Retried("ana", NOON),
    "delivered": Delivered(DeliveryPath.LIVE, NOON),
    "card settled": CardSettled("local"),
    "closed": Closed(),
}
DELIVERING = {"ended", "held", "resuming", "failed", "undelivered"}
AFTER_ENDING = {*DELIVERING, "delivered", "finished", "closed"}
ALLOWED_IN = {
    "partly answered": {"recorded", "open"},
    "ended": {"recorded", "open"},
    "held": DELIVERING,
    "resuming": DELIVERING,
    "resume failed": DELIVERING,
    "gave up": DELIVERING,
    "retried": {"failed", "undelivered"},
    "delivered": DELIVERING,
    "card settled": AFTER_ENDING,
    "closed": {"finished", "closed"},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_taken_where_the_table_allows_it_and_refused_elsewhere(
    stage: str, step: str
) -> None:
    if stage in ALLOWED_IN[step]:
        advance(STAGES[stage], STEPS[step])
    else:
        with pytest.raises(IllegalTransition):
            advance(STAGES[stage], STEPS[step])


@pytest.mark.parametrize(
    ("pending", "state"),
    [
        (RECORDED, State.RECORDED),
        (OPEN, State.OPEN),
        (ENDED, State.DELIVERING),
        (HELD, State.HELD),
        (RESUMING, State.RESUMING),
        (FAILED, State.RESUMING),
        (UNDELIVERED, State.UNDELIVERED),
        (advance(UNDELIVERED, Retried("ana", NOON)), State.DELIVERING),
        (CLOSED, State.CLOSED),
    ],
)
def test_each_stage_has_its_state(pending: PendingQuestion, state: State) -> None:
    assert pending.state is state


def test_the_first_card_opens_the_question_and_a_failed_one_does_not() -> None:
    two = replace(RECORDED, cards=(CardRef("slack", "C1"), CardRef("local")))

    failed = advance(two, ShowFailed("slack", "down"))
    shown = advance(failed, Shown("local", "m1"))

    assert failed.state is State.RECORDED
    assert shown.state is State.OPEN
    assert shown.channel_name == "local"


def test_a_card_shown_after_the_ending_does_not_reopen_the_question() -> None:
    two = advance(
        replace(RECORDED, cards=(CardRef("slack", "C1"), CardRef("local"))), Shown("local", "m1")
    )
    ended = advance(two, Ended(YES))

    late = advance(ended, Shown("slack", "m2"))

    assert late.state is State.DELIVERING
    assert [card.channel for card in unsettled(late)] == ["local", "slack"]


def test_attempts_count_up_and_a_retry_starts_anew() -> None:
    second = advance(FAILED, Resuming("secret"))

    retried = advance(advance(second, GaveUp("no")), Retried("ana", NOON))

    assert (RESUMING.late.attempts, second.late.attempts, retried.late.attempts) == (1, 2, 0)
    assert retried.late.claim == "secret"


def test_a_retry_before_the_next_attempt_only_makes_that_attempt_due() -> None:
    retried = advance(FAILED, Retried("ana", NOON))

    assert retried == replace(FAILED, late=replace(FAILED.late, retry_at=NOON, wanted=True))


def test_a_card_is_settled_again_when_the_delivery_got_further() -> None:
    resuming = advance(RESUMING, CardSettled("local", delivery_note(RESUMING)))
    delivered = advance(resuming, Delivered(DeliveryPath.LATE, NOON))

    assert not unsettled(resuming)
    assert [card.channel for card in unsettled(delivered)] == ["local"]
    assert not is_finished(delivered)
    assert is_finished(advance(delivered, CardSettled("local", delivery_note(delivered))))


def test_a_card_that_cannot_be_settled_is_abandoned_and_holds_nothing_up() -> None:
    failed = advance(DELIVERED, SettleFailed("local", "down"))
    abandoned = advance(failed, SettleFailed("local", "down", abandon=True))

    assert not is_finished(failed)
    assert is_finished(abandoned)
    assert abandoned.cards[0].state is CardState.ABANDONED


def test_a_channel_is_routed_to_once() -> None:
    routed = advance(OPEN, Routed("slack", "C1"))

    assert routed.cards[-1] == CardRef("slack", "C1")
    with pytest.raises(IllegalTransition):
        advance(routed, Routed("slack", "C1"))


def test_a_card_that_failed_is_routed_again_while_somebody_can_answer() -> None:
    failed = advance(advance(OPEN, Routed("slack", "?")), ShowFailed("slack", "down"))

    again = advance(failed, Routed("slack", "C1"))
    shown = advance(again, Shown("slack", "m2"))

    assert failed.cards[-1].attempts == 1
    assert again.cards[-1] == CardRef("slack", "C1", attempts=1, error="down")
    assert shown.cards[-1] == CardRef("slack", "C1", "m2", CardState.SHOWN)
    for other in (shown, advance(failed, Ended(YES))):
        with pytest.raises(IllegalTransition):
            advance(other, Routed("slack", "C1"))


def test_a_second_draft_for_a_question_replaces_the_first() -> None:
    first = advance(OPEN, DRAFT)
    second = advance(first, PartlyAnswered(Draft(0, Answer(("No",)), "ben")))

    assert [draft.by for draft in second.drafts] == ["ben"]


@given(st.lists(st.sampled_from([*STEPS.values(), CallEnded("x"), Shown("local", "m9")])))
def test_no_sequence_of_steps_changes_an_ending_or_reopens_a_question(steps: list[Step]) -> None:
    pending, ending = RECORDED, None
    for step in steps:
        try:
            pending = advance(pending, step)
        except IllegalTransition:
            continue
        ending = ending or pending.ending
        assert pending.ending == ending
        assert (ending is None) == pending.state.waits_for_person


def test_a_call_is_put_off_and_made_again_until_its_answer_has_arrived() -> None:
    for stage in (RECORDED, OPEN, ENDED, HELD, RESUMING, UNDELIVERED):
        parked = advance(stage, Parked())
        assert (parked.parked, parked.state) == (True, stage.state)
        assert advance(parked, Unparked()) == stage
    assert advance(DELIVERED, Parked()) == DELIVERED
    assert (event_kind(Parked()), event_kind(Unparked())) == ("parked", None)


@pytest.mark.parametrize("outcome", OutcomeKind)
def test_a_parked_agent_is_brought_back_however_its_question_ended(outcome: OutcomeKind) -> None:
    parked = advance(advance(OPEN, Parked()), Ended(Ending(outcome, NOON)))

    assert not advance(OPEN, Parked()).resumes
    assert parked.resumes
    assert advance(parked, Unparked()).resumes == outcome.resumes
    arrived = advance(parked, Delivered(DeliveryPath.LATE, NOON))
    assert delivery_note(arrived).endswith("it was resumed and knows how this ended.")


def test_a_card_says_that_a_resumed_agent_has_the_answer_only_if_there_is_one() -> None:
    ending = Ending(OutcomeKind.ANSWERED, NOON, answers=(Answer(("Yes",)),))
    answered = advance(advance(OPEN, Parked()), Ended(ending))
    arrived = advance(answered, Delivered(DeliveryPath.LATE, NOON))

    assert delivery_note(arrived) == "The agent was parked; it was resumed and has the answer."


def test_every_step_is_told_under_a_name_of_its_own() -> None:
    kinds = [event_kind(step) for step in STEPS.values()]

    assert len(set(kinds)) == len(kinds)
    assert event_kind(Ended(YES)) == "answered"
    assert event_kind(Routed("x", "y")) is None
