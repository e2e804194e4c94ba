"""Calls to Slack's Web API: paced, retried, and every failure told in words.

One message after another in each channel, and as slowly as Slack asks.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from pynchy.channels.rate_limit import RateLimiter, backlog_of
from pynchy.channels.slack import blocks, limits
from pynchy.channels.slack.blocks import chunks
from pynchy.channels.slack.limits import Block, Piece, Role, pack
from pynchy.channels.slack.payloads import dict_in, dicts_in
from pynchy.channels.slack.render import SlackMessage
from pynchy.errors import CannotShow, ChannelUnavailable, NotShown
from pynchy.model import GroupName, Urgency

_MIN_WAIT_SECONDS = 1.0
_MAX_WAIT_SECONDS = 600.0
# Slack counts in its own way: whoever was asked to wait goes on more slowly for a while.
_SLOWER = 1.25
_SLOWEST = 4.0
_FORGET_SECONDS = 60.0

_HOW = "This card could not be shown with buttons: please reply in the thread."

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
# What Slack may have done all the same.
_TROUBLE = {"internal_error", "fatal_error", "service_unavailable", "request_timeout"}
_WORDS = {
    "channel_not_found": "Slack knows no such channel, or the bot is not in it: /invite the bot",
    "not_in_channel": "the bot is not in the channel: /invite it there",
    "is_archived": "the channel is archived",
    "missing_scope": "the app lacks a scope: compare it with `pynchy slack manifest`",
    "ratelimited": "Slack asks to slow down, again and again",
}


class RetryAfterHandler(AsyncRateLimitErrorRetryHandler):
    """Waits as long as Slack says; the library's own would add up to a second each time."""

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> None:
        """Return when the call may be made again."""
        del request, error
        state.next_attempt_requested = True
        await asyncio.sleep(wait_seconds(response))


def wait_seconds(response: HttpResponse | None) -> float:
    """Return how long Slack asks to wait; a second if it does not say, or not so that it helps."""
    headers = {} if response is None else response.headers
    named = [each for name, each in headers.items() if name.lower() == "retry-after"]
    said = str(named[0][0]).strip() if named and named[0] else ""
    if not (said.isascii() and said.isdigit()):
        return _MIN_WAIT_SECONDS
    return max(_MIN_WAIT_SECONDS, min(float(said), _MAX_WAIT_SECONDS))


class SlackRateLimiter(RateLimiter):
    """One after another, and for a while more slowly when Slack has asked to wait."""

    def __init__(self, pace_seconds: float, lost: type[Exception]) -> None:
        super().__init__("Slack", pace_seconds, lost)
        self._usual_seconds = pace_seconds
        self._began = float("inf")

    def _begin(self) -> None:
        self._began = time.monotonic()
        if self._began - self._ended > _FORGET_SECONDS:
            self._pace_seconds = self._usual_seconds

    def _end(self, error: BaseException | None) -> None:
        if time.monotonic() - self._began >= _MIN_WAIT_SECONDS:
            slower = self._pace_seconds * _SLOWER
            self._pace_seconds = min(slower, self._usual_seconds * _SLOWEST)
        super()._end(error)


def in_plain_words(message: SlackMessage) -> SlackMessage:
    """Return what the message says, within Slack's limits."""
    told = "\n".join(text for block in message.blocks for text in _texts(block))
    sections = [blocks.section(part) for part in chunks(told, limits.SECTION)]
    how = [blocks.context(_HOW)] if any(map(_is_control, message.blocks)) else []
    first, *_ = pack(Piece(Role.ASKED, (block,)) for block in [*how, *sections])
    return SlackMessage(blocks.fallback(message.text), first.blocks(), message.question)


def _is_control(block: Block) -> bool:
    return block.get("type") in {"actions", "input"} or "accessory" in block


def _texts(value: object) -> Iterator[str]:
    """Yield the texts within a block, in order; a button's own words are no part of it."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    if not isinstance(value, dict) or value.get("type") in {"button", "plain_text_input"}:
        return
    if isinstance(text := value.get("text"), str):
        yield text
        return
    for name, item in value.items():
        if name != "placeholder":
            yield from _texts(item)


class ReplyLost(ChannelUnavailable):
    """Slack did not answer, so it is not known whether it did what was asked."""


class Unreached(NotShown):
    """Slack cannot have heard of it: no connection was made."""


class Refused(CannotShow):
    """Slack will not do it; `error` is Slack's own word for why."""

    def __init__(self, words: str, error: str) -> None:
        super().__init__(words)
        self.error = error


class TooFast(NotShown):
    """Slack asks to wait, for longer than a call may take."""


class TokenRefused(NotShown):
    """Slack refuses the token, until somebody fixes that."""


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
            except (ReplyLost, Unreached):
                if attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(_RETRY_SECONDS * 2**attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def post(
        self,
        channel: str,
        thread: str | None,
        message: SlackMessage,
        *,
        group: GroupName,
        urgency: Urgency = Urgency.NORMAL,
        **more: object,
    ) -> tuple[str, str]:
        """Post once, when it is the group's turn. Raise ReplyLost if in doubt.

        Return the conversation and the timestamp.
        """
        message = self._fitting(message)
        limiter = self._limiters.setdefault(
            channel, SlackRateLimiter(self._pace_seconds, ReplyLost)
        )
        async with limiter.turn(group, urgency):
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

    def backlog(self) -> str | None:
        """Say that messages wait long for their turn; None if they do not."""
        return backlog_of(self._limiters.items())

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
        except aiohttp.ClientConnectorError as exc:
            raise Unreached(f"Slack cannot be reached ({type(exc).__name__})") from exc
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
        log.error("slack.card_over_limits", extra={"why": "; ".join(wrong[:5])})
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
    if status >= _SERVER_ERROR or not error or error in _TROUBLE:
        return ReplyLost(f"Slack has trouble of its own ({error or f'HTTP {status}'})")
    if error == "ratelimited":
        return TooFast(_WORDS[error])
    if error in _TOKEN_ERRORS:
        return TokenRefused(f"Slack refuses the token: {error}")
    return Refused(_WORDS.get(error, f"Slack refuses: {error}"), error)
