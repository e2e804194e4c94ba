"""kill -9 at the steps of every way to ask and answer in Slack."""

import asyncio
from pathlib import Path

import pytest
from tests.crash.slack import CLICK, OTHERS, Kind, from_the_posting, told_by
from tests.crash.telling import Step, Teller
from tests.prove.conftest import Proof

pytestmark = pytest.mark.timeout(1800)


async def test_a_host_killed_at_any_step_of_a_card_keeps_every_promise(tmp_path: Path) -> None:
    tell = Teller(tmp_path, 4)
    steps = from_the_posting(await tell.steps(told_by(CLICK), CLICK.least))

    await tell.sweep((told_by(CLICK), (step,)) for step in steps)

    assert tell.deaths == len(steps)


async def test_a_host_killed_at_any_step_keeps_every_promise_however_it_is_answered(
    tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(tmp_path, 4)
    whole = await asyncio.gather(*(tell.steps(told_by(kind), kind.least) for kind in OTHERS))
    points = [
        (kind, step)
        for kind, passed in zip(OTHERS, whole, strict=True)
        for step in from_the_posting(passed)
    ]
    most = proof.choose(sample=2 * len(OTHERS), prove=40 * len(OTHERS), everything=len(points))
    picked = proof.pick("Slack: steps of a question", points, most, _kind)

    await tell.sweep((told_by(kind), (step,)) for kind, step in picked)

    assert tell.deaths == len(picked)
    proof.report("Slack: steps of a question", deaths=tell.deaths)


def _kind(point: tuple[Kind, Step]) -> str:
    return point[0].name
