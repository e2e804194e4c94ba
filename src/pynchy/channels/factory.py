"""Make the channels that the settings name; a channel's libraries are loaded only for that."""

from __future__ import annotations

from collections.abc import Mapping

from pynchy.channels.base import Channel
from pynchy.channels.local import LocalChannel
from pynchy.channels.web import WebChannel
from pynchy.config import (
    SLACK,
    ChannelSettings,
    Settings,
    SlackChannelSettings,
    WebChannelSettings,
)
from pynchy.errors import ConfigError


def make_channels(settings: Settings, environ: Mapping[str, str]) -> dict[str, Channel]:
    """Return the channels by name. Raise ConfigError if one lacks its libraries or secrets."""
    return {
        name: channel
        for name, table in settings.channels.items()
        if (channel := _make(table, settings, environ)) is not None
    }


def _make(table: ChannelSettings, settings: Settings, environ: Mapping[str, str]) -> Channel | None:
    match table:
        case SlackChannelSettings():
            return _make_slack(table, settings, environ)
        case WebChannelSettings():
            return WebChannel()
        case _:
            return LocalChannel()


def _make_slack(
    table: SlackChannelSettings, settings: Settings, environ: Mapping[str, str]
) -> Channel:
    try:
        from pynchy.channels.slack.channel import (  # noqa: PLC0415 - heavy
            Audience,
            SlackChannel,
            read_secrets,
        )
    except ImportError as exc:
        raise ConfigError(
            f"[channels.{SLACK}] needs libraries that are not installed ({exc.name}): "
            "pip install '.[slack]' in pynchy's folder"
        ) from exc
    groups = [group for group in settings.groups.values() if SLACK in group.channels]
    audience = Audience(
        frozenset(group.chat.get(SLACK, "") for group in groups),
        frozenset(user for group in groups for user in group.allowed_users.get(SLACK, ())),
    )
    return SlackChannel(table, read_secrets(table, environ), audience=audience)
