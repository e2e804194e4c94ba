"""Published fakes, and the promises of every channel: what a plug-in's author tests against.

    from pynchy.testing import ChannelWorld, promises

    class MyWorld(ChannelWorld): ...      the channel, the service behind it, and its people

    @pytest.mark.parametrize("promise", promises(MyWorld.cannot), ids=str)
    async def test_my_channel_keeps(promise: Promise) -> None:
        async with MyWorld() as world:
            await promise.check(world)

The fakes keep the same contracts as the real ones (tests/contract/ holds both to them), in memory.

fakes             a clock, stores, a channel and a launcher in memory
channel_world     what the suite asks of a channel's surroundings; a reply handler that remembers
channel_host      the host's part: to show, to settle, to wait
channel_promises  what every channel promises
"""

# Others have always found it here.
from datetime import UTC

from pynchy.testing.channel_host import PromiseBroken
from pynchy.testing.channel_promises import PROMISES, Promise, promises
from pynchy.testing.channel_world import (
    Ability,
    ChannelWorld,
    FakeReplyHandler,
    NothingToDo,
    SeenCard,
)
from pynchy.testing.fakes import (
    NOON,
    FakeChannel,
    FakeClock,
    FakeLauncher,
    FakeRunner,
    MemorySessions,
    MemoryStore,
    Sent,
    make_pending,
)

__all__ = [
    "NOON",
    "PROMISES",
    "UTC",
    "Ability",
    "ChannelWorld",
    "FakeChannel",
    "FakeClock",
    "FakeLauncher",
    "FakeReplyHandler",
    "FakeRunner",
    "MemorySessions",
    "MemoryStore",
    "NothingToDo",
    "Promise",
    "PromiseBroken",
    "SeenCard",
    "Sent",
    "make_pending",
    "promises",
]
