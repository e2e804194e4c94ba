"""WhatsApp: kill -9 of the host and of its child at every step of a question."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.prove.conftest import Proof
from tests.slack.crashing import Zygote
from tests.whatsapp.crashing import CHILD, HOST, Teller

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote("tests.whatsapp.dying_host")
    yield zygote
    zygote.close()


async def test_a_host_or_child_killed_at_any_step_keeps_every_promise(
    zygote: Zygote, tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(zygote, tmp_path)
    passed = await tell.die_at(None)
    points = [(who, n) for who in (HOST, CHILD) for n in range(1, len(passed) + 1)]
    most = proof.choose(smoke=2, prove=len(points), everything=len(points))

    await tell.sweep(proof.pick("WhatsApp: steps of a question", points, most, _victim))

    # After the last steps there may be nothing left to do, and the order varies a little.
    assert tell.deaths > 0.7 * min(most, len(points))
    proof.report("WhatsApp: steps of a question", deaths=tell.deaths)


def _victim(point: tuple[str, int]) -> str:
    return point[0]
