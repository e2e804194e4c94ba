"""Numbered replies at the real desk: parts are kept, all of them end the question."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.prove.world import KEPT, World
from tests.waiting import until

from pynchy.channels.numbered import (
    Answers,
    ChatMessage,
    Decline,
    NumberedCard,
    aim,
    noted,
    read,
    refusal,
    render_card,
)
from pynchy.errors import AlreadyOver
from pynchy.model import Answer, PendingQuestion, Reply, ShownCard
from pynchy.testing import FakeClock, FakeLauncher

SENDER = Reply("", "Ana", "local")
ASK = {
    "v": 1,
    "type": "ask_user:ask",
    "request_id": "q0",
    "questions": [
        {"question": "Deploy?", "options": ["Yes", "No"]},
        {"question": "Which?", "options": ["Red", "Blue", "Green"], "multiSelect": True},
        {"question": "Why?"},
    ],
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    (tmp_path / "ipc").mkdir()
    world = World(tmp_path, FakeLauncher(), FakeClock())
    await world.start()
    await world.take(KEPT, "q0", json.dumps(ASK).encode())
    await until(lambda: world.answers.open_cards("local"))
    yield world
    await world.stop()


def shown(world: World) -> ShownCard:
    [card] = world.answers.open_cards("local")
    return card


async def say(world: World, text: str) -> PendingQuestion:
    reading = read(
        ChatMessage(text, world.clock.now(), private=True), [NumberedCard.of(shown(world))]
    )
    if isinstance(reading, Decline):
        return await world.answers.decline(aim(reading.card, SENDER), reading.reason)
    assert isinstance(reading, Answers)
    pending = None
    for reply in reading.replies(SENDER):
        pending = await world.answers.answer(reply)
    assert pending is not None
    return pending


async def test_numbered_reply_to_all_questions_ends_them(world: World) -> None:
    assert "Question 3 of 3" in render_card(shown(world).questions, shown(world).card, 4_000)

    pending = await say(world, "1: 2, 2: 1 3, 3: it is Friday")

    assert pending.ending is not None
    assert pending.ending.answers == (
        Answer(("No",)),
        Answer(("Red", "Green")),
        Answer(text="it is Friday"),
    )


async def test_numbered_replies_one_after_another_end_them(world: World) -> None:
    first = await say(world, "yes")
    assert shown(world).answered == {1}
    second = await say(world, "3: why not")
    third = await say(world, "1 2")

    assert noted(first).startswith("Noted. Still to be answered: question 2, 3.")
    assert second.ending is None
    assert third.ending is not None
    assert third.ending.answers[1] == Answer(("Red", "Blue"))


async def test_numbered_second_answer_is_told_what_won(world: World) -> None:
    late = NumberedCard.of(shown(world))
    await say(world, "cancel: not today")

    with pytest.raises(AlreadyOver) as caught:
        await world.answers.answer(aim(late, SENDER))

    told = "This question is over already: declined by Ana (local): not today"
    assert refusal(caught.value) == told
