"""kill -9 of the host or of its child at the steps that matter; every step in tests/prove."""

from functools import partial
from pathlib import Path

from tests.crash.dying import CHILD, HOST
from tests.crash.telling import Step, Teller
from tests.crash.whatsapp import WhatsAppStory

# The card is begun first, its ending second; the desk decides between.
STEPS = [
    (HOST, Step("after begin", 1)),
    (HOST, Step("after ask", 1)),
    (HOST, Step("before answer", 1)),
    (HOST, Step("after answer", 1)),
    (HOST, Step("after ask", 2)),
    (CHILD, Step("after ask", 1)),
    (CHILD, Step("before answer", 1)),
    (CHILD, Step("after ask", 2)),
]


async def test_a_host_or_child_killed_at_a_step_keeps_every_promise(tmp_path: Path) -> None:
    tell = Teller(tmp_path, 3)

    await tell.sweep((partial(WhatsAppStory, victim=victim), (step,)) for victim, step in STEPS)

    assert tell.deaths == len(STEPS)
