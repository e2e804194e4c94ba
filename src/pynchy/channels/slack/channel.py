"""The Slack channel: one bot in one workspace, each group in its own chat.

Cards go out over the Web API, clicks and replies come in over the socket. What an earlier host
showed is taken up again, and what was said while nobody listened is read when the socket is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from slack_bolt.authorization import AuthorizeResult

from pynchy.channels.base import Channel, ReplyDesk
from pynchy.channels.slack.bolt import make_app
from pynchy.channels.slack.book import Book, Shown
from pynchy.channels.slack.catchup import CatchUp
from pynchy.channels.slack.connection import Owner, Socket
from pynchy.channels.slack.ids import read_place
from pynchy.channels.slack.inbox import Inbox, Means
from pynchy.channels.slack.leftovers import Leftovers
from pynchy.channels.slack.link import Link
from pynchy.channels.slack.listening import Endpoint
from pynchy.channels.slack.marks import Identity
from pynchy.channels.slack.people import People
from pynchy.channels.slack.posting import Poster
from pynchy.channels.slack.recall import Recall
from pynchy.channels.slack.search import Posting, Search
from pynchy.channels.slack.settling import Settler
from pynchy.channels.slack.web import TokenRefused, Web
from pynchy.config import SLACK, SlackChannelSettings
from pynchy.errors import ChannelUnavailable, ConfigError
from pynchy.model import Card, Question, RequestId, ShownCard

log = logging.getLogger(__name__)

PACE_SECONDS = 1.0
_DRAIN_SECONDS = 5.0


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
            "(docs/slack.md says where to find them)"
        )
    names = (settings.bot_token_env, settings.app_token_env, settings.signing_secret_env)
    return Secrets(*(environ.get(name, "").strip() for name in names))


@dataclass(frozen=True, slots=True)
class Audience:
    """Where the groups ask, and who may answer there, as far as the settings say."""

    chats: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()


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
        audience: Audience | None = None,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._audience = audience or Audience()
        self._web = Web(secrets.bot_token, settings.api_url, pace_seconds)
        self._book = Book()
        self._identity = Identity()
        search = Search(self._web, self._identity, self._identify)
        self._leftovers = Leftovers(self._web, self._book, search)
        self._people = People(self._web, self._audience.users)
        self._poster = Poster(
            self._web,
            self._book,
            search,
            self._leftovers,
            thread_per_session=settings.thread_per_session,
        )
        self._settler = Settler(self._web, self._poster, self.name)
        self._inbox: Inbox | None = None
        self._link: Link | None = None
        self._running: asyncio.Task[None] | None = None
        self._authorised = AuthorizeResult(enterprise_id=None, team_id=None)

    async def open(self, desk: ReplyDesk) -> None:
        """See Channel. Nobody waits for Slack: it is tried until it works, and `problem` tells."""
        self._web.open()
        for shown in desk.open_cards(self.name):
            self._take_up(shown)
        recall = Recall(self._web, self._book, self._identity, self._audience.chats)
        means = Means(self._web, self._book, recall, self._people, self._identity)
        inbox = Inbox(self.name, desk, means)
        catch_up = CatchUp(self._web, self._book, inbox)
        self._inbox = inbox
        self._link = self._make_link(inbox, catch_up)
        jobs = (self._link.run, catch_up.run, self._leftovers.run, self._people.run)
        self._running = asyncio.create_task(_run(*jobs), name="slack")

    async def close(self) -> None:
        """See Channel. What has been clicked is still taken."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        if self._link is not None:
            await self._link.close()
        if self._inbox is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._inbox.drain()
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
            raise ChannelUnavailable(self._link.problem or "Slack refuses the token")
        with self._book.posting(request_id):
            place = await self._poster.post(Posting(jid, request_id, questions, card))
        return str(place)

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
        place = read_place(message_id)
        if place is None or card.ending is None:
            log.warning("a card cannot be settled", extra={"id": request_id})
            return
        self._take_up(ShownCard(jid, message_id, request_id, questions, card))
        self._book.end(place)
        await self._settler.settle(Posting(jid, request_id, questions, card), place, card.ending)

    def problem(self) -> str | None:
        """See Channel."""
        if self._running is not None and self._running.done():
            return "it has stopped by itself; restart pynchy"
        return None if self._link is None else self._link.problem

    def _make_link(self, inbox: Inbox, catch_up: CatchUp) -> Link:
        settings, secrets = self._settings, self._secrets
        app = make_app(self._web.client, secrets.signing_secret, inbox, lambda: self._authorised)
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

    def _take_up(self, shown: ShownCard) -> None:
        place = read_place(shown.message_id)
        if place is None:
            log.warning("a card has an id of another kind", extra={"id": shown.request_id})
            return
        kept = Shown.of(shown.jid, shown.request_id, shown.questions, shown.card, place)
        self._book.put(kept)


async def _run(*jobs: Callable[[], Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for job in jobs:
            tasks.create_task(job(), name="slack")
