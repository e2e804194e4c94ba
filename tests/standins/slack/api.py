"""The Web API: the methods that a question needs, as strict as Slack.

Tokens, scopes, membership and limits are checked; a refusal is `{"ok": false}` with Slack's name
for it, and where Slack explains itself, the words.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.standins.slack.faults import Fault, Faults, RateLimit
from tests.standins.slack.limits import Json, Refusal, check_blocks, check_metadata, check_text
from tests.standins.slack.workspace import (
    APP,
    BOT,
    BOT_USER,
    TEAM,
    Conversation,
    Ephemeral,
    Message,
    Workspace,
)

BOT_TOKEN = "xoxb-stand-in"  # noqa: S105 - of the stand-in only
APP_TOKEN = "xapp-1-stand-in"  # noqa: S105 - the same
_RATE_LIMITED = {"chat.postMessage", "chat.postEphemeral", "chat.update"}
_POSTING = {
    *("channel", "text", "blocks", "metadata", "thread_ts", "reply_broadcast", "token"),
    *("unfurl_links", "unfurl_media", "mrkdwn", "link_names", "parse"),
    *("username", "icon_emoji", "icon_url", "client_msg_id", "user", "as_user", "ts"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it came, and when."""

    method: str
    arguments: Json
    error: str | None = None
    at: float = field(default_factory=time.time)


