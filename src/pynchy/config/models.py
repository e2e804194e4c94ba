"""The settings, as the rest of pynchy sees them.

Every setting has a default, so `Settings()` is what runs without a file. A field's description
is the phrase after "must be" in an error.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator

from pynchy.config.values import (
    AGENTS,
    AgentName,
    Argument,
    ChannelNames,
    Count,
    Duration,
    FolderPath,
    GroupKey,
    Image,
    PerSecond,
    Port,
    PositiveDuration,
    ProxyAddress,
    Size,
    Template,
    UserId,
    Variable,
    fill,
)

LOCAL = "local"
SLACK = "slack"
WEB = "web"
WHATSAPP = "whatsapp"
_AGENT = ("agent", "runner", "args")
_BOX = (
    *("home", "workspace", "read", "write", "pass_env"),
    *("network", "proxy", "memory", "pids", "disk"),
)
# The settings that not every kind of launcher has, the one that it needs first.
KINDS: dict[str, tuple[str, ...]] = {
    "command": ("command", "cwd"),
    "process": (*_AGENT, "cwd"),
    "bubblewrap": (*_AGENT, *_BOX, "hide", "unix_sockets", "user_namespaces"),
    "docker": (*_AGENT, *_BOX, "image", "engine", "options"),
}
# The kinds that put the agent into a box of its own.
BOXES = ("bubblewrap", "docker")


def either(words: Sequence[str]) -> str:
    """Return `"a", "b" or "c"`."""
    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(others)} or {last}" if others else last


_A_FOLDER = 'an absolute path, such as "/srv/agent" or "~/agent"'
_FOLDERS = 'a list of absolute paths, such as ["/srv/data", "~/tools"]'


class _Table(BaseModel):
    """A TOML table: never changed once read, and free of unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChannelSettings(_Table):
    """What a channel's own table may hold. An adapter derives its model from this."""

    def secrets(self) -> tuple[str, ...]:
        """Return the environment variables that hold secrets, which no agent may see."""
        return ()


class LocalChannelSettings(ChannelSettings):
    """The local channel, which is always there and has nothing to set."""


class WebChannelSettings(ChannelSettings):
    """The page in the browser, which is always there."""

    undo: Duration = timedelta(0)
    undo_high: Duration = timedelta(seconds=3)
    sign_in_ttl: PositiveDuration = timedelta(days=30)
    link_ttl: PositiveDuration = timedelta(minutes=15)


class SlackChannelSettings(ChannelSettings):
    """How the Slack channel finds its secrets and is reached by Slack."""

    bot_token_env: Variable = Field(
        default="SLACK_BOT_TOKEN", description="the name of an environment variable"
    )
    app_token_env: Variable = Field(
        default="SLACK_APP_TOKEN", description="the name of an environment variable"
    )
    signing_secret_env: Variable = Field(
        default="SLACK_SIGNING_SECRET", description="the name of an environment variable"
    )
    api_url: str = Field(
        default="https://slack.com/api/",
        pattern=r"^https?://\S+/$",
        description='an address that ends in "/", such as "https://slack.com/api/"',
    )
    mode: Literal["socket", "http"] = Field(default="socket", description='"socket" or "http"')
    http_host: str = Field(
        default="127.0.0.1", min_length=1, description='an address, such as "127.0.0.1"'
    )
    http_port: Port = 3000
    ping_interval: PositiveDuration = timedelta(seconds=5)
    thread_per_session: bool = Field(default=False, strict=True, description="true or false")

    def secrets(self) -> tuple[str, ...]:
        """See ChannelSettings."""
        return (self.bot_token_env, self.app_token_env, self.signing_secret_env)


class WhatsAppChannelSettings(ChannelSettings):
    """Where the WhatsApp channel keeps its session, and how fast it sends.

    Without a place of its own the session is in the data folder.
    """

    store: FolderPath | None = Field(
        default=None, description='an absolute path, such as "/srv/pynchy/whatsapp.db"'
    )
    pace: Duration = timedelta(seconds=1)


