"""kill -9 of the host at a few steps of a question; at every step in tests/prove/crash."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.crash.chat import ACKNOWLEDGED, LIVE, that_matter
from tests.crash.slack import CLICK, from_the_posting, told_by
from tests.crash.telling import Step, Story, Teller

SAMPLES = 4


async def sample(
    tell: Teller,
    make: Callable[[Path], Story],
    choose: Callable[[list[Step]], list[Step]],
) -> None:
    steps = choose(await tell.die_at(make))
    some = steps[:: len(steps) // SAMPLES]

    await tell.sweep((make, (step,)) for step in some)

    assert tell.deaths == len(some)


@pytest.mark.parametrize("make", [LIVE, ACKNOWLEDGED], ids=["live", "late"])
async def test_a_host_that_is_killed_keeps_every_promise(
    make: Callable[[Path], Story], tmp_path: Path
) -> None:
    await sample(Teller(tmp_path, 4), make, lambda passed: that_matter(make, passed))


async def test_a_host_that_is_killed_over_a_card_in_slack_keeps_every_promise(
    tmp_path: Path,
) -> None:
    await sample(Teller(tmp_path, 4), told_by(CLICK), from_the_posting)
