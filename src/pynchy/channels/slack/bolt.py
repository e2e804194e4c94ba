"""The Bolt app: every click is acknowledged at once, whatever becomes of it.

An action without a listener is never acknowledged and shows the person an error, so there is one
for everything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from pynchy.channels.slack.ids import PREFIX
from pynchy.channels.slack.inbound import InboundHandler

log = logging.getLogger(__name__)


def make_app(
    client: AsyncWebClient,
    signing_secret: str,
    inbox: InboundHandler,
    who: Callable[[], AuthorizeResult],
) -> AsyncApp:
    """Return an app that passes clicks and messages to the inbox."""
    _quieten()

    async def authorize(**_: Any) -> AuthorizeResult:  # noqa: ANN401 - what Bolt passes
        # Known since the token was checked: no call to Slack may delay an acknowledgement.
        return who()

    app = AsyncApp(
        client=client,
        signing_secret=signing_secret,
        authorize=authorize,
        logger=logging.getLogger("slack_bolt"),
    )
    _listen(app, inbox)
    return app


def _quieten() -> None:
    """Keep what people said out of the log: below these levels whole payloads are written."""
    logging.getLogger("slack_bolt").setLevel(logging.ERROR)
    logging.getLogger("slack_sdk").setLevel(logging.WARNING)


def _listen(app: AsyncApp, inbox: InboundHandler) -> None:
    async def clicked(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        await inbox.clicked(body)

    async def acknowledged(ack: AsyncAck) -> None:
        await ack()

    async def said(event: dict[str, Any]) -> None:
        await inbox.said(event)

    async def ignored() -> None:
        """Events that a person's settings of the app may send us besides."""

    async def failed(error: Exception) -> None:
        log.error("a click or reply could not be taken", exc_info=error)

    everything = re.compile(".*")
    register: list[tuple[Callable[..., Any], Callable[..., Awaitable[None]]]] = [
        (app.action(re.compile(f"^{re.escape(PREFIX)}")), clicked),
        (app.action(everything), acknowledged),
        (app.event("message"), said),
        (app.event(everything), ignored),
    ]
    for decorate, function in register:
        decorate(function)
    app.error(failed)
