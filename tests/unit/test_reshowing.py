"""When a card that failed is tried again, by what the channels say of themselves."""

from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from pynchy.audit import AuditLog
from pynchy.bridge.cards import WAIT_MAX_SECONDS, Cards, Reshowing
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import ShowFailed
from pynchy.config import Settings
from pynchy.model import CardRef, CardState, OutcomeKind, PendingQuestion
from pynchy.pending.index import PendingIndex
from pynchy.testing import NOON, FakeChannel, FakeClock, MemoryStore, make_pending

LATER = NOON + timedelta(days=1)


class Chat(FakeChannel):
    """A channel that says what is wrong with it."""

    trouble: str | None = None

    def problem(self) -> str | None:
        return self.trouble


class TimelessCards(Cards):
    """Cards that wait for nothing, and remember how long they would have."""

    def __init__(self, ledger: QuestionLedger, *channels: Chat) -> None:
        super().__init__(ledger, {channel.name: channel for channel in channels}, 1.0)
        self.rests: list[float] = []
        self.meanwhile: Iterator[object] = iter(())

    async def rest(self, channels: Collection[str], seconds: float) -> None:
        del channels
        self.rests.append(seconds)
        next(self.meanwhile, None)


def failed(channel: str, attempts: int) -> CardRef:
    return CardRef(channel, "", None, CardState.FAILED, attempts=attempts)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[QuestionLedger]:
    audit = AuditLog(tmp_path, max_bytes=10**6, max_files=2)
    audit.open()
    yield QuestionLedger(MemoryStore(), PendingIndex(), audit, FakeClock().now)
    audit.close()


async def reshowing_of(ledger: QuestionLedger, cards: Cards, pending: PendingQuestion) -> Reshowing:
    await ledger.record(pending)
    channels = [card.channel for card in pending.cards]
    settings = Settings.model_validate({"groups": {pending.group: {"channels": channels}}})
    return Reshowing(ledger, cards, settings)


async def test_a_channel_that_is_away_does_not_make_another_be_tried_sooner(
    ledger: QuestionLedger,
) -> None:
    away, broken = Chat("away"), Chat("broken")
    away.trouble = "it is down"
    cards = TimelessCards(ledger, away, broken)
    pending = make_pending(cards=(failed("away", 1), failed("broken", 12)))
    reshowing = await reshowing_of(ledger, cards, pending)

    assert await reshowing.wait_and_route(pending.key, LATER)

    assert cards.rests == [WAIT_MAX_SECONDS]
    states = {card.channel: card.state for card in ledger.get(pending.key).cards}
    assert states == {"away": CardState.FAILED, "broken": CardState.SENDING}


async def test_a_channel_that_goes_away_just_before_the_attempt_is_tried_later(
    ledger: QuestionLedger,
) -> None:
    chat = Chat("chat")
    cards = TimelessCards(ledger, chat)
    cards.meanwhile = (setattr(chat, "trouble", trouble) for trouble in ("it is down", None))
    pending = make_pending(cards=(failed("chat", 1),))
    reshowing = await reshowing_of(ledger, cards, pending)

    assert await reshowing.wait_and_route(pending.key, LATER)

    assert len(cards.rests) == 2


async def test_what_nobody_has_seen_is_tried_as_long_as_patience_lasts_and_then_given_up(
    ledger: QuestionLedger,
) -> None:
    chat = Chat("chat")
    chat.trouble = "it is down"
    cards = TimelessCards(ledger, chat)
    cards.meanwhile = (setattr(chat, "trouble", None) for _ in range(1))
    pending = make_pending(cards=(failed("chat", 2),))
    reshowing = await reshowing_of(ledger, cards, pending)

    assert await reshowing.wait_and_route(pending.key, NOON + timedelta(seconds=60))
    assert cards.rests == [60.0]
    await ledger.apply(pending.key, ShowFailed("chat", "it is down"))
    assert not await reshowing.wait_and_route(pending.key, NOON)

    ending = ledger.get(pending.key).ending
    assert ending is not None
    assert ending.outcome is OutcomeKind.UNDELIVERABLE
