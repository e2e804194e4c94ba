"""What a channel brings to pynchy, and where channels are found: by entry point.

Nothing here is slow to import, and of a plug-in nothing is loaded before it is needed. The
built-in channels are entry points like all others; that they are known without a look spares
every command the search.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pynchy.errors import PluginBroken

if TYPE_CHECKING:
    from pynchy.channels.base import Channel, ChannelContext
    from pynchy.config import ChannelSettings, GroupSettings
    from pynchy.config.errors import SettingProblem
    from pynchy.findings import Finding

ENTRY_POINTS = "pynchy.channels"
# The same as in pyproject.toml.
BUILT_IN = {
    "desktop": "pynchy.channels.desktop.plugin:PLUGIN",
    "local": "pynchy.channels.plugins:LOCAL_PLUGIN",
    "slack": "pynchy.channels.slack.plugin:PLUGIN",
    "web": "pynchy.channels.plugins:WEB_PLUGIN",
    "whatsapp": "pynchy.channels.whatsapp.plugin:PLUGIN",
}
_OWN_METADATA = "pynchy-"


class PluginCommand(NamedTuple):
    """A command of the command line: a click command as "module:attribute", and a line of help."""

    target: str
    help: str


class ChannelPlugin(ABC):
    """What a channel brings; an entry point of the group `pynchy.channels` names an instance.

    Who may answer is not among it: that is for the host and the settings to say.
    """

    # The name of the entry point, of the table [channels.NAME] and of the channel.
    name = ""
    # Whether a group that asks here must say where, in its `chat`.
    needs_chat = True
    # The words after `pynchy`; a name that pynchy has itself is pynchy's.
    commands: Mapping[str, PluginCommand] = MappingProxyType({})

    @abstractmethod
    def settings(self) -> type[ChannelSettings]:
        """Return the model of the table [channels.NAME]."""

    @abstractmethod
    def make(self, context: ChannelContext) -> Channel:
        """Return the channel. Raise ConfigError for what a person has to put right first."""

    def check_chat(self, chat: str) -> str:
        """Return what a group's `chat` must be, in words after "must be"; nothing if it is so."""
        del chat
        return ""

    def check_user(self, user: str) -> str:
        """Return what an entry of `allowed_users` must be, in the same way."""
        del user
        return ""

    def check_group(self, name: str, group: GroupSettings) -> Iterable[SettingProblem]:
        """Return what else is wrong with a group's settings, as far as the channel is concerned."""
        del name, group
        return ()

    def examine(self, context: ChannelContext) -> Iterable[Finding]:
        """Yield what `pynchy doctor` says of the channel, which has a table in the settings."""
        del context
        return ()


class LocalPlugin(ChannelPlugin):
    """The terminal and the HTTP interface."""

    name = "local"
    needs_chat = False

    def settings(self) -> type[ChannelSettings]:
        """See ChannelPlugin."""
        from pynchy.config.channels import LocalChannelSettings  # noqa: PLC0415 - slow

        return LocalChannelSettings

    def make(self, context: ChannelContext) -> Channel:
        """See ChannelPlugin."""
        from pynchy.channels.base import LocalChannel  # noqa: PLC0415 - slow

        del context
        return LocalChannel()


class WebPlugin(ChannelPlugin):
    """The page in the browser."""

    name = "web"
    needs_chat = False

    def settings(self) -> type[ChannelSettings]:
        """See ChannelPlugin."""
        from pynchy.config.channels import WebChannelSettings  # noqa: PLC0415 - slow

        return WebChannelSettings

    def make(self, context: ChannelContext) -> Channel:
        """See ChannelPlugin."""
        from pynchy.channels.base import WebChannel  # noqa: PLC0415 - slow

        del context
        return WebChannel()


LOCAL_PLUGIN = LocalPlugin()
WEB_PLUGIN = WebPlugin()


def load_plugin(name: str) -> ChannelPlugin | None:
    """Return the plug-in of this name; None if there is none. Raise PluginBroken."""
    targets = (BUILT_IN[name],) if name in BUILT_IN else installed().get(name, ())
    if len(targets) > 1:
        raise PluginBroken(f"several packages bring the channel {name}: {', '.join(targets)}")
    return _load(name, targets[0]) if targets else None


def known_names() -> list[str]:
    """Return the names of all channels, the built-in ones first."""
    return [*BUILT_IN, *_others()]


def find_command(word: str) -> PluginCommand | None:
    """Return the command that a plug-in brings. Raise PluginBroken if it is its name that fails."""
    for name in chain(BUILT_IN, _others()):
        try:
            plugin = load_plugin(name)
        except PluginBroken:
            if name == word:
                raise
            continue
        if plugin is not None and word in plugin.commands:
            return plugin.commands[word]
    return None


def all_commands() -> tuple[dict[str, PluginCommand], list[str]]:
    """Return the commands of all plug-ins by name, and what is wrong with which plug-in."""
    commands: dict[str, PluginCommand] = {}
    broken: list[str] = []
    for name in known_names():
        try:
            plugin = load_plugin(name)
        except PluginBroken as exc:
            broken.append(str(exc))
        else:
            commands |= {
                word: command
                for word, command in (plugin.commands if plugin else {}).items()
                if word not in commands
            }
    return commands, broken


def load_target(target: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Return what "module:attribute" names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def installed() -> Mapping[str, tuple[str, ...]]:
    """Return what other packages bring: "module:attribute" by name, several if several do."""
    return _scan(tuple(sys.path))


def usurped_names() -> list[str]:
    """Return the built-in names that another package claims as well, and does not get."""
    return sorted(installed().keys() & BUILT_IN.keys())


def _others() -> Iterator[str]:
    """Yield the other names; nothing is searched for before the first is asked for."""
    yield from sorted(installed().keys() - BUILT_IN.keys())


def _is_no_channel(name: str) -> bool:
    from pynchy.channels.base import NO_CHANNELS  # noqa: PLC0415 - slow, and seldom needed

    return name in NO_CHANNELS


def _load(name: str, target: str) -> ChannelPlugin:
    try:
        plugin = load_target(target)
    except Exception as exc:
        raise PluginBroken(
            f"the channel {name} cannot be loaded: {type(exc).__name__}: {exc} ({target})"
        ) from exc
    if name not in BUILT_IN and _is_no_channel(name):
        raise PluginBroken(f"no channel can be called {name}: answers without one are told so")
    if not isinstance(plugin, ChannelPlugin) or plugin.name != name:
        raise PluginBroken(f"the channel {name} cannot be used: {target} is no ChannelPlugin of it")
    return plugin


@lru_cache(maxsize=1)
def _scan(path: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    if not any(map(_may_have_plugins, path)):
        return MappingProxyType({})
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    found: dict[str, tuple[str, ...]] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        known = found.get(entry.name, ())
        if BUILT_IN.get(entry.name) != entry.value and entry.value not in known:
            found[entry.name] = (*known, entry.value)
    return MappingProxyType(found)


def _may_have_plugins(folder: str) -> bool:
    """True unless no package in this folder but pynchy itself brings channels.

    To import what reads the metadata properly takes longer than to look into the few files.
    """
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return os.path.isfile(folder)  # noqa: PTH113 - pathlib is no faster
    kept = [n for n in names if n.endswith(("-info", ".egg")) and not n.startswith(_OWN_METADATA)]
    return any(_names_us(f"{folder or '.'}/{name}/entry_points.txt") for name in kept)


def _names_us(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is no faster
            return ENTRY_POINTS.encode() in file.read()
    except OSError:
        return False
