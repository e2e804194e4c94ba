"""What pynchy is told of the channel; nothing is imported here that is not needed for that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from pynchy import ChannelPlugin, PluginCommand

if TYPE_CHECKING:
    from pynchy import Channel, ChannelContext, ChannelSettings, Finding

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\Z")


class PostboxPlugin(ChannelPlugin):
    """A folder of text files."""

    name = "postbox"
    commands = MappingProxyType(
        {"postbox": PluginCommand("pynchy_postbox.command:postbox_command", "List its cards.")}
    )

    def settings(self) -> type[ChannelSettings]:
        """See ChannelPlugin."""
        from pynchy_postbox.channel import PostboxSettings  # noqa: PLC0415 - slow

        return PostboxSettings

    def make(self, context: ChannelContext) -> Channel:
        """See ChannelPlugin."""
        from pynchy_postbox.channel import PostboxChannel, PostboxSettings  # noqa: PLC0415 - slow

        return PostboxChannel(context.table(PostboxSettings).folder)

    def check_chat(self, chat: str) -> str:
        """See ChannelPlugin."""
        return "" if _NAME.match(chat) else 'the name of a folder, such as "team"'

    def check_user(self, user: str) -> str:
        """See ChannelPlugin."""
        return "" if _NAME.match(user) else 'the name of a folder, such as "ana"'

    def examine(self, context: ChannelContext) -> Iterator[Finding]:
        """See ChannelPlugin."""
        from pynchy import fine, problem  # noqa: PLC0415 - slow
        from pynchy_postbox.channel import PostboxSettings  # noqa: PLC0415 - the same

        folder = context.table(PostboxSettings).folder
        if folder.is_dir():
            yield fine("postbox", f"{folder} is there")
        else:
            yield problem("postbox", f"{folder} is not there", f"mkdir -p {folder}")


PLUGIN = PostboxPlugin()
