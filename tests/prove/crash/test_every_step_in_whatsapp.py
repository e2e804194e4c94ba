"""kill -9 of the host and of its child at every step of a question in WhatsApp."""

from functools import partial
from pathlib import Path

import pytest
from tests.crash.dying import CHILD, HOST
from tests.crash.telling import Step, Teller
from tests.crash.whatsapp import WhatsAppStory
from tests.prove.conftest import Proof

pytestmark = pytest.mark.timeout(1800)


async def test_a_host_or_child_killed_at_any_step_keeps_every_promise(
    tmp_path: Path, proof: Proof
) -> None:
    tell = Teller(tmp_path, 3)
    makes = {victim: partial(WhatsAppStory, victim=victim) for victim in (HOST, CHILD)}
    points = [(victim, step) for victim, make in makes.items() for step in await tell.die_at(make)]
    most = proof.choose(sample=8, prove=len(points), everything=len(points))
    picked = proof.pick("WhatsApp: steps of a question", points, most, _victim)

    await tell.sweep((makes[victim], (step,)) for victim, step in picked)

    assert tell.deaths == len(picked)
    proof.report("WhatsApp: steps of a question", deaths=tell.deaths)


def _victim(point: tuple[str, Step]) -> str:
    return point[0]
