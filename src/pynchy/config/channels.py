"""The tables of the built-in channels, and what every table has in common."""

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pynchy.config.values import Duration, FolderPath, Port, PositiveDuration, Variable

DESKTOP = "desktop"
LOCAL = "local"
SLACK = "slack"
WEB = "web"
WHATSAPP = "whatsapp"


class Table(BaseModel):
    """A TOML table: never changed once read, and free of unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChannelSettings(Table):
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


class DesktopChannelSettings(ChannelSettings):
    """How often the desktop channel pops up: once, unless it is to remind of a question."""

    remind_after: Duration = timedelta(0)


# Where holding the data folder's token is the permission, or sitting at the host's own desktop,
# whose user can read the token, there is nobody to list. It is by name
# that they are exempt, so no channel can be that has no such name: plug-ins do not get these.
TOKEN_CHANNELS = frozenset({DESKTOP, LOCAL, WEB})

# The tables of the built-in channels, by the channel's name.
KNOWN_CHANNELS: dict[str, type[ChannelSettings]] = {
    DESKTOP: DesktopChannelSettings,
    LOCAL: LocalChannelSettings,
    SLACK: SlackChannelSettings,
    WEB: WebChannelSettings,
    WHATSAPP: WhatsAppChannelSettings,
}
