"""What the desktop channel brings to pynchy; its library is loaded when the channel is made."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pynchy.channels.plugins import ChannelPlugin
from pynchy.desktop import INSTALL, LIBRARY

if TYPE_CHECKING:
    from pathlib import Path

    from pynchy.channels.base import Channel, ChannelContext
    from pynchy.config import ChannelSettings
    from pynchy.desktop.popup import PopupQuestion
    from pynchy.findings import Finding

_DESKTOP = "desktop"
_NO_SYSTEM = "popups are shown on Linux, by D-Bus; this is another system"
_LOG_IN = (
    "run the host in your session (as your own user, while you are logged in), or take "
    f"[channels.{_DESKTOP}] out and run pynchy desktop there (pynchy docs desktop)"
)
_START_SERVICE = "start your desktop's notification service, such as dunst or mako"
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

        if why := _missing():
            raise ConfigError(f"[channels.{_DESKTOP}] cannot be used: {'; '.join(why)}")
        from pynchy.channels.desktop.channel import DesktopChannel  # noqa: PLC0415 - slow
        from pynchy.desktop.dbus import DBusBackend, session_bus  # noqa: PLC0415 - the same
        from pynchy.desktop.popups import PopupIds  # noqa: PLC0415 - the same
        from pynchy.safe_folder import Folder  # noqa: PLC0415 - the same

        remind_after = context.table(DesktopChannelSettings).remind_after.total_seconds()
        return DesktopChannel(
            DBusBackend(session_bus(context.environ)),
            PopupIds(Folder(context.data, _DESKTOP)),
            _user_name(),
            lambda asked: _page_of(asked, context.data),
            remind_after or None,
        )

    def examine(self, context: ChannelContext) -> Iterator[Finding]:
        """See ChannelPlugin: the library, the bus, the service, and its buttons."""
        from pynchy.findings import fine, problem, warning  # noqa: PLC0415 - slow

        if why := _missing():
            yield problem(_DESKTOP, *why)
            return
        from pynchy.desktop.dbus import NO_BUS, examine, session_bus  # noqa: PLC0415 - slow
        from pynchy.desktop.popups import NO_BUTTONS  # noqa: PLC0415 - the same

        found = examine(session_bus(context.environ))
        if found.problem:
            fix = _LOG_IN if found.problem == NO_BUS else _START_SERVICE
            yield problem(_DESKTOP, found.problem, fix)
        elif not found.abilities.actions:
            yield warning(_DESKTOP, f"{found.name}: {NO_BUTTONS}", _OTHER_SERVICE)
        else:
            yield fine(_DESKTOP, f"questions pop up, by {found.name}")


def _missing() -> tuple[str, str] | None:
    """Return what keeps popups from working here, and what to do about it."""
    if sys.platform in {"darwin", "win32"}:
        return _NO_SYSTEM, f"remove [channels.{_DESKTOP}]"
    if find_spec(LIBRARY) is None:
        return f"{LIBRARY} is not installed", INSTALL
    return None


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