@dataclass(slots=True)
class WebApi:
    """Answers the methods' calls. `posted` and `updated` are told what the bot did."""

    workspace: Workspace
    faults: Faults
    ticket: Callable[[], str]
    posted: Callable[[Message], None]
    updated: Callable[[Message], None]
    rate_limit: RateLimit = field(default_factory=RateLimit)
    bot_token: str = BOT_TOKEN
    app_token: str = APP_TOKEN
    calls: list[Call] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call, or fail as ordered."""
        method = request.match_info["method"]
        fault = self.faults.take(method) or Fault()
        await asyncio.sleep(fault.slow_seconds)
        if fault.before:
            return _cut(request)
        if fault.status is not None:
            self.calls.append(Call(method, {}, str(fault.status)))
            return _failing(fault.status, fault.retry_after_seconds)
        reply = await self._answer(method, request, fault)
        await asyncio.sleep(fault.late_seconds)
        return _cut(request) if fault.drop else reply

    async def _answer(self, method: str, request: web.Request, fault: Fault) -> web.Response:
        arguments: Json = {}
        try:
            arguments = await _arguments(request)
            self._check_token(method, _token(request, arguments), fault.error)
            # Each method has a limit of its own in each channel.
            what = f"{method} {arguments.get('channel', '')}"
            if method in _RATE_LIMITED and not self.rate_limit.allows(what):
                self.calls.append(Call(method, arguments, "429"))
                return _failing(429, 1)
            body = await self._perform(method, arguments, request)
        except Refusal as refusal:
            self.calls.append(Call(method, arguments, refusal.error))
            return web.json_response(_refused(refusal, self.workspace.scopes))
        self.calls.append(Call(method, arguments))
        headers = {"x-oauth-scopes": ",".join(sorted(self.workspace.scopes))}
        return web.json_response({"ok": True, **body}, headers=headers)

    def _check_token(self, method: str, token: str, ordered: str | None) -> None:
        if ordered:
            raise Refusal(ordered)
        if not token:
            raise Refusal("not_authed")
        if token not in {self.bot_token, self.app_token}:
            raise Refusal("invalid_auth")
        wanted = self.app_token if method == "apps.connections.open" else self.bot_token
        if token != wanted:
            raise Refusal("not_allowed_token_type")

    async def _perform(self, method: str, arguments: Json, request: web.Request) -> Json:
        if method == "apps.connections.open":
            return {"url": f"ws://{request.host}/link/?ticket={self.ticket()}&app_id={APP}"}
        handler = _METHODS.get(method)
        if handler is None:
            raise Refusal("unknown_method")
        return await handler(self, arguments)

    async def auth_test(self, _arguments: Json) -> Json:
        """Say who the token belongs to."""
        who = {"user": "pynchy", "user_id": BOT_USER, "bot_id": BOT, "team": "Stand-in"}
        return who | {
            "team_id": TEAM,
            "url": "https://stand-in.slack.com/",
            "is_enterprise_install": False,
        }

    async def post_message(self, arguments: Json) -> Json:
        """Post in a channel, a thread or a direct message."""
        self._need("chat:write")
        channel = self._writable(arguments)
        said = _checked(arguments)
        if not said["text"] and not said["blocks"]:
            raise Refusal("no_text")
        thread_ts = arguments.get("thread_ts")
        if thread_ts is not None and not isinstance(thread_ts, str):
            raise Refusal("invalid_arguments", "thread_ts is not a string")
        ts = self.workspace.new_ts()
        if thread_ts and thread_ts not in {m.ts for m in self.workspace.all_in(channel.id)}:
            raise Refusal("thread_not_found")
        message = Message(channel.id, ts, BOT_USER, thread_ts=thread_ts, by_bot=True, **said)
        if thread_ts and _truth(arguments.get("reply_broadcast")):
            message.subtype = "thread_broadcast"
        self.workspace.post(message)
        self.posted(message)
        body = message.to_json(with_metadata=True)
        return {"channel": channel.id, "ts": ts, "message": body}

    async def update(self, arguments: Json) -> Json:
        """Replace one of the bot's own messages; what is left out stays."""
        self._need("chat:write")
        channel = self._readable(arguments)
        ts = arguments.get("ts")
        if not isinstance(ts, str):
            raise Refusal("invalid_arguments", "ts is not a string")
        message = self.workspace.message(channel.id, ts)
        if not message.by_bot:
            raise Refusal("cant_update_message")
        said = _checked(arguments)
        changes = {name: said[name] for name in said if name in arguments}
        if not changes:
            raise Refusal("no_text")
        self.workspace.update(message, changes)
        self.updated(message)
        return {"channel": channel.id, "ts": ts, "text": message.text, "message": message.to_json()}

    async def delete(self, arguments: Json) -> Json:
        """Remove one of the bot's own messages."""
        self._need("chat:write")
        channel = self._readable(arguments)
        message = self.workspace.message(channel.id, str(arguments.get("ts")))
        if not message.by_bot:
            raise Refusal("cant_delete_message")
        self.workspace.delete(message)
        return {"channel": channel.id, "ts": message.ts}

    async def post_ephemeral(self, arguments: Json) -> Json:
        """Tell one person in a channel."""
        self._need("chat:write")
        channel = self._writable(arguments)
        said = _checked(arguments)
        user = arguments.get("user")
        if user not in channel.members:
            raise Refusal("user_not_in_channel")
        if not said["text"] and not said["blocks"]:
            raise Refusal("no_text")
        thread = arguments.get("thread_ts")
        made = Ephemeral(channel.id, str(user), said["text"], tuple(said["blocks"]), thread)
        return {"message_ts": self.workspace.whisper(made).ts}

    async def history(self, arguments: Json) -> Json:
        """Return the channel's messages, newest first."""
        channel = self._readable(arguments)
        self._need(f"{channel.kind}:history")
        found = list(reversed(self.workspace.top(channel.id)))
        return self._page(found, arguments, most=999)

    async def replies(self, arguments: Json) -> Json:
        """Return a thread, its first message included, oldest first."""
        channel = self._readable(arguments)
        self._need(f"{channel.kind}:history")
        ts = str(arguments.get("ts", ""))
        try:
            first = self.workspace.message(channel.id, ts)
        except Refusal:
            raise Refusal("thread_not_found") from None
        found = [first, *self.workspace.thread(channel.id, ts)]
        return self._page(found, arguments, most=1000)

    async def info(self, arguments: Json) -> Json:
        """Describe a channel."""
        channel = self._known(arguments)
        self._need(f"{channel.kind}:read")
        found: Json = {
            "id": channel.id,
            "name": channel.name,
            "is_channel": channel.kind == "channels",
            "is_group": channel.kind == "groups",
            "is_private": channel.private,
            "is_im": channel.kind == "im",
            "is_archived": channel.archived,
            "is_member": BOT_USER in channel.members,
        }
        return {"channel": found | ({"user": channel.im_user} if channel.im_user else {})}

    async def members(self, arguments: Json) -> Json:
        """List who is in a channel."""
        channel = self._known(arguments)
        self._need(f"{channel.kind}:read")
        return {"members": list(channel.members), "response_metadata": {"next_cursor": ""}}

    async def open_direct(self, arguments: Json) -> Json:
        """Open direct messages with one person."""
        self._need("im:write")
        users = str(arguments.get("users", "")).split(",")
        if len(users) != 1 or users[0] not in self.workspace.users:
            raise Refusal("user_not_found")
        return {"channel": {"id": self.workspace.direct(users[0]).id}}

    async def user(self, arguments: Json) -> Json:
        """Describe a person."""
        self._need("users:read")
        user = self.workspace.users.get(str(arguments.get("user")))
        if user is None:
            raise Refusal("user_not_found")
        profile = {"real_name": user.name, "display_name": user.name}
        found = {"id": user.id, "team_id": user.team, "name": user.name, "real_name": user.name}
        return {"user": {**found, "profile": profile, "deleted": False, "is_bot": False}}

    async def react(self, arguments: Json) -> Json:
        """Add a reaction to a message."""
        self._need("reactions:write")
        channel = self._readable(arguments)
        message = self.workspace.message(channel.id, str(arguments.get("timestamp")))
        name = str(arguments.get("name"))
        if name in message.reactions:
            raise Refusal("already_reacted")
        message.reactions.append(name)
        return {}

    def _need(self, scope: str) -> None:
        if scope not in self.workspace.scopes:
            raise Refusal("missing_scope", scope)

    def _known(self, arguments: Json) -> Conversation:
        name = arguments.get("channel")
        if isinstance(name, str) and name in self.workspace.users:
            return self.workspace.direct(name)
        channel = self.workspace.channels.get(name) if isinstance(name, str) else None
        if channel is None or (channel.private and BOT_USER not in channel.members):
            raise Refusal("channel_not_found")
        return channel

    def _readable(self, arguments: Json) -> Conversation:
        channel = self._known(arguments)
        if BOT_USER not in channel.members:
            raise Refusal("not_in_channel")
        return channel

    def _writable(self, arguments: Json) -> Conversation:
        unknown = set(arguments) - _POSTING
        if unknown:
            raise Refusal("invalid_arguments", f"unknown: {', '.join(sorted(unknown))}")
        channel = self._readable(arguments)
        if channel.archived:
            raise Refusal("is_archived")
        return channel

    def _page(self, messages: list[Message], arguments: Json, most: int) -> Json:
        limit = int(arguments.get("limit", 100))
        if not 1 <= limit <= most:
            raise Refusal("invalid_limit")
        oldest, latest = str(arguments.get("oldest", "0")), str(arguments.get("latest", "9"))
        inclusive = _truth(arguments.get("inclusive"))
        inside = [m for m in messages if _within(m.ts, oldest, latest, inclusive=inclusive)]
        start = int(arguments.get("cursor") or 0)
        page = inside[start : start + limit]
        more = start + limit < len(inside)
        with_metadata = _truth(arguments.get("include_all_metadata"))
        return {
            "messages": [m.to_json(with_metadata=with_metadata) for m in page],
            "has_more": more,
            "response_metadata": {"next_cursor": str(start + limit) if more else ""},
        }


