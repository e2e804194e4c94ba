"""The example keeps the promises of every channel, as anybody's channel would be tested."""

from pathlib import Path

import pytest
from tests.plugin_example.world import PostboxWorld

from pynchy.testing import Promise, promises


@pytest.mark.parametrize("promise", promises(PostboxWorld.cannot), ids=str)
async def test_the_postbox_keeps(promise: Promise, tmp_path: Path) -> None:
    async with PostboxWorld(tmp_path) as world:
        await promise.check(world)
