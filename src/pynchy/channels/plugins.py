"""Make the channels that the settings name; a channel's libraries are loaded only for that."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pynchy.channels.base import Channel
from pynchy.channels.token import LocalChannel, WebChannel
from pynchy.config import (
    SLACK,
    WHATSAPP,
    ChannelSettings,
    Settings,
    SlackChannelSettings,
    WebChannelSettings,
    WhatsAppChannelSettings,
)
from pynchy.errors import ConfigError


def make_channels(settings: Settings, environ: Mapping[str, str], data: Path) -> dict[str, Channel]:
    """Return the channels by name; what one must keep, it keeps in the data folder.

    Raise ConfigError if one lacks its libraries or secrets.
    """
    return {
        name: channel
        for name, table in settings.channels.items()
        if (channel := _make(table, settings, environ, data)) is not None
    }


def _make(
    table: ChannelSettings, settings: Settings, environ: Mapping[str, str], data: Path
) -> Channel | None:
    match table:
        case SlackChannelSettings():
            return _make_slack(table, settings, environ)
        case WhatsAppChannelSettings():
            return _make_whatsapp(table, settings, data)
        case WebChannelSettings():
            return WebChannel()
        case _:
            return LocalChannel()


def _make_slack(
    table: SlackChannelSettings, settings: Settings, environ: Mapping[str, str]
) -> Channel:
    try:
        from pynchy.channels.slack.channel import SlackChannel, SlackGroups, read_secrets  # noqa: PLC0415 - heavy
    except ImportError as exc:
        raise ConfigError(
            f"[channels.{SLACK}] needs libraries that are not installed ({exc.name}): "
            "pip install '.[slack]' in pynchy's folder"
        ) from exc
    groups = [group for group in settings.groups.values() if SLACK in group.channels]
    audience = SlackGroups(
        frozenset(group.chat.get(SLACK, "") for group in groups),
        frozenset(user for group in groups for user in group.allowed_users.get(SLACK, ())),
    )
    return SlackChannel(table, read_secrets(table, environ), audience=audience)


def _make_whatsapp(table: WhatsAppChannelSettings, settings: Settings, data: Path) -> Channel:
    # The library itself is loaded by the child alone.
    if find_spec("neonize") is None:
        raise ConfigError(
            f"[channels.{WHATSAPP}] needs a library that is not installed (neonize): "
            "pip install '.[whatsapp]' in pynchy's folder"
        )
    from pynchy.channels.whatsapp.channel import WhatsAppChannel, make_home, store_of  # noqa: PLC0415 - the same
    from pynchy.channels.whatsapp.inbound import read_groups  # noqa: PLC0415 - where it is used

    home = make_home(data)
    audience, pace_seconds = read_groups(settings), table.pace.total_seconds()
    return WhatsAppChannel(home, store_of(table, home), audience, pace_seconds)
