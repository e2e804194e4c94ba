"""Questions as popups of the desktop, and what people do to them.

popup          a question as a popup: title, body, buttons, urgency (pure)
backend        what a notification service must do: show, close, and tell what happens to popups
dbus           Linux: org.freedesktop.Notifications, by jeepney
other_systems  macOS and Windows: their notification centres, by desktop-notifier
popups         which question has which popup: shown once, replaced, closed, reminded of, again

Nothing here knows the bridge or HTTP: a host's channel and a person's session run the same.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pynchy.desktop.backend import Backend

MACOS = "darwin"
OTHER_SYSTEMS = frozenset({MACOS, "win32"})
INSTALL = "pip install 'pynchy[desktop]' (or, in a clone, pip install '.[desktop]')"


def missing_library(system: str = sys.platform) -> str:
    """Return the library that popups need on a system and that is not installed; else nothing."""
    needed = "desktop_notifier" if system in OTHER_SYSTEMS else "jeepney"
    return needed if find_spec(needed) is None else ""


def make_backend(environ: Mapping[str, str], system: str = sys.platform) -> Backend:
    """Return what shows popups on a system. Its library is loaded only now."""
    if system in OTHER_SYSTEMS:
        from pynchy.desktop.other_systems import SystemBackend  # noqa: PLC0415 - an extra

        return SystemBackend(system)
    from pynchy.desktop.dbus import DBusBackend, session_bus  # noqa: PLC0415 - the same

    return DBusBackend(session_bus(environ))
