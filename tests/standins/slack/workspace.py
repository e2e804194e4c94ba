"""The workspace behind the stand-in: people, channels, messages, and what each person sees.

It outlives the server's absences: going away loses sockets, never messages.
"""

from __future__ import annotations

import copy
import itertools
import re
import secrets
import time
from dataclasses import dataclass, field, replace

from tests.standins.slack.limits import Json, Refusal, elements_of

TEAM = "T0STANDIN"
OTHER_TEAM = "T0ELSEWHERE"
BOT_USER = "U0BOT"
BOT = "B0BOT"
APP = "A0PYNCHY"
SCOPES = (
    "channels:history",
    "channels:read",
    "chat:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "reactions:write",
    "users:read",
)


@dataclass(frozen=True, slots=True)
class User:
    """A person, of this workspace or of one that shares a channel with it.

    Slack does not always say which: an empty team is left out of what it tells.
    """

    id: str
    name: str
    team: str = TEAM


@dataclass(slots=True)
class Conversation:
    """A channel, a private channel or a direct message."""

    id: str
    name: str = ""
    private: bool = False
    im_user: str | None = None
    members: list[str] = field(default_factory=list)
    archived: bool = False

    @property
    def kind(self) -> str:
        """The word for it in scopes: channels, groups or im."""
        return "im" if self.im_user else "groups" if self.private else "channels"


@dataclass(slots=True)
class Message:
    """A message as it stands now; `versions` is how it stood before each update."""

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json] = field(default_factory=list)
    metadata: Json | None = None
    thread_ts: str | None = None
    by_bot: bool = False
    subtype: str | None = None
    team: str = TEAM
    parent_user: str | None = None
    reactions: list[str] = field(default_factory=list)
    versions: list[Json] = field(default_factory=list)

    def to_json(self, *, with_metadata: bool = False) -> Json:
        """Return the message as Slack's answers and payloads have it."""
        found: Json = {"type": "message", "user": self.user, "ts": self.ts, "text": self.text}
        if self.by_bot:
            found |= {"bot_id": BOT, "app_id": APP}
        if self.team not in {TEAM, ""}:
            found |= {"user_team": self.team, "source_team": self.team}
        if self.versions:
            found["edited"] = {"user": self.user, "ts": self.ts}
        marks = [{"name": name, "users": [BOT_USER], "count": 1} for name in self.reactions]
        told = {
            "team": self.team,
            "blocks": copy.deepcopy(self.blocks),
            "thread_ts": self.thread_ts,
            "parent_user_id": self.parent_user,
            "reactions": marks,
            "subtype": self.subtype,
            "metadata": copy.deepcopy(self.metadata) if with_metadata else None,
        }
        return found | {name: value for name, value in told.items() if value}

    @property
    def elements(self) -> list[tuple[Json, Json]]:
        """Every control with the block that it stands in."""
        return [(block, element) for block in self.blocks for element in elements_of(block)]

    @property
    def is_open(self) -> bool:
        """True while there is something to click, choose or fill in."""
        return bool(self.elements)


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """What only one person sees."""

    channel: str
    user: str
    text: str
    blocks: tuple[Json, ...] = ()
    thread_ts: str | None = None
    ts: str = ""

    @property
    def elements(self) -> list[tuple[Json, Json]]:
        """Every control with the block that it stands in."""
        return [(block, element) for block in self.blocks for element in elements_of(block)]


