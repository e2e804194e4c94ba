"""pynchy carries an agent's question to a person, and the answer back.

Here is what other programs and plug-ins use. Each name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pynchy.channels.base import Channel as Channel
    from pynchy.channels.base import ChannelContext as ChannelContext
    from pynchy.channels.base import ReplyHandler as ReplyHandler
    from pynchy.channels.loading import load_settings as load_settings
    from pynchy.channels.plugins import ChannelPlugin as ChannelPlugin
    from pynchy.channels.plugins import PluginCommand as PluginCommand
    from pynchy.cli.options import config_option as config_option
    from pynchy.client import HostClient as HostClient
    from pynchy.config import ChannelSettings as ChannelSettings
    from pynchy.config import GroupSettings as GroupSettings
    from pynchy.config import Settings as Settings
    from pynchy.config.errors import SettingProblem as SettingProblem
    from pynchy.config.values import FolderPath as FolderPath
    from pynchy.errors import ChannelUnavailable as ChannelUnavailable
    from pynchy.errors import ConfigError as ConfigError
    from pynchy.errors import PynchyError as PynchyError
    from pynchy.errors import ReplyRejected as ReplyRejected
    from pynchy.findings import Finding as Finding
    from pynchy.findings import fine as fine
    from pynchy.findings import problem as problem
    from pynchy.findings import warning as warning
    from pynchy.model import Answer as Answer
    from pynchy.model import Card as Card
    from pynchy.model import Ending as Ending
    from pynchy.model import Option as Option
    from pynchy.model import OutcomeKind as OutcomeKind
    from pynchy.model import PendingQuestion as PendingQuestion
    from pynchy.model import Question as Question
    from pynchy.model import Reply as Reply
    from pynchy.model import RequestId as RequestId
    from pynchy.model import ShownCard as ShownCard

__version__ = "0.1.0"

_MODULES = {
    "Answer": "model",
    "Card": "model",
    "Channel": "channels.base",
    "ChannelContext": "channels.base",
    "ChannelPlugin": "channels.plugins",
    "ChannelSettings": "config",
    "ChannelUnavailable": "errors",
    "ConfigError": "errors",
    "Ending": "model",
    "Finding": "findings",
    "FolderPath": "config.values",
    "GroupSettings": "config",
    "HostClient": "client",
    "Option": "model",
    "OutcomeKind": "model",
    "PendingQuestion": "model",
    "PluginCommand": "channels.plugins",
    "PynchyError": "errors",
    "Question": "model",
    "Reply": "model",
    "ReplyHandler": "channels.base",
    "ReplyRejected": "errors",
    "RequestId": "model",
    "SettingProblem": "config.errors",
    "Settings": "config",
    "ShownCard": "model",
    "config_option": "cli.options",
    "fine": "findings",
    "load_settings": "channels.loading",
    "problem": "findings",
    "warning": "findings",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
