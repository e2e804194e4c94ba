"""WhatsApp keeps the promises of every channel, with a child process for each."""

from pathlib import Path

import pytest
from tests.contract.worlds import WhatsAppWorld

from pynchy.testing import Promise, promises


@pytest.mark.parametrize("promise", promises(WhatsAppWorld.cannot), ids=str)
async def test_whatsapp_keeps(promise: Promise, tmp_path: Path) -> None:
    async with WhatsAppWorld(tmp_path) as world:
        await promise.check(world)
