"""kill -9 of the host or of its child at the steps that matter; every step in tests/prove."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slack.crashing import Zygote
from tests.whatsapp.crashing import CHILD, HOST, Teller, number_of

# The card is begun first, its ending second; the desk decides between.
STEPS = [
    (HOST, "after begin", 0),
    (HOST, "after ask", 0),
    (HOST, "before answer", 0),
    (HOST, "after answer", 0),
    (HOST, "after ask", 1),
    (CHILD, "after ask", 0),
    (CHILD, "before answer", 0),
    (CHILD, "after ask", 1),
]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote("tests.whatsapp.dying_host")
    yield zygote
    zygote.close()


async def test_a_host_or_child_killed_at_a_step_keeps_every_promise(
    zygote: Zygote, tmp_path: Path
) -> None:
    tell = Teller(zygote, tmp_path)
    passed = await tell.die_at(None)

    await tell.sweep([(who, number_of(passed, step, nth)) for who, step, nth in STEPS])

    # What the host and its child do side by side comes in no fixed order, so a step may be missed.
    assert tell.deaths >= len(STEPS) - 2
