"""The settings, as the rest of pynchy sees them.

Every setting has a default, so `Settings()` is what runs without a file. A field's description
is the phrase after "must be" in an error.
"""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator

from pynchy.config.values import (
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


class _Table(BaseModel):
    """A TOML table: never changed once read, and free of unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChannelSettings(_Table):
    """What a channel's own table may hold. An adapter derives its model from this."""


class LocalChannelSettings(ChannelSettings):
    """The local channel, which is always there and has nothing to set."""


# A channel's table is checked against the model found here under the channel's name.
KNOWN_CHANNELS: dict[str, type[ChannelSettings]] = {LOCAL: LocalChannelSettings}


class RetentionSettings(_Table):
    """How long, and up to what size, things that are over are kept."""

    history: PositiveDuration = timedelta(days=30)
    history_size: Size = 256 * 1024**2
    responses: PositiveDuration = timedelta(days=7)
    rejected: PositiveDuration = timedelta(days=7)
    rejected_files: Count = 200
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


class LauncherSettings(_Table):
    """How an agent whose process has ended is resumed."""

    command: tuple[Template, ...] = Field(
        min_length=1,
        description='a list of strings that is not empty, such as ["agent", "{initial}"]',
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
    def _local_is_always_there(
        cls, channels: dict[str, ChannelSettings]
    ) -> dict[str, ChannelSettings]:
        return {LOCAL: LocalChannelSettings()} | channels

    def group(self, name: str) -> GroupSettings:
        """Return the group's settings, or the defaults for a group without a table."""
        return self.groups.get(name, _WITHOUT_TABLE)
