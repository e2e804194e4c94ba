"""How fast Slack is called: one message after another in each channel, and as Slack asks.

A message that Slack asked to wait with is sent again when it said so, and none is given up for it.
"""

from __future__ import annotations

import asyncio
import time

from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState

from pynchy.channels.rate_limit import RateLimiter

_MIN_WAIT_SECONDS = 1.0
_MAX_WAIT_SECONDS = 600.0
# Slack counts in its own way: whoever was asked to wait goes on more slowly for a while.
_SLOWER = 1.25
_SLOWEST = 4.0
_FORGET_SECONDS = 60.0


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

    async def __aenter__(self) -> None:
        await super().__aenter__()
        self._began = time.monotonic()
        if self._began - self._ended > _FORGET_SECONDS:
            self._pace_seconds = self._usual_seconds

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if time.monotonic() - self._began >= _MIN_WAIT_SECONDS:
            slower = self._pace_seconds * _SLOWER
            self._pace_seconds = min(slower, self._usual_seconds * _SLOWEST)
        await super().__aexit__(kind, error, trace)