# Where holding the data folder's token is the permission, there is nobody to list. It is by name
# that they are exempt, so no channel can be that has no such name: plug-ins do not get these.
TOKEN_CHANNELS = frozenset({LOCAL, WEB})

# The tables of the built-in channels, by the channel's name.
KNOWN_CHANNELS: dict[str, type[ChannelSettings]] = {
    LOCAL: LocalChannelSettings,
    SLACK: SlackChannelSettings,
    WEB: WebChannelSettings,
    WHATSAPP: WhatsAppChannelSettings,
}


class RetentionSettings(_Table):
    """How long, and up to what size, things that are over are kept."""

    history: PositiveDuration = timedelta(days=30)
    history_size: Size = 256 * 1024**2
    responses: PositiveDuration = timedelta(days=7)
    rejected: PositiveDuration = timedelta(days=7)
    rejected_files: Count = 200
    sessions: Count = 200
    audit_size: Size = 16 * 1024**2
    audit_files: Count = 8


class HttpSettings(_Table):
    """Where the host listens, and under which names it may be called."""

    host: str = Field(
        default="127.0.0.1", min_length=1, description='an address, such as "127.0.0.1"'
    )
    port: Port = 8765
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description='a list of host names, such as ["pynchy.example.org"]'
    )
    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s/?#@]+)?$",
        description='an address without a path, such as "https://pynchy.example.org"',
    )


class LauncherSettings(_Table):
    """How an agent is started, and resumed when its process has ended.

    `checks` sees to it that a launcher has what its kind needs, and nothing of another kind.
    """

    kind: Literal["command", "process", "bubblewrap", "docker"] = Field(
        default="command", description=either(tuple(KINDS))
    )
    command: tuple[Template, ...] = Field(
        default=(),
        min_length=1,
        description='a list of strings that is not empty, such as ["agent", "{initial}"]',
    )
    agent: AgentName | None = Field(default=None, description=either(AGENTS))
    runner: Argument = Field(
        default="agent_runner", min_length=1, description='a program, such as "/opt/agent_runner"'
    )
    args: tuple[Argument, ...] = Field(
        default=(), description='a list of strings, such as ["--", "--model", "opus"]'
    )
    env: dict[Variable, Argument] = Field(
        default={}, description='a table of strings, such as { LANG = "C.UTF-8" }'
    )
    cwd: FolderPath | None = Field(default=None, description=_A_FOLDER)
    home: FolderPath | None = Field(default=None, description=_A_FOLDER)
    workspace: FolderPath | None = Field(default=None, description=_A_FOLDER)
    read: tuple[FolderPath, ...] = Field(default=(), description=_FOLDERS)
    write: tuple[FolderPath, ...] = Field(default=(), description=_FOLDERS)
    hide: tuple[FolderPath, ...] = Field(default=(), description=_FOLDERS)
    pass_env: tuple[Variable, ...] = Field(
        default=(), description='a list of variables, such as ["ANTHROPIC_API_KEY"]'
    )
    network: Literal["none", "proxy", "bridge", "host"] = Field(
        default="none", description='"none", "proxy", "bridge" or "host"'
    )
    proxy: ProxyAddress | None = Field(
        default=None,
        description='an address with a port from 1024 on, such as "127.0.0.1:8080"',
    )
    unix_sockets: bool = Field(default=False, strict=True, description="true or false")
    user_namespaces: bool = Field(default=False, strict=True, description="true or false")
    memory: Size = 4 * 1024**3
    pids: Count = 1024
    disk: Size = 10 * 1024**3
    image: Image = Field(
        default="pynchy-agent", description='the name of an image, such as "pynchy-agent"'
    )
    engine: Literal["docker", "podman"] = Field(
        default="docker", description='"docker" or "podman"'
    )
    options: tuple[Argument, ...] = Field(
        default=(), description='a list of strings, such as ["--cpus", "2"]'
    )
    timeout: PositiveDuration = timedelta(hours=2)
    term_grace: Duration = timedelta(seconds=10)
    max_runners: Count = 8
    attempts: Count = 5
    backoff: Duration = timedelta(seconds=10)

    def argv(self, values: Mapping[str, str]) -> list[str]:
        """Return the command with every placeholder filled in."""
        return [fill(part, values) for part in self.command]

    @property
    def is_box(self) -> bool:
        """True if the agent is put into a box."""
        return self.kind in BOXES

    @property
    def has_unix_sockets(self) -> bool:
        """True if programs in a box may make Unix sockets, and reach those that they see."""
        return self.unix_sockets or self.network == "host"

    def places(self, data: Path, group: str, environ: Mapping[str, str]) -> tuple[str, str]:
        """Return the HOME and the folder that a new session works in."""
        if self.is_box:
            own = data / "boxes" / group
            return str(self.home or own / "home"), str(self.workspace or own / "workspace")
        home = self.env.get("HOME", environ.get("HOME", ""))
        return home, str(self.cwd or Path.cwd())


