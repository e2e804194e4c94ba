"""What keeps Slack able to reach us outlives whatever goes wrong in it."""

import asyncio
import re
import socket
from collections.abc import Iterator

import pytest
from tests.standins.slack import SlackStandIn
from tests.unit.slack.test_endpoint import NoDesk
from tests.waiting import until

from pynchy.channels.slack import connection
from pynchy.channels.slack.channel import Secrets, SlackChannel
from pynchy.channels.slack.connection import Link
from pynchy.channels.slack.web import TokenRefused
from pynchy.config import SlackChannelSettings


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(50)
        yield f"http://127.0.0.1:{hole.getsockname()[1]}/api/"


async def test_nobody_waits_for_a_slack_that_does_not_answer(black_hole: str) -> None:
    settings = SlackChannelSettings(api_url=black_hole)
    channel = SlackChannel(settings, Secrets("xoxb-1", "xapp-1"))

    await channel.open(NoDesk())

    assert channel.problem() == "not connected yet"
    await channel.close()


async def test_the_ticket_of_a_socket_that_does_not_open_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with SlackStandIn() as slack:
        slack.sockets.closed = True
        settings = SlackChannelSettings.model_validate(
            {"api_url": slack.url, "ping_interval": "100ms"}
        )
        channel = SlackChannel(settings, Secrets(slack.bot_token, slack.app_token))

        await channel.open(NoDesk())
        await until(lambda: "Failed to connect" in caplog.text, "the failure")
        await channel.close()

    assert "ticket=…" in caplog.text
    assert not re.search(r"ticket=\w", caplog.text)
    assert slack.bot_token not in caplog.text
    assert slack.app_token not in caplog.text


class Shaky(Link):
    """Fails in another way each time."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.failures = list(failures)
        self.told: list[str | None] = []
        self.opened = asyncio.Event()

    async def connect(self) -> None:
        self.told.append(self.problem)
        if self.failures:
            raise self.failures.pop(0)
        self.opened.set()

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        raise OSError("cannot be closed either")


async def test_a_link_is_tried_again_whatever_it_fails_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_RETRY_SECONDS", 0.0)
    shaky = Shaky(TokenRefused("wrong token"), ValueError("what?"))

    running = asyncio.create_task(shaky.run())
    await asyncio.wait_for(shaky.opened.wait(), 30)
    await until(lambda: shaky.problem is None, "no problem")
    running.cancel()

    assert shaky.told == ["not connected yet", "wrong token", "the connection failed (ValueError)"]
    assert not shaky.refused
