"""The settings: what can be set, and how pynchy.toml is read.

loading   text ► tomli ► models ► checks ► Settings, or ConfigError
models    what can be set; channels: in their tables; values: how it is written
checks    what does not fit together; errors: what is wrong, in words
source    where things stand in the file: file:line:column, the line and a caret
"""

from pynchy.config.channels import (
    DESKTOP,
    KNOWN_CHANNELS,
    LOCAL,
    SLACK,
    TOKEN_CHANNELS,
    WEB,
    WHATSAPP,
    ChannelSettings,
    DesktopChannelSettings,
    SlackChannelSettings,
    WebChannelSettings,
    WhatsAppChannelSettings,
)
from pynchy.config.loading import example_settings
from pynchy.config.models import (
    ACP,
    BOXES,
    KINDS,
    CodexSourceSettings,
    GroupSettings,
    HttpSettings,
    LauncherSettings,
    OpenCodeSourceSettings,
    PermissionSettings,
    PhuxSourceSettings,
    RetentionSettings,
    Settings,
)
from pynchy.config.values import PLACEHOLDERS, Duration, Size, is_loopback, split_address

__all__ = [
    "ACP",
    "BOXES",
    "DESKTOP",
    "KINDS",
    "KNOWN_CHANNELS",
    "LOCAL",
    "PLACEHOLDERS",
    "SLACK",
    "TOKEN_CHANNELS",
    "WEB",
    "WHATSAPP",
    "ChannelSettings",
    "CodexSourceSettings",
    "DesktopChannelSettings",
    "Duration",
    "GroupSettings",
    "HttpSettings",
    "LauncherSettings",
    "OpenCodeSourceSettings",
    "PermissionSettings",
    "PhuxSourceSettings",
    "RetentionSettings",
    "Settings",
    "Size",
    "SlackChannelSettings",
    "WebChannelSettings",
    "WhatsAppChannelSettings",
    "example_settings",
    "is_loopback",
    "split_address",
]