class GroupSettings(_Table):
    """Where a group's questions go, who may answer them, and how its agent is resumed."""

    channels: ChannelNames = (LOCAL,)
    allowed_users: dict[str, tuple[str, ...]] = Field(
        default={}, description='a list of user ids per channel, such as { local = ["ana"] }'
    )
    chat: dict[str, str] = Field(
        default={}, description='one address per channel, such as { local = "here" }'
    )
    self_chat: bool = Field(default=False, strict=True, description="true or false")
    agent_uid: UserId | None = Field(default=None, description="a user's number, such as 1000")
    wait: Literal["block", "park"] = Field(default="block", description='"block" or "park"')
    park_after: PositiveDuration = timedelta(seconds=20)
    ask_with: Literal["ask_user", "AskUserQuestion"] = Field(
        default="ask_user", description='"ask_user" or "AskUserQuestion"'
    )
    launcher: LauncherSettings | None = Field(
        default=None, description="a table, [groups.NAME.launcher]"
    )


_WITHOUT_TABLE = GroupSettings()


class Settings(_Table):
    """Everything that pynchy.toml can say."""

    wait_timeout: PositiveDuration = timedelta(minutes=30)
    answer_ttl: PositiveDuration = timedelta(days=7)
    lease_ttl: PositiveDuration = timedelta(seconds=30)
    receipt_grace: Duration = timedelta(seconds=5)
    send_timeout: PositiveDuration = timedelta(seconds=10)
    show_patience: Duration = timedelta(minutes=5)
    max_open_per_group: Count = 1000
    max_open_size_per_group: Size = 32 * 1024**2
    max_resumes: Count = 4
    requests_per_second: PerSecond = 50
    request_burst: Count = 200
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="a table, [retention]"
    )
    http: HttpSettings = Field(default=HttpSettings(), description="a table, [http]")
    channels: dict[str, SerializeAsAny[ChannelSettings]] = Field(
        default={}, validate_default=True, description="tables, such as [channels.local]"
    )
    groups: dict[GroupKey, GroupSettings] = Field(
        default={}, description="tables, such as [groups.web-team]"
    )

    @field_validator("channels")
    @classmethod
    def _these_are_always_there(
        cls, channels: dict[str, ChannelSettings]
    ) -> dict[str, ChannelSettings]:
        return {LOCAL: LocalChannelSettings(), WEB: WebChannelSettings()} | channels

    @property
    def web(self) -> WebChannelSettings:
        """The settings of the page in the browser."""
        table = self.channels[WEB]
        return table if isinstance(table, WebChannelSettings) else WebChannelSettings()

    def group(self, name: str) -> GroupSettings:
        """Return the group's settings, or the defaults for a group without a table."""
        return self.groups.get(name, _WITHOUT_TABLE)

    def launchers(self) -> dict[str, LauncherSettings]:
        """Return the launchers by the groups that have one."""
        return {name: g.launcher for name, g in self.groups.items() if g.launcher is not None}
