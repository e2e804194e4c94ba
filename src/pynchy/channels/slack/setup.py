"""The app's manifest, and checks that tokens, scopes and chats are right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pynchy.channels.slack import blocks
from pynchy.channels.slack.blocks import read_chat
from pynchy.channels.slack.channel import PACE_SECONDS, Secrets
from pynchy.channels.slack.plugin import CHAT
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.web import Refused, TokenRefused, Web
from pynchy.config import SLACK, Settings, SlackChannelSettings
from pynchy.errors import ChannelUnavailable
from pynchy.findings import Finding, Status, fine, problem
from pynchy.model import GroupName

SCOPES = (
    "channels:history",
    "channels:read",
    "chat:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:write",
    "reactions:write",
    "users:read",
)
# Not app_mention: it would tell of the same message a second time.
EVENTS = ("message.channels", "message.groups", "message.im")
_NEW_APP = "https://api.slack.com/apps?new_app=1&manifest_json="

_SECONDS = 20.0
# A rotated token has another head.
_BOT_TOKENS = ("xoxb-", "xoxe.xoxb-")
_CHECK_CHAT = "see whether the chat is the right one and the bot may post there"
_INVITE = "invite the bot there (/invite @pynchy)"
_FIXES = {
    "not_in_channel": _INVITE,
    "channel_not_found": f"copy the channel's id again, and {_INVITE}",
    "user_not_found": "copy the member ID of the person again",
    "is_archived": "choose another channel, or bring this one back",
    "missing_scope": "compare the app with `pynchy slack manifest`, and reinstall it",
    "thread_not_found": "copy the thread's timestamp again, or ask in the channel itself",
}
_REINSTALL = "compare the app with `pynchy slack manifest`, and reinstall it to the workspace"


def manifest(request_url: str | None = None) -> dict[str, Any]:
    """Return the app's manifest: for Socket Mode, or for that public address."""
    url = {"request_url": request_url} if request_url else {}
    return {
        "display_information": {
            "name": "pynchy",
            "description": "Carries questions from AI agents to people, and the answers back.",
        },
        "features": {"bot_user": {"display_name": "pynchy", "always_online": True}},
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**url, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **url},
            "org_deploy_enabled": False,
            "socket_mode_enabled": request_url is None,
            "token_rotation_enabled": False,
        },
    }


def new_app_link(made: dict[str, Any]) -> str:
    """Return the address that opens Slack's page for a new app with the manifest filled in."""
    return _NEW_APP + quote(json.dumps(made, separators=(",", ":")), safe="")


def examine(
    table: SlackChannelSettings, secrets: Secrets, settings: Settings, *, post: bool
) -> list[Finding]:
    """Return everything that there is to say; nothing here takes long or raises."""
    return asyncio.run(_examine(table, secrets, settings, post=post))


async def _examine(
    table: SlackChannelSettings, secrets: Secrets, settings: Settings, *, post: bool
) -> list[Finding]:
    web = Web(secrets.bot_token, table.api_url, PACE_SECONDS)
    web.open()
    # Test cards keep the pace, and each chat is looked at.
    limit = _SECONDS + 2 * PACE_SECONDS * len(settings.groups)
    found: list[Finding] = []
    try:
        async with asyncio.timeout(limit):
            async for look in _looks(web, table, secrets, settings, post=post):
                found.append(look)  # noqa: PERF401 - what was found before a time-out counts
    except TimeoutError:
        found.append(problem("slack", f"no answer within {limit:g} s", "try again later"))
    finally:
        await web.close()
    return found


async def _looks(
    web: Web, table: SlackChannelSettings, secrets: Secrets, settings: Settings, *, post: bool
) -> AsyncIterator[Finding]:
    chats = {n: g.chat.get(SLACK, "") for n, g in settings.groups.items() if SLACK in g.channels}
    # What can be seen without asking Slack comes first: it explains what Slack then says.
    wrong = [*_look_at_tokens(table, secrets), *_look_at_addresses(chats)]
    for look in wrong:
        yield look
    if any(look.check.endswith("token") for look in wrong):
        return
    bot = await _look_at_bot(web, table)
    yield bot
    if bot.status is not Status.OK:
        return
    yield await _look_at_scopes(web)
    if table.mode == "socket":
        yield await _look_at_app_token(web, table, secrets)
    for name, jid in chats.items():
        if CHAT.match(jid):
            yield await _look_at_chat(web, name, jid, post=post)


