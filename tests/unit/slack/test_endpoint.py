"""Over HTTP only Slack itself gets through, by its signature."""

import asyncio
import hashlib
import hmac
import io
import json
import resource
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.standins.slack import SlackStandIn
from tests.waiting import DEADLINE_SECONDS, hung_up_on, until

from pynchy import http_connections
from pynchy.channels.slack import connection
from pynchy.channels.slack.channel import Secrets, SlackChannel
from pynchy.config import SlackChannelSettings
from pynchy.model import PendingQuestion, Reply, ShownCard

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - not a real one
HEAD = b"POST /slack/events HTTP/1.1\r\nHost: x\r\n"
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


@pytest.fixture
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may have 160 descriptors, of which Slack's endpoint may use a few."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (160, 160))


@pytest.mark.usefixtures("few_files")
async def test_strangers_who_connect_and_say_nothing_used_up_all_descriptors(url: str) -> None:
    where = urlsplit(url)
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(socket.create_connection((where.hostname, where.port)))
            for _ in range(60)
        ]
        status, _ = await send(url, CHALLENGE, time.time())
        await until(lambda: hung_up_on(crowd) >= 50, "the silent to be sent home")

    assert status == 200


@pytest.mark.usefixtures("few_files")
@pytest.mark.parametrize("said", [b"", b"POST /slack/ev", HEAD + b"Content-Length: 9\r\n\r\n{"])
async def test_a_stranger_who_does_not_get_to_the_point_is_sent_home(
    monkeypatch: pytest.MonkeyPatch, url: str, said: bytes
) -> None:
    monkeypatch.setattr(http_connections, "HEAD_SECONDS", 0.1)
    where = urlsplit(url)

    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(said)
    async with asyncio.timeout(DEADLINE_SECONDS):
        heard = await reader.read()

    writer.close()
    assert b" 200 " not in heard


async def test_a_body_that_is_too_large_or_no_text_is_refused(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.post(url, data=io.BytesIO(bytes(1024 * 1024 + 1))) as response:
            too_large = response.status
        async with session.post(url, data=b"\xff") as response:
            no_text = response.status

    assert (too_large, no_text) == (413, 400)


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
