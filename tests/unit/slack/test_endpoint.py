"""Over HTTP only Slack itself gets through, by its signature."""

import hashlib
import hmac
import json
import socket
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from tests.standins.slack import SlackStandIn
from tests.waiting import until

from pynchy.channels.slack import connection
from pynchy.channels.slack.channel import Secrets, SlackChannel
from pynchy.config import SlackChannelSettings
from pynchy.model import PendingQuestion, Reply, ShownCard

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - not a real one
CHALLENGE = json.dumps({"type": "url_verification", "challenge": "c1", "token": "t"})


class NoDesk:
    async def answer(self, reply: Reply) -> PendingQuestion:
        raise NotImplementedError(reply)

    async def decline(self, reply: Reply, reason: str | None = None) -> PendingQuestion:
        raise NotImplementedError(reply, reason)

    def open_cards(self, channel: str) -> list[ShownCard]:
        del channel
        return []


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
async def url() -> AsyncIterator[str]:
    port = free_port()
    with SlackStandIn() as slack:
        settings = SlackChannelSettings(api_url=slack.url, mode="http", http_port=port)
        secrets = Secrets(slack.bot_token, signing_secret=SIGNING_SECRET)
        channel = SlackChannel(settings, secrets)
        await channel.open(NoDesk())
        await until(lambda: channel.problem() is None, "the endpoint")
        yield f"http://127.0.0.1:{port}/slack/events"
        await channel.close()


async def send(url: str, body: str, at: float, signed: str | None = None) -> tuple[int, str]:
    base = f"v0:{int(at)}:{signed or body}".encode()
    signature = "v0=" + hmac.new(SIGNING_SECRET.encode(), base, hashlib.sha256).hexdigest()
    headers = {
        "X-Slack-Signature": signature,
        "X-Slack-Request-Timestamp": str(int(at)),
        "Content-Type": "application/json",
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as response,
    ):
        return response.status, await response.text()


async def test_slack_is_heard_though_we_cannot_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_POLL_SECONDS", 0.05)
    port = free_port()
    with SlackStandIn() as slack:
        settings = SlackChannelSettings(api_url=slack.url, mode="http", http_port=port)
        channel = SlackChannel(settings, Secrets(slack.bot_token, signing_secret=SIGNING_SECRET))
        await channel.open(NoDesk())
        await until(lambda: channel.problem() is None, "the endpoint")
        slack.go_away()
        told = await until(channel.problem, "the problem to be told")

        status, _ = await send(f"http://127.0.0.1:{port}/slack/events", CHALLENGE, time.time())

        assert status == 200
        assert "cannot be reached" in told
        slack.come_back()
        await until(lambda: channel.problem() is None, "no problem any more")
        await channel.close()


async def test_slack_is_let_in(url: str) -> None:
    status, text = await send(url, CHALLENGE, time.time())

    assert status == 200
    assert "c1" in text


async def test_a_changed_body_is_refused(url: str) -> None:
    status, _ = await send(url, CHALLENGE.replace("c1", "c2"), time.time(), signed=CHALLENGE)

    assert status == 401


async def test_an_old_request_is_refused(url: str) -> None:
    status, _ = await send(url, CHALLENGE, time.time() - 600)

    assert status == 401


async def test_a_request_without_a_signature_is_refused(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.post(url, data=CHALLENGE) as response:
        assert response.status == 401
