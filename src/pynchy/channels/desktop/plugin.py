"""What the desktop channel brings to pynchy; its library is loaded when the channel is made."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pynchy.channels.plugins import ChannelPlugin
from pynchy.desktop import INSTALL, make_backend, missing_library

if TYPE_CHECKING:
    from pathlib import Path

    from pynchy.channels.base import Channel, ChannelContext
    from pynchy.config import ChannelSettings
    from pynchy.desktop.popup import PopupQuestion
    from pynchy.findings import Finding

_DESKTOP = "desktop"
_OTHER_SERVICE = "use a notification service with buttons, or answer in another channel"


class DesktopPlugin(ChannelPlugin):
    """Popups of the desktop."""

    name = _DESKTOP
    needs_chat = False

    def settings(self) -> type[ChannelSettings]:
        """See ChannelPlugin."""
        from pynchy.config import DesktopChannelSettings  # noqa: PLC0415 - slow

        return DesktopChannelSettings

    def make(self, context: ChannelContext) -> Channel:
        """See ChannelPlugin."""
        from pynchy.config import DesktopChannelSettings  # noqa: PLC0415 - slow
        from pynchy.errors import ConfigError  # noqa: PLC0415 - the same

        if library := missing_library():
            raise ConfigError(f"[channels.{_DESKTOP}] needs {library}, to be had by {INSTALL}")
        from pynchy.channels.desktop.channel import DesktopChannel  # noqa: PLC0415 - slow
        from pynchy.desktop.popup_ids import PopupIds  # noqa: PLC0415 - the same
        from pynchy.safe_folder import Folder  # noqa: PLC0415 - the same

        remind_after = context.table(DesktopChannelSettings).remind_after.total_seconds()
        return DesktopChannel(
            make_backend(context.environ),
            PopupIds(Folder(context.data, _DESKTOP)),
            _user_name(),
            lambda asked: _page_of(asked, context.data),
            remind_after or None,
        )

    def examine(self, context: ChannelContext) -> Iterator[Finding]:
        """See ChannelPlugin: the library, the bus, the service, and its buttons."""
        from pynchy.findings import fine, problem, warning  # noqa: PLC0415 - slow

        if library := missing_library():
            yield problem(_DESKTOP, f"{library} is not installed", INSTALL)
            return
        from pynchy.desktop.backend import examine  # noqa: PLC0415 - slow
        from pynchy.desktop.popups import NO_BUTTONS  # noqa: PLC0415 - the same

        found = asyncio.run(examine(make_backend(context.environ)))
        if found.problem:
            yield problem(_DESKTOP, found.problem, found.fix)
        elif not found.abilities.actions:
            yield warning(_DESKTOP, f"{found.name}: {NO_BUTTONS}", _OTHER_SERVICE)
        else:
            yield fine(_DESKTOP, f"questions pop up, by {found.name}")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"


def _page_of(asked: PopupQuestion, data: Path) -> str | None:
    """Return where the question's page is: at the public address, or at the host's own."""
    from pynchy.data_dir import DataFolder  # noqa: PLC0415 - slow
    from pynchy.errors import NoHost  # noqa: PLC0415 - the same

    if asked.card.link:
        return asked.card.link
    try:
        return f"{DataFolder(data).host().url}/q/{asked.card.group}/{asked.request_id}"
    except NoHost:
        return None


PLUGIN = DesktopPlugin()
