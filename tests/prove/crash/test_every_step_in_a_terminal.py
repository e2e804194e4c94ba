"""kill -9 of the host, of `pynchy watch` and of the program, at each step of an ask by title."""

from pathlib import Path

import pytest
from tests.crash.telling import Teller
from tests.crash.terminal import DyingWatch, TerminalStory
from tests.prove.conftest import SEED, Proof

pytestmark = pytest.mark.timeout(1800)


async def test_a_host_killed_at_any_step_types_the_answer_once(
    tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(tmp_path, 4)
    steps = await tell.steps(TerminalStory, 20)
    every = proof.choose(sample=6, prove=1, everything=1)

    steps = steps[SEED % every :: every]

    await tell.sweep((TerminalStory, (step,)) for step in steps)

    assert tell.deaths == len(steps)


async def test_a_watch_killed_at_any_step_types_nothing_twice(tmp_path: Path, proof: Proof) -> None:
    tell = Teller(tmp_path, 4)
    steps = await tell.steps(DyingWatch, 9)
    every = proof.choose(sample=3, prove=1, everything=1)
    steps = steps[SEED % every :: every]

    await tell.sweep((DyingWatch, (step,)) for step in steps)

    assert tell.deaths == len(steps)