def _look_at_tokens(table: SlackChannelSettings, secrets: Secrets) -> Iterator[Finding]:
    """Say which tokens cannot be what they should be, by how they begin."""
    if not secrets.bot_token.startswith(_BOT_TOKENS):
        fix = f"put the bot token (xoxb-…) of the installed app into {table.bot_token_env}"
        yield problem("slack bot token", "does not begin as a bot token does", fix)
    if table.mode == "socket" and not secrets.app_token.startswith("xapp-"):
        fix = f"put an app-level token (xapp-…) with connections:write into {table.app_token_env}"
        yield problem("slack app token", "does not begin as an app-level token does", fix)


def _look_at_addresses(chats: Mapping[str, str]) -> Iterator[Finding]:
    """Say which groups have no chat that Slack could know."""
    for name, jid in chats.items():
        if not CHAT.match(jid):
            fix = f'in [groups.{name}]: chat = {{ {SLACK} = "C…" }}, the id and not the name'
            yield problem(f"slack chat of {name}", jid or "none", fix)


async def _look_at_bot(web: Web, table: SlackChannelSettings) -> Finding:
    try:
        who = await web.call(web.client.auth_test)
    except TokenRefused as exc:
        fix = f"put the bot token (xoxb-…) of the installed app into {table.bot_token_env}"
        return problem("slack bot token", str(exc), fix)
    except ChannelUnavailable as exc:
        return problem("slack", str(exc), f"see whether {table.api_url} can be reached from here")
    return fine("slack bot token", f"{who.get('user')} in the workspace {who.get('team')}")


async def _look_at_scopes(web: Web) -> Finding:
    try:
        granted = await web.scopes()
    except ChannelUnavailable as exc:
        return problem("slack scopes", str(exc), "try again later")
    if granted is None:
        return fine("slack scopes", "Slack does not say which the app has")
    missing = [scope for scope in SCOPES if scope not in granted]
    if missing:
        return problem("slack scopes", f"missing: {', '.join(missing)}", _REINSTALL)
    return fine("slack scopes", "all that are needed")


async def _look_at_app_token(web: Web, table: SlackChannelSettings, secrets: Secrets) -> Finding:
    try:
        await web.call(web.client.apps_connections_open, app_token=secrets.app_token)
    except ChannelUnavailable as exc:
        fix = f"put an app-level token (xapp-…) with connections:write into {table.app_token_env}"
        return problem("slack app token", str(exc), fix)
    return fine("slack app token", "opens a socket")


async def _look_at_chat(web: Web, group: str, jid: str, *, post: bool) -> Finding:
    check = f"slack chat of {group}"
    channel, thread = read_chat(jid)
    try:
        name = await _enter(web, channel)
        if post:
            await web.post(channel, thread, _test_card(group), group=GroupName(group))
    except Refused as exc:
        return problem(check, f"{jid}: {exc}", _FIXES.get(exc.error, _CHECK_CHAT))
    except ChannelUnavailable as exc:
        return problem(check, f"{jid}: {exc}", "try again later")
    return fine(check, name + (", and a test card is there" if post else ""))


async def _enter(web: Web, channel: str) -> str:
    """Return what the chat is called. Raise Refused if the bot cannot post there."""
    if channel[0] in "UW":
        await web.call(web.client.conversations_open, users=channel)
        return f"direct messages to {channel}"
    if channel[0] == "D":
        return f"direct messages ({channel})"
    info = await web.call(web.client.conversations_info, channel=channel)
    found = info.get("channel") or {}
    if not found.get("is_member"):
        raise Refused("the bot is not in the channel", "not_in_channel")
    return f"#{found.get('name') or channel}"


def _test_card(group: str) -> SlackMessage:
    told = "This is a test card. Questions will look like it, with buttons. Nothing to answer."
    made = [
        blocks.header("pynchy works here"),
        blocks.context(f"Group: {group}"),
        blocks.section(told),
    ]
    return SlackMessage(blocks.fallback("pynchy works here: a test card"), made)
