"""What the WhatsApp channel brings to pynchy; its library is loaded by its child process alone."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

from pynchy.channels.plugins import ChannelPlugin, PluginCommand
from pynchy.channels.whatsapp import INSTALL, LIBRARY

if TYPE_CHECKING:
    from pynchy.channels.base import Channel, ChannelContext
    from pynchy.config import ChannelSettings, GroupSettings
    from pynchy.config.errors import SettingProblem
    from pynchy.findings import Finding

_WHATSAPP = "whatsapp"


class WhatsAppPlugin(ChannelPlugin):
    """WhatsApp."""

    name = _WHATSAPP
    # A group may ask in the paired account's chat with itself; `check_group` and doctor know.
    needs_chat = False
    commands = MappingProxyType(
        {
            _WHATSAPP: PluginCommand(
                "pynchy.cli.whatsapp:whatsapp_command",
                "Pair a phone for the WhatsApp channel, and see how it is.",
            )
        }
    )

    def settings(self) -> type[ChannelSettings]:
        """See ChannelPlugin."""
        from pynchy.config import WhatsAppChannelSettings  # noqa: PLC0415 - slow

        return WhatsAppChannelSettings

    def make(self, context: ChannelContext) -> Channel:
        """See ChannelPlugin."""
        from pynchy.config import WhatsAppChannelSettings  # noqa: PLC0415 - slow
        from pynchy.errors import ConfigError  # noqa: PLC0415 - the same

        if find_spec(LIBRARY) is None:
            raise ConfigError(
                f"[channels.{_WHATSAPP}] needs a library that is not installed (neonize): {INSTALL}"
            )
        from pynchy.channels.whatsapp.channel import WhatsAppChannel, make_home, store_of  # noqa: PLC0415 - slow
        from pynchy.channels.whatsapp.inbound import read_groups  # noqa: PLC0415 - the same

        table, home = context.table(WhatsAppChannelSettings), make_home(context.data)
        audience, pace_seconds = read_groups(context.settings), table.pace.total_seconds()
        return WhatsAppChannel(home, store_of(table, home), audience, pace_seconds)

    def check_chat(self, chat: str) -> str:
        """See ChannelPlugin."""
        return "" if _is_address(chat) else 'a group\'s address ("…@g.us") or a phone number'

    def check_user(self, user: str) -> str:
        """See ChannelPlugin."""
        return "" if _is_address(user) else 'a phone number, such as "+49 170 1234567"'

    def check_group(self, name: str, group: GroupSettings) -> Iterator[SettingProblem]:
        """See ChannelPlugin: find a `self_chat` that cannot be meant."""
        if not group.self_chat:
            return
        from pynchy.config.errors import SettingProblem, dotted  # noqa: PLC0415 - slow

        loc = ("groups", name, "self_chat")
        if _WHATSAPP not in group.channels:
            yield SettingProblem(
                loc=loc,
                message=f"{dotted(loc)} is for groups that ask in WhatsApp",
                notes=(f'add "{_WHATSAPP}" to {dotted(("groups", name, "channels"))}',),
                at_key=True,
            )
        if _WHATSAPP in group.chat:
            yield SettingProblem(
                loc=loc,
                message=f"{dotted(loc)} and a chat of its own: only one can be meant",
                notes=(f"remove self_chat, or chat.{_WHATSAPP}",),
                at_key=True,
            )

    def examine(self, context: ChannelContext) -> Iterator[Finding]:
        """See ChannelPlugin: the library, the session, and each group's chat and people."""
        from pynchy.config import WhatsAppChannelSettings  # noqa: PLC0415 - slow
        from pynchy.findings import problem  # noqa: PLC0415 - the same

        if find_spec(LIBRARY) is None:
            yield problem(_WHATSAPP, "neonize is not installed", INSTALL)
            return
        from pynchy.channels.whatsapp.channel import store_of  # noqa: PLC0415 - slow
        from pynchy.channels.whatsapp.setup import examine  # noqa: PLC0415 - the same

        home = context.data / _WHATSAPP
        store = store_of(context.table(WhatsAppChannelSettings), home)
        yield from examine(
            context.settings, home, store, context.environ, running=context.host_runs
        )


def _is_address(written: str) -> bool:
    from pynchy.channels.whatsapp.addresses import normal  # noqa: PLC0415 - slow

    return bool(normal(written))


PLUGIN = WhatsAppPlugin()
