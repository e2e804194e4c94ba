"""The Slack channel: one bot in one workspace, each group in its own chat.

Every click is acknowledged at once, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from pynchy.channels.base import Channel, ReplyHandler
from pynchy.channels.slack.blocks import PREFIX, read_location
from pynchy.channels.slack.card_history import CardHistory, Posting
from pynchy.channels.slack.card_index import CardIndex, Identity, PostedCard
from pynchy.channels.slack.connection import Endpoint, Link, Owner, Socket
from pynchy.channels.slack.inbound import CatchUp, InboundHandler, SlackContext
from pynchy.channels.slack.people import People
from pynchy.channels.slack.posting import OrphanedCards, Poster
from pynchy.channels.slack.render import is_whole
from pynchy.channels.slack.settling import Settler
from pynchy.channels.slack.web import TokenRefused, Web
from pynchy.config import SLACK, Settings, SlackChannelSettings
from pynchy.errors import ConfigError, NotShown
from pynchy.model import Card, Question, RequestId, ShownCard

log = logging.getLogger(__name__)

PACE_SECONDS = 1.0
_DRAIN_SECONDS = 5.0


def make_app(
    client: AsyncWebClient,
    signing_secret: str,
    inbound: InboundHandler,
    who: Callable[[], AuthorizeResult],
) -> AsyncApp:
    """Return an app that passes clicks and messages to the handler."""
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
    _listen(app, inbound)
    return app


def _quieten() -> None:
    """Keep what people said out of the log: below these levels whole payloads are written."""
    logging.getLogger("slack_bolt").setLevel(logging.ERROR)
    logging.getLogger("slack_sdk").setLevel(logging.WARNING)


def _listen(app: AsyncApp, inbound: InboundHandler) -> None:
    async def clicked(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        await inbound.clicked(body)

    async def acknowledged(ack: AsyncAck) -> None:
        await ack()

    async def said(event: dict[str, Any]) -> None:
        await inbound.said(event)

    async def ignored() -> None:
        """Events that a person's settings of the app may send us besides."""

    async def failed(error: Exception) -> None:
        log.error("slack.event_failed", exc_info=error)

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


@dataclass(frozen=True, slots=True)
class Secrets:
    """The tokens; they are in no log and no repr."""

    bot_token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)


def read_secrets(settings: SlackChannelSettings, environ: Mapping[str, str]) -> Secrets:
    """Return the secrets from the environment. Raise ConfigError if one is not there."""
    in_use = [settings.bot_token_env]
    in_use += [settings.app_token_env if settings.mode == "socket" else settings.signing_secret_env]
    missing = [name for name in in_use if not environ.get(name, "").strip()]
    if missing:
        raise ConfigError(
            f"[channels.{SLACK}] needs {' and '.join(missing)} in the environment "
            "(pynchy docs slack says where to find them)"
        )
    names = (settings.bot_token_env, settings.app_token_env, settings.signing_secret_env)
    return Secrets(*(environ.get(name, "").strip() for name in names))


@dataclass(frozen=True, slots=True)
class SlackGroups:
    """Where the groups ask, and who may answer there, as far as the settings say."""

    chats: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()


def read_groups(settings: Settings) -> SlackGroups:
    """Return the chats and people of the groups that ask in Slack."""
    groups = [group for group in settings.groups.values() if SLACK in group.channels]
    return SlackGroups(
        frozenset(group.chat.get(SLACK, "") for group in groups),
        frozenset(user for group in groups for user in group.allowed_users.get(SLACK, ())),
    )


