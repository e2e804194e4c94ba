"""Calls to Slack's Web API: paced, retried, and every failure told in words.

Whatever goes wrong is a ChannelUnavailable. ReplyLost is the one after which a message may have
been posted all the same.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from pynchy.channels.slack import limits
from pynchy.channels.slack.pace import RetryAfterHandler, SlackRateLimiter
from pynchy.channels.slack.payloads import dict_in, dicts_in
from pynchy.channels.slack.plain import in_plain_words
from pynchy.channels.slack.render import SlackMessage
from pynchy.errors import ChannelUnavailable

log = logging.getLogger(__name__)

CALL_SECONDS = 6.0
_ATTEMPTS = 3
_RETRY_SECONDS = 0.5
_RATE_LIMIT_RETRIES = 50
_SERVER_ERROR = 500
_PAGE = 200

# A text/plain reply makes slack_sdk raise AttributeError.
_FOREIGN = (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, AttributeError)
_TOKEN_ERRORS = {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"}
_WORDS = {
    "channel_not_found": "Slack knows no such channel, or the bot is not in it: /invite the bot",
    "not_in_channel": "the bot is not in the channel: /invite it there",
    "is_archived": "the channel is archived",
    "missing_scope": "the app lacks a scope: compare it with `pynchy slack manifest`",
    "ratelimited": "Slack asks to slow down, again and again",
}


class ReplyLost(ChannelUnavailable):
    """Slack did not answer, so it is not known whether it did what was asked."""


class Refused(ChannelUnavailable):
    """Slack will not do it; `error` is Slack's own word for why."""

    def __init__(self, words: str, error: str) -> None:
        super().__init__(words)
        self.error = error


class TokenRefused(ChannelUnavailable):
    """Slack refuses the token; trying again does not help."""


class Web:
    """The Web API with one bot token. `pace_seconds` lies between two messages to a channel."""

    def __init__(self, token: str, api_url: str, pace_seconds: float) -> None:
        self._token = token
        self._api_url = api_url
        self._pace_seconds = pace_seconds
        self._limiters: dict[str, SlackRateLimiter] = {}
        self._session: aiohttp.ClientSession | None = None
        self.client = self._make_client(None)

    def open(self) -> None:
        """Keep connections from now on; needs a running loop."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_SECONDS))
        self.client = self._make_client(self._session)

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()

    async def call(
        self, method: Callable[..., Awaitable[AsyncSlackResponse]], **arguments: object
    ) -> dict[str, Any]:
        """Call something that may be done twice, until it works or Slack refuses it."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._once(method, **arguments)
            except ReplyLost:
                if attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(_RETRY_SECONDS * 2**attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def post(
        self, channel: str, thread: str | None, message: SlackMessage, **more: object
    ) -> tuple[str, str]:
        """Post once. Return the conversation and the timestamp. Raise ReplyLost if in doubt."""
        message = self._fitting(message)
        async with self._limiters.setdefault(
            channel, SlackRateLimiter(self._pace_seconds, ReplyLost)
        ):
            posted = await self._once(
                self.client.chat_postMessage,
                channel=channel,
                thread_ts=thread,
                text=message.text,
                blocks=message.blocks,
                mrkdwn=False,
                unfurl_links=False,
                unfurl_media=False,
                **more,
            )
        return str(posted.get("channel", channel)), str(posted["ts"])

    async def update(self, channel: str, ts: str, message: SlackMessage) -> None:
        """Change one of our own messages; the same again changes nothing."""
        message = self._fitting(message)
        await self.call(
            self.client.chat_update,
            channel=channel,
            ts=ts,
            text=message.text,
            blocks=message.blocks,
            parse="none",
        )

    async def messages(
        self,
        method: Callable[..., Awaitable[AsyncSlackResponse]],
        most_pages: int | None = None,
        **arguments: object,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of a conversation or thread, page by page."""
        for _ in itertools.count() if most_pages is None else range(most_pages):
            page = await self.call(method, limit=_PAGE, **arguments)
            for message in dicts_in(page, "messages"):
                yield message
            cursor = dict_in(page, "response_metadata").get("next_cursor")
            if not cursor:
                return
            arguments["cursor"] = cursor

    async def scopes(self) -> frozenset[str] | None:
        """Return what the bot token allows; None if Slack does not say."""
        try:
            response = await self.client.auth_test()
        except SlackApiError as exc:
            raise _in_words(exc) from exc
        except _FOREIGN as exc:
            raise ReplyLost(f"Slack cannot be reached ({type(exc).__name__})") from exc
        headers = {name.lower(): value for name, value in response.headers.items()}
        granted = str(headers.get("x-oauth-scopes") or "")
        return frozenset(scope.strip() for scope in granted.split(",")) if granted else None

    async def _once(
        self, method: Callable[..., Awaitable[AsyncSlackResponse]], **arguments: object
    ) -> dict[str, Any]:
        try:
            response = await method(**arguments)
        except SlackApiError as exc:
            raise _in_words(exc) from exc
        except _FOREIGN as exc:
            raise ReplyLost(f"Slack cannot be reached ({type(exc).__name__})") from exc
        if not isinstance(response.data, dict):
            raise ReplyLost("Slack answered with something that is not JSON")
        return response.data

    def _fitting(self, message: SlackMessage) -> SlackMessage:
        """Return the message, or as much of it in plain words as Slack takes."""
        wrong = limits.violations(message.text, message.blocks)
        if not wrong:
            return message
        log.error("a card does not fit into Slack's limits", extra={"why": "; ".join(wrong[:5])})
        return in_plain_words(message)

    def _make_client(self, session: aiohttp.ClientSession | None) -> AsyncWebClient:
        return AsyncWebClient(
            token=self._token,
            base_url=self._api_url,
            timeout=int(CALL_SECONDS),
            session=session,
            retry_handlers=[RetryAfterHandler(max_retry_count=_RATE_LIMIT_RETRIES)],
        )


def _in_words(exc: SlackApiError) -> ChannelUnavailable:
    response = exc.response
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
    data = getattr(response, "data", None)
    error = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status >= _SERVER_ERROR or not error:
        return ReplyLost(f"Slack has trouble of its own (HTTP {status})")
    if error in _TOKEN_ERRORS:
        return TokenRefused(f"Slack refuses the token: {error}")
    return Refused(_WORDS.get(error, f"Slack refuses: {error}"), error)