class Workspace:
    """One team, its bot, and everything that was ever said."""

    def __init__(self) -> None:
        self.users: dict[str, User] = {}
        self.channels: dict[str, Conversation] = {}
        self.ephemerals: list[Ephemeral] = []
        self.scopes: set[str] = set(SCOPES)
        self._messages: dict[str, dict[str, Message]] = {}
        self._last_ts = 0
        self._numbers = itertools.count(1)
        self.add_user(BOT_USER, "pynchy")

    def add_user(self, user_id: str, name: str = "", team: str = TEAM) -> User:
        """Let somebody join."""
        self.users[user_id] = User(user_id, name or user_id.lower(), team)
        return self.users[user_id]

    def add_channel(
        self, channel_id: str, *members: str, private: bool = False, with_bot: bool = True
    ) -> Conversation:
        """Make a channel with these members, who join the workspace where they have not yet."""
        if not re.fullmatch("[CG][A-Z0-9]+", channel_id):
            raise ValueError(f"Slack has no such ids: {channel_id!r}")
        for user in members:
            if user not in self.users:
                self.add_user(user)
        everybody = [*members, BOT_USER] if with_bot else list(members)
        channel = Conversation(channel_id, channel_id.lower(), private, members=everybody)
        self.channels[channel_id] = channel
        return channel

    def direct(self, user: str) -> Conversation:
        """Return the bot's direct messages with the person."""
        channel_id = "D" + user[1:]
        if channel_id not in self.channels:
            members = [user, BOT_USER]
            self.channels[channel_id] = Conversation(channel_id, im_user=user, members=members)
        return self.channels[channel_id]

    def new_ts(self) -> str:
        """Return a timestamp that is later than every one before."""
        self._last_ts = max(self._last_ts + 1, int(time.time() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def whisper(self, ephemeral: Ephemeral) -> Ephemeral:
        """Let one person alone see it, with the ids that Slack gives to what has none."""
        number_blocks(list(ephemeral.blocks))
        told = replace(ephemeral, ts=self.new_ts())
        self.ephemerals.append(told)
        return told

    def post(self, message: Message) -> Message:
        """Keep the message, with the ids that Slack gives to what has none."""
        number_blocks(message.blocks)
        kept = self._messages.setdefault(message.channel, {})
        parent = kept.get(message.thread_ts or "")
        message.parent_user = parent.user if parent is not None else None
        kept[message.ts] = message
        return message

    def update(self, message: Message, changes: Json) -> None:
        """Replace what the message says; its controls forget what was chosen in them."""
        message.versions.append(message.to_json(with_metadata=True))
        number_blocks(changes.get("blocks", ()))
        for name, value in changes.items():
            setattr(message, name, value)

    def delete(self, message: Message) -> None:
        """Let the message be gone."""
        self._messages[message.channel].pop(message.ts, None)

    def message(self, channel: str, ts: str) -> Message:
        """Return the message. Raise Refusal if there is none."""
        try:
            return self._messages[channel][ts]
        except KeyError:
            raise Refusal("message_not_found") from None

    def all_in(self, channel: str) -> list[Message]:
        """Return everything said in the channel, in order."""
        return [m for _, m in sorted(self._messages.get(channel, {}).items())]

    def top(self, channel: str) -> list[Message]:
        """Return what the channel itself shows: no replies, but those that were broadcast."""
        found = self.all_in(channel)
        return [m for m in found if m.thread_ts in {None, m.ts} or m.subtype == "thread_broadcast"]

    def thread(self, channel: str, ts: str) -> list[Message]:
        """Return the replies to the message."""
        return [m for m in self.all_in(channel) if m.thread_ts == ts != m.ts]


def number_blocks(blocks: list[Json] | tuple[()]) -> None:
    """Give each block and control without an id one, as Slack does."""
    for block in blocks:
        block.setdefault("block_id", secrets.token_urlsafe(4))
        for element in elements_of(block):
            element.setdefault("action_id", secrets.token_urlsafe(4))


_TOKEN = re.compile(r"<([^<>]*)>")
_URL = re.compile(r"https?://[^\s<>]+")
_MARKS = re.compile(r"(?<![\w*_~`])([*_~`])(?=\S)([^\n]*?\S)\1(?![\w*_~`])")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True, slots=True)
class Sight:
    """What a person sees of a message, and what Slack made of it by itself."""

    text: str
    mentions: tuple[str, ...]
    links: tuple[str, ...]


def look(message: Message | Ephemeral) -> Sight:
    """Return the message as Slack's client shows it; the fallback text too can mention people."""
    parts: list[str] = []
    mentions: list[str] = []
    links: list[str] = []
    for text in _texts(list(message.blocks)):
        seen = _seen(text, mentions, links)
        parts.append(seen)
    seen = _seen({"type": "mrkdwn", "text": message.text, "verbatim": True}, mentions, links)
    return Sight("\n".join(parts) if message.blocks else seen, tuple(mentions), tuple(links))


def text_of(text: Json) -> str:
    """Return a text object's characters as they are shown."""
    return _seen(text, [], [])


def _texts(value: object) -> list[Json]:
    """Return every text within the blocks, in order."""
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("text"), str):
        return [value]
    return [text for item in value.values() for text in _texts(item)]


def _seen(text: Json, mentions: list[str], links: list[str]) -> str:
    raw = str(text["text"])
    if text.get("type") in {"plain_text", "text"}:
        return raw
    for token in _TOKEN.findall(raw):
        (mentions if token[:1] in {"!", "@", "#"} else links).append(token)
    shown = _TOKEN.sub(lambda found: found[1].rpartition("|")[2], raw)
    if not text.get("verbatim"):
        links += _URL.findall(shown)
    shown = _MARKS.sub(r"\2", shown)
    for entity, character in _ENTITIES:
        shown = shown.replace(entity, character)
    return shown
