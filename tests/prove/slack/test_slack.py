"""Slack: kill -9 at steps of every way to ask and answer, and a Slack that is away for a minute."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.prove.conftest import Proof
from tests.slack.crashing import OTHERS, Kind, Teller, Zygote, from_the_posting
from tests.slack.support import DEPLOY, Lobby

from agent_runner.asking import Question

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


async def test_a_host_killed_at_any_step_keeps_every_promise_however_it_is_answered(
    zygote: Zygote, tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(zygote, tmp_path)
    whole = await asyncio.gather(*(tell.die_at(None, kind) for kind in OTHERS))
    points = [
        (point, kind)
        for kind, passed in zip(OTHERS, whole, strict=True)
        for point in from_the_posting(passed)
    ]
    most = proof.choose(smoke=2 * len(OTHERS), prove=40 * len(OTHERS), everything=len(points))

    await tell.sweep(proof.pick("Slack: steps of a question", points, most, _kind))

    # The order of points varies a little, so that the last ones may not be reached.
    assert tell.deaths > 0.7 * min(most, len(points))
    proof.report("Slack: steps of a question", deaths=tell.deaths)


def _kind(point: tuple[int, Kind]) -> str:
    return point[1].name


async def test_a_slack_that_is_away_for_a_minute_loses_no_reply(
    tmp_path: Path, proof: Proof
) -> None:
    away_seconds = proof.choose(smoke=0.0, prove=60.0, everything=60.0)
    lobby = Lobby(tmp_path, rooms=1)
    try:
        await lobby.start()
        room = lobby.room()
        asked, card = await room.asked(DEPLOY, wait_seconds=600.0)
        other, second = await room.asked(Question("What name?"), wait_seconds=600.0)

        lobby.slack.go_away()
        room.ana.reply(second, "Rosi")
        await asyncio.sleep(away_seconds)
        lobby.slack.come_back()

        # After a minute the next attempt can be as far away.
        assert await asyncio.wait_for(other.answer(), 200) == ((), "Rosi")
        room.ana.press(card, "Yes")
        assert await asyncio.wait_for(asked.answer(), 60) == (("Yes",), None)
        await room.close()
    finally:
        lobby.close()
    proof.report("Slack: away", seconds=away_seconds)
