"""kill -9 of the host between every two steps, and every promise is kept."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.crash.chat import ACKNOWLEDGED, ENDED_WELL, LIVE, that_matter
from tests.crash.telling import Story, Teller
from tests.prove.conftest import SEED, Proof

pytestmark = pytest.mark.timeout(1800)

Make = Callable[[Path], Story]
# How many steps they have at least: some ten less than were counted.
LEAST = {LIVE: 38, ACKNOWLEDGED: 65, ENDED_WELL: 65}


@pytest.mark.parametrize(
    "make", [LIVE, ACKNOWLEDGED, ENDED_WELL], ids=["live", "acknowledge", "exit-0"]
)
async def test_a_host_killed_at_any_step_keeps_every_promise(
    make: Make, tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(tmp_path, 8)
    steps = that_matter(make, await tell.steps(make, LEAST[make]))
    # Of the other two a sample has some, from all over the story: what is told first is the same.
    every = proof.choose(sample=1 if make is LIVE else 4, prove=1, everything=1)
    steps = steps[SEED % every :: every]

    await tell.sweep((make, (step,)) for step in steps)

    assert tell.deaths == len(steps)


@pytest.mark.parametrize("make", [LIVE, ACKNOWLEDGED], ids=["live", "acknowledge"])
async def test_hosts_killed_one_after_another_keep_every_promise(
    make: Make, tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(tmp_path, 8)
    passed = await tell.steps(make, LEAST[make])
    chosen = random.Random(SEED)  # noqa: S311 - a repeatable choice, not a secret
    pairs = proof.choose(sample=12, prove=40, everything=400)

    # What the second host still has to do depends on where the first one died.
    await tell.sweep((make, tuple(chosen.choices(passed, k=2))) for _ in range(pairs))
