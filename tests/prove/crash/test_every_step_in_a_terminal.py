"""kill -9 of the host, of `pynchy watch` and of the program, at each step of an ask by title."""

from pathlib import Path

import pytest
from tests.crash.telling import Teller
from tests.crash.terminal import DyingProgram, DyingWatch, TerminalStory
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


@pytest.mark.parametrize("make", [DyingWatch, DyingProgram])
async def test_a_watch_or_program_killed_at_any_step_gets_nothing_typed_twice(
    make: type[DyingWatch], tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(tmp_path, 4)
    # Which program it is, its title tells.
    steps = (await tell.steps(make, 9))[1 if make is DyingProgram else 0 :]
    every = proof.choose(sample=3, prove=1, everything=1)
    steps = steps[SEED % every :: every]

    await tell.sweep((make, (step,)) for step in steps)

    assert tell.deaths == len(steps)
