"""What the Slack channel brings to pynchy; its libraries are loaded only where it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from pynchy.channels.plugins import ChannelPlugin, PluginCommand

if TYPE_CHECKING:
    from pynchy.channels.base import Channel, ChannelContext
    from pynchy.config import ChannelSettings
    from pynchy.findings import Finding

_SLACK = "slack"
_INSTALL = "pip install 'pynchy[slack]' (or, in a clone, pip install '.[slack]')"
# Also a thread in a channel: "C024BE91L/1700000000.000100".
CHAT = re.compile(r"[CDGUW][A-Z0-9]*(/[0-9]+\.[0-9]+)?\Z")
_USER = re.compile(r"[UW][A-Z0-9]*\Z")


class SlackPlugin(ChannelPlugin):
    """Slack."""

    name = _SLACK
    # Doctor tells of a group without one: settings that had none were always read.
    needs_chat = False
    commands = MappingProxyType(
        {
            _SLACK: PluginCommand(
                "pynchy.cli.slack:slack_command",
                "Set up the Slack channel, and look whether it works.",
            )
        }
    )

    def settings(self) -> type[ChannelSettings]:
        """See ChannelPlugin."""
        from pynchy.config import SlackChannelSettings  # noqa: PLC0415 - slow

        return SlackChannelSettings

    def make(self, context: ChannelContext) -> Channel:
        """See ChannelPlugin."""
        from pynchy.config import SlackChannelSettings  # noqa: PLC0415 - slow
        from pynchy.errors import ConfigError  # noqa: PLC0415 - the same

        try:
            from pynchy.channels.slack.channel import SlackChannel, read_groups, read_secrets  # noqa: PLC0415 - slow
        except ImportError as exc:
            raise ConfigError(
                f"[channels.{_SLACK}] needs libraries that are not installed ({exc.name}): "
                f"{_INSTALL}"
            ) from exc
        table, settings = context.table(SlackChannelSettings), context.settings
        secrets = read_secrets(table, context.environ)
        return SlackChannel(table, secrets, audience=read_groups(settings))

    def check_chat(self, chat: str) -> str:
        """See ChannelPlugin."""
        wanted = 'the id of a channel or person in Slack, such as "C024BE91L", and not its name'
        return "" if CHAT.match(chat) else wanted

    def check_user(self, user: str) -> str:
        """See ChannelPlugin."""
        return "" if _USER.match(user) else 'a member ID of Slack, such as "U024BE7LH"'

    def examine(self, context: ChannelContext) -> Iterator[Finding]:
        """See ChannelPlugin."""
        return look_at_slack(context)


def look_at_slack(context: ChannelContext, *, post: bool = False) -> Iterator[Finding]:
    """Look at the secrets, what they open, and the chat of each group; post test cards there."""
    from pynchy.config import SlackChannelSettings  # noqa: PLC0415 - slow
    from pynchy.errors import ConfigError  # noqa: PLC0415 - the same
    from pynchy.findings import problem, warning  # noqa: PLC0415 - the same

    table = context.table(SlackChannelSettings)
    try:
        from pynchy.channels.slack.channel import read_secrets  # noqa: PLC0415 - slow
        from pynchy.channels.slack.setup import examine  # noqa: PLC0415 - the same
    except ImportError as exc:
        yield problem(_SLACK, f"{exc.name} is not installed", _INSTALL)
        return
    try:
        secrets = read_secrets(table, context.environ)
    except ConfigError as exc:
        yield warning(_SLACK, str(exc), "set them where pynchy runs, and here to look at them")
        return
    yield from examine(table, secrets, context.settings, post=post)


PLUGIN = SlackPlugin()