_METHODS: dict[str, Callable[[WebApi, Json], Awaitable[Json]]] = {
    "auth.test": WebApi.auth_test,
    "chat.postMessage": WebApi.post_message,
    "chat.update": WebApi.update,
    "chat.delete": WebApi.delete,
    "chat.postEphemeral": WebApi.post_ephemeral,
    "conversations.history": WebApi.history,
    "conversations.replies": WebApi.replies,
    "conversations.info": WebApi.info,
    "conversations.members": WebApi.members,
    "conversations.open": WebApi.open_direct,
    "users.info": WebApi.user,
    "reactions.add": WebApi.react,
}


def _checked(arguments: Json) -> Json:
    """Return what a message says, within every limit."""
    if arguments.get("parse") not in {None, "none"} or _truth(arguments.get("link_names")):
        raise Refusal("invalid_arguments", "parse and link_names let an agent mention people")
    blocks = _decoded(arguments.get("blocks"), "invalid_blocks_format")
    metadata = _decoded(arguments.get("metadata"), "invalid_metadata_format")
    return {
        "text": check_text(arguments.get("text")),
        "blocks": copy.deepcopy(check_blocks(blocks)) if blocks is not None else [],
        "metadata": copy.deepcopy(check_metadata(metadata)),
    }


def _decoded(value: object, error: str) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise Refusal(error, "not JSON") from None


async def _arguments(request: web.Request) -> Json:
    arguments: Json = dict(request.query)
    if request.content_type == "application/json" and request.can_read_body:
        body = json.loads(await request.read() or b"{}")
        if not isinstance(body, dict):
            raise Refusal("invalid_json")
        # Slack takes no token from a JSON body.
        return arguments | {name: value for name, value in body.items() if name != "token"}
    if request.method == "POST":
        arguments |= {name: str(value) for name, value in (await request.post()).items()}
    return arguments


def _token(request: web.Request, arguments: Mapping[str, Any]) -> str:
    header = request.headers.get("Authorization", "")
    return header.removeprefix("Bearer ").strip() or str(arguments.get("token", ""))


def _refused(refusal: Refusal, scopes: set[str]) -> Json:
    body: Json = {"ok": False, "error": refusal.error}
    if refusal.error == "missing_scope":
        needed = refusal.messages[0] if refusal.messages else "unknown"
        return body | {"needed": needed, "provided": ",".join(sorted(scopes))}
    if refusal.messages:
        body["errors"] = list(refusal.messages)
        messages = [f"[ERROR] {message}" for message in refusal.messages]
        body["response_metadata"] = {"messages": messages}
    return body


def _failing(status: int, retry_after_seconds: int) -> web.Response:
    if status != 429:
        return web.Response(status=status, text="upstream connect error", content_type="text/plain")
    headers = {"Retry-After": str(max(1, math.ceil(retry_after_seconds)))}
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500, text=secrets.token_hex(2))


def _truth(value: object) -> bool:
    return value in {True, "1", "true", "True"}


def _within(ts: str, oldest: str, latest: str, *, inclusive: bool) -> bool:
    moment, first, last = float(ts), float(oldest), float("inf" if latest == "9" else latest)
    return first <= moment <= last if inclusive else first < moment < last
