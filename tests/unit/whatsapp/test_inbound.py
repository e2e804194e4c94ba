"""How what lies on the queue is judged, also again after a crash."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from pynchy.bridge.cards import card_of
from pynchy.channels.numbered import NumberedCard
from pynchy.channels.whatsapp.inbound import InboundContext, InboundProcessor, WhatsAppGroups
from pynchy.channels.whatsapp.inbound_queue import InboundMessage, InboundQueue
from pynchy.channels.whatsapp.outbox import ChatCard, ChatCards, Outbox
from pynchy.errors import AlreadyOver, InvalidReply
from pynchy.model import (
    Answer,
    Draft,
    Ending,
    OutcomeKind,
    PendingQuestion,
    Question,
    Reply,
    ShownCard,
)
from pynchy.testing import NOON, make_pending

TEAM, ANA = "120363000000000001@g.us", "491701234567@s.whatsapp.net"
CARD = "CARD1"


class Killed(BaseException):
    """The end of a host, which nothing catches."""


class Desk:
    """Takes parts as the real one does, until the host dies."""

    def __init__(self, pending: PendingQuestion) -> None:
        self.pending = pending
        self.dies = False

    async def answer(self, reply: Reply) -> PendingQuestion:
        if self.pending.ending is not None:
            raise AlreadyOver(self.pending.ending)
        if not reply.answers:
            raise InvalidReply("an answer is missing")
        number = (reply.question or 1) - 1
        kept = {draft.question: draft for draft in self.pending.drafts}
        kept[number] = Draft(number, reply.answers[0], reply.by)
        self.pending = replace(self.pending, drafts=tuple(kept.values()))
        if self.dies:
            raise Killed
        return self.pending


class Sender:
    """Notes what would be said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def say(self, _address: str, text: str, _quote: Any = None) -> str:
        self.said.append(text)
        return f"SAID{len(self.said)}"

    async def quiet(self, _addresses: Any) -> None:
        return None


class Host:
    """The parts that judge, on one folder; another one on it is a host that was started again."""

    def __init__(self, home: Path, desk: Desk, *, over: bool = False) -> None:
        self.queue, self.sender, cards, outbox = (
            InboundQueue(home),
            Sender(),
            ChatCards(),
            Outbox(home),
        )
        self.queue.make()
        outbox.load()
        shown = ShownCard(
            TEAM,
            CARD,
            desk.pending.request_id,
            desk.pending.questions,
            card_of(desk.pending),
            desk.pending.answered,
        )
        card = replace(NumberedCard.of(shown), over=over or desk.pending.ending is not None)
        cards.put(ChatCard(card, TEAM, TEAM))
        people = {desk.pending.group: {ANA: "+49 170 1234567"}}
        audience = WhatsAppGroups(frozenset({TEAM}), people=people)
        means: Any = (self.queue, cards, outbox, self.sender, audience, frozenset)
        self.inbound = InboundProcessor("whatsapp", desk, InboundContext(*means))  # type: ignore[arg-type]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.inbound.run())
        yield
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    async def emptied(self) -> None:
        await until(lambda: not self.queue.waiting(), "an empty queue")


def ana_says(text: str, message_id: str = "3EB0", seconds: float = 60.0) -> InboundMessage:
    at = NOON.timestamp() + seconds
    return InboundMessage(
        message_id, (TEAM,), (ANA,), at, text, about=CARD, name="Ana", is_group=True
    )


def two_questions() -> PendingQuestion:
    first, *_ = make_pending().questions
    return make_pending(questions=(first, Question("Tea?", options=first.options)))


async def test_an_answer_that_is_judged_again_after_a_crash_is_not_one_to_the_next_question(
    tmp_path: Path,
) -> None:
    desk = Desk(two_questions())
    before = Host(tmp_path, desk)
    before.queue.put(ana_says("2"))
    desk.dies = True
    with pytest.raises(BaseExceptionGroup):
        await before.inbound.run()
    desk.dies = False

    after = Host(tmp_path, desk)
    async with after.running():
        await after.emptied()

    assert desk.pending.drafts == (Draft(0, Answer(("No",)), "Ana (+491701234567)"),)


ANSWERED = Ending(
    OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), "Ana (+491701234567)", "whatsapp"
)


@pytest.mark.parametrize(("text", "seconds", "told"), [("2", -5, 0), ("2", 5, 1), ("1", 5, 0)])
async def test_who_changes_their_mind_is_told_once_that_it_is_over_but_not_who_repeats_it(
    tmp_path: Path, text: str, seconds: float, told: int
) -> None:
    host = Host(tmp_path, Desk(make_pending(ending=ANSWERED)))
    host.queue.put(ana_says(text, "FIRST", seconds))
    host.queue.put(ana_says(text, "SECOND", seconds))

    async with host.running():
        await host.emptied()
        await until(lambda: len(host.sender.said) >= told, "the words")

    assert ["over already" in said for said in host.sender.said] == [True] * told


async def test_a_message_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.channels.whatsapp.inbound._RETRY_SECONDS", 0.0)
    desk = Desk(two_questions())
    host = Host(tmp_path, desk)
    bad = host.queue.put(ana_says("1", "BAD"))
    read, reads = host.queue.read, []

    def broken(name: str) -> InboundMessage | None:
        if name == bad:
            reads.append(name)
            raise OSError(5, "Input/output error")
        return read(name)

    monkeypatch.setattr(host.queue, "read", broken)
    async with host.running():
        # Once more than it is tried: to find out who is to be told.
        await until(lambda: len(reads) == 7, "all attempts")
        good = host.queue.put(ana_says("2", "GOOD"))
        host.inbound.hear(str(good))
        await until(lambda: host.queue.waiting() == [bad], "the other message")

    assert [draft.answer.selected for draft in desk.pending.drafts] == [("No",)]


async def test_nobody_hears_that_an_answer_was_not_taken_because_the_queue_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pynchy.channels.whatsapp.inbound._RETRY_SECONDS", 0.0)
    host = Host(tmp_path, Desk(two_questions()))
    tries: list[str] = []

    def full(name: str) -> None:
        tries.append(name)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host.queue, "done", full)
    host.queue.put(ana_says("2"))
    async with host.running():
        await until(lambda: len(tries) == 6, "all attempts")
        await until(lambda: host.sender.said, "what was noted")

    assert [text for text in host.sender.said if "not taken" in text] == []
    assert len(host.sender.said) == 1


async def test_an_answer_to_a_card_that_counts_as_failed_counts_while_the_question_is_open(
    tmp_path: Path,
) -> None:
    desk = Desk(make_pending())
    host = Host(tmp_path, desk, over=True)
    host.queue.put(ana_says("2"))

    async with host.running():
        await host.emptied()

    assert [draft.answer.selected for draft in desk.pending.drafts] == [("No",)]
    assert [said for said in host.sender.said if "missing" in said] == []
