"""A Slack that is away for a minute."""

import asyncio
from pathlib import Path

import pytest
from tests.prove.conftest import Proof
from tests.slack.support import DEPLOY, Lobby

from agent_runner.asking import Question

pytestmark = pytest.mark.timeout(1800)


async def test_a_slack_that_is_away_for_a_minute_loses_no_reply(
    tmp_path: Path, proof: Proof
) -> None:
    away_seconds = proof.choose(sample=0.0, prove=60.0, everything=60.0)
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
