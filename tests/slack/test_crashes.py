"""kill -9 of the host at every step of a question in Slack: asked, shown, clicked, settled.

Other ways to ask and to answer are swept in tests/prove/slack.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slack.crashing import CLICK, Teller, Zygote, from_the_posting

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


async def test_a_host_killed_at_any_step_of_a_card_keeps_every_promise(
    zygote: Zygote, tmp_path: Path
) -> None:
    tell = Teller(zygote, tmp_path)
    points = from_the_posting(await tell.die_at(None))

    await tell.sweep([(point, CLICK) for point in points])

    # The order of points varies a little, so that the last ones may not be reached.
    assert tell.deaths > 0.8 * len(points)
