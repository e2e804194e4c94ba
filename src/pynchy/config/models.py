"""The settings, as the rest of pynchy sees them.

Every setting has a default, so `Settings()` is what runs without a file. A field's description
is the phrase after "must be" in an error.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator

from pynchy.config.values import (
    AGENTS,
    AgentName,
    Argument,
    ChannelNames,
    Count,
    Duration,
    Folder,
    GroupName,
    Port,
    PositiveDuration,
    Rate,
    Size,
    Template,
    UserId,
    Variable,
    fill,
)

LOCAL = "local"
SLACK = "slack"
WEB = "web"
# The settings that only one kind of launcher has, the one that it needs first.
KINDS: dict[str, tuple[str, ...]] = {
    "command": ("command",),
    "process": ("agent", "runner", "args"),
}


def _either(words: Sequence[str]) -> str:
    """Return `"a", "b" or "c"`."""
    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(others)} or {last}" if others else last


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


# A channel's table is checked against the model found here under the channel's name.
KNOWN_CHANNELS: dict[str, type[ChannelSettings]] = {
    LOCAL: LocalChannelSettings,
    SLACK: SlackChannelSettings,
    WEB: WebChannelSettings,
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

    kind: Literal["command", "process"] = Field(
        default="command", description='"command" or "process"'
    )
    command: tuple[Template, ...] = Field(
        default=(),
        min_length=1,
        description='a list of strings that is not empty, such as ["agent", "{initial}"]',
    )
    agent: AgentName | None = Field(default=None, description=_either(AGENTS))
    runner: Argument = Field(
        default="agent_runner", min_length=1, description='a program, such as "/opt/agent_runner"'
    )
    args: tuple[Argument, ...] = Field(
        default=(), description='a list of strings, such as ["--", "--model", "opus"]'
    )
    env: dict[Variable, Argument] = Field(
        default={}, description='a table of strings, such as { LANG = "C.UTF-8" }'
    )
    cwd: Folder | None = Field(
        default=None, description='an absolute path, such as "/srv/agent" or "~/agent"'
    )
    timeout: PositiveDuration = timedelta(hours=2)
    term_grace: Duration = timedelta(seconds=10)
    attempts: Count = 5
    backoff: Duration = timedelta(seconds=10)

    def argv(self, values: Mapping[str, str]) -> list[str]:
        """Return the command with every placeholder filled in."""
        return [fill(part, values) for part in self.command]


class GroupSettings(_Table):
    """Where a group's questions go, who may answer them, and how its agent is resumed."""

    channels: ChannelNames = (LOCAL,)
    allowed_users: dict[str, tuple[str, ...]] = Field(
        default={}, description='a list of user ids per channel, such as { local = ["ana"] }'
    )
    chat: dict[str, str] = Field(
        default={}, description='one address per channel, such as { local = "here" }'
    )
    agent_uid: UserId | None = Field(default=None, description="a user's number, such as 1000")
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
    max_open_per_group: Count = 1000
    max_open_size_per_group: Size = 32 * 1024**2
    max_resumes: Count = 4
    requests_per_second: Rate = 50
    request_burst: Count = 200
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="a table, [retention]"
    )
    http: HttpSettings = Field(default=HttpSettings(), description="a table, [http]")
    channels: dict[str, SerializeAsAny[ChannelSettings]] = Field(
        default={}, validate_default=True, description="tables, such as [channels.local]"
    )
    groups: dict[GroupName, GroupSettings] = Field(
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