class SlackChannel(Channel):
    """Shows cards in Slack and takes clicks and replies from there."""

    name = SLACK
    # A burst of cards goes out at one message per second, and Slack may ask to wait. When Slack
    # does not answer, that is known much sooner.
    least_send_timeout = 3_600.0

    def __init__(
        self,
        settings: SlackChannelSettings,
        secrets: Secrets,
        pace_seconds: float = PACE_SECONDS,
        audience: SlackGroups | None = None,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._audience = audience or SlackGroups()
        self._web = Web(secrets.bot_token, settings.api_url, pace_seconds)
        self._index = CardIndex()
        self._identity = Identity()
        self._history = CardHistory(
            self._web, self._index, self._identity, self._identify, self._audience.chats
        )
        self._orphans = OrphanedCards(self._web, self._index, self._history)
        self._people = People(self._web, self._audience.users)
        self._poster = Poster(
            self._web,
            self._index,
            self._history,
            self._orphans,
            thread_per_session=settings.thread_per_session,
        )
        self._settler = Settler(self._web, self._poster, self.name)
        self._inbound: InboundHandler | None = None
        self._link: Link | None = None
        self._authorised = AuthorizeResult(enterprise_id=None, team_id=None)

    async def open(self, handler: ReplyHandler) -> None:
        """See Channel. Nobody waits for Slack: it is tried until it works, and `problem` tells."""
        if self.has_jobs:
            return
        self._web.open()
        for posted in handler.open_cards(self.name):
            self._take_up(posted)
        context = SlackContext(self._web, self._index, self._history, self._people, self._identity)
        inbound = InboundHandler(self.name, handler, context)
        catch_up = CatchUp(self._web, self._index, inbound)
        self._inbound = inbound
        self._link = self._make_link(inbound, catch_up)
        self.start_jobs(self._link.run, catch_up.run, self._orphans.run, self._people.run)

    async def close(self) -> None:
        """See Channel. What has been clicked is still taken."""
        await self.stop_jobs()
        if self._link is not None:
            await self._link.close()
        if self._inbound is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._inbound.drain()
        await self._web.close()

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """See Channel."""
        if self._link is not None and self._link.refused:
            raise NotShown(self._link.problem or "Slack refuses the token")
        with self._index.posting(request_id):
            location = await self._poster.post(Posting(jid, request_id, questions, card))
        return str(location)

    def shows_whole(self, questions: tuple[Question, ...], card: Card) -> bool:
        """See Channel. What takes several messages is read in parts, if at all."""
        return is_whole(questions, card)

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """See Channel."""
        posting = Posting(jid, request_id, questions, card)
        if not message_id:
            found = await self._poster.find(posting)
            message_id = str(found) if found is not None else ""
            if not message_id:
                return
        location = read_location(message_id)
        if location is None or card.ending is None:
            log.warning("card.settle_impossible", extra={"id": request_id})
            return
        self._take_up(ShownCard(jid, message_id, request_id, questions, card))
        self._index.end(location)
        await self._settler.settle(posting, location, card.ending)

    def problem(self) -> str | None:
        """See Channel."""
        return None if self._link is None else self._link.problem

    def backlog(self) -> str | None:
        """See Channel."""
        return self._web.backlog()

    def _make_link(self, inbound: InboundHandler, catch_up: CatchUp) -> Link:
        settings, secrets = self._settings, self._secrets
        app = make_app(self._web.client, secrets.signing_secret, inbound, lambda: self._authorised)
        owner = Owner(self._identify, catch_up.wanted)
        if settings.mode == "http":
            return Endpoint(app, settings.http_host, settings.http_port, owner)
        ping_seconds = settings.ping_interval.total_seconds()
        return Socket(app, self._web, secrets.app_token, ping_seconds, owner)

    async def _identify(self) -> None:
        """Check the bot token, and learn who we are."""
        try:
            found = await self._web.call(self._web.client.auth_test)
        except TokenRefused as exc:
            raise TokenRefused(f"the bot token (xoxb-…) does not work: {exc}") from exc
        if not self._identity.is_known:
            self._people.look_ahead()
        self._identity.team_id = str(found.get("team_id") or "")
        self._identity.bot_user_id = str(found.get("user_id") or "")
        self._identity.bot_id = str(found.get("bot_id") or "")
        self._authorised = AuthorizeResult(
            enterprise_id=found.get("enterprise_id"),
            team_id=found.get("team_id"),
            bot_user_id=found.get("user_id"),
            bot_id=found.get("bot_id"),
            bot_token=self._secrets.bot_token,
        )

    def _take_up(self, posted: ShownCard) -> None:
        location = read_location(posted.message_id)
        if location is None:
            log.warning("slack.card_id_unknown", extra={"id": posted.request_id})
            return
        kept = PostedCard.of(posted.jid, posted.request_id, posted.questions, posted.card, location)
        self._index.put(kept)
