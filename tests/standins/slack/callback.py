"""Slack without Socket Mode: what happens is posted to the app's address, with a signature."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp
from tests.standins.slack.limits import Json

_SECONDS = 3.0
_OK = 200


@dataclass(frozen=True, slots=True)
class Callback:
    """Where the app listens."""

    url: str
    signing_secret: str = field(repr=False)

    async def send(self, envelope: Json) -> bool:
        """Post what is in the envelope. Return whether the app has thanked for it in time."""
        kind, body = "application/json", json.dumps(envelope["payload"])
        if envelope["type"] == "interactive":
            kind, body = "application/x-www-form-urlencoded", urlencode({"payload": body})
        headers = {"Content-Type": kind, **self._signed(body, int(time.time()))}
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self.url, data=body, headers=headers) as response,
            ):
                return response.status == _OK
        except (aiohttp.ClientError, TimeoutError):
            return False

    def _signed(self, body: str, at: int) -> dict[str, str]:
        signed = hmac.new(self.signing_secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256)
        return {
            "X-Slack-Signature": f"v0={signed.hexdigest()}",
            "X-Slack-Request-Timestamp": str(at),
        }
