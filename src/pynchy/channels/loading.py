"""Read the settings with all channels that are installed, make those that have a table, run them.

A plug-in that fails stops itself and nobody else: its channel is there, and says what is wrong. A
channel that stops by itself is opened again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import ConfigDict

from pynchy.aio import cancelled_at_end, is_being_cancelled
from pynchy.channels.base import (
    Channel,
    ChannelContext,
    ChannelReplies,
    ReplyHandler,
    said_of_itself,
)
from pynchy.channels.plugins import BUILT_IN, ChannelPlugin, known_names, load_plugin, usurped_names
from pynchy.config import ChannelSettings, GroupSettings, Settings
from pynchy.config.errors import Loc, SettingProblem, allowed, dotted
from pynchy.config.loading import read_settings
from pynchy.errors import CannotShow, ChannelUnavailable, ConfigError, PluginBroken
from pynchy.findings import Finding, problem, warning
from pynchy.model import Card, Question, RequestId
from pynchy.permissions.origins import wrong_patterns

log = logging.getLogger(__name__)
T = TypeVar("T")
_POLL_SECONDS = 1.0
_REOPEN_SECONDS = 2.0
_REOPEN_MAX_SECONDS = 300.0
# For so long it is told that a channel had stopped, after it was opened again.
_TOLD_SECONDS = 600.0
_REINSTALL = "install its package again, or take its table out of the settings"


def load_settings(path: Path | None) -> Settings:
    """Return the settings, with the tables of all channels that are installed. Raise ConfigError.

    See `read_settings`.
    """
    return read_settings(
        path, InstalledChannels(), lambda found: [*_wrong_groups(found), *wrong_patterns(found)]
    )


def make_channels(settings: Settings, environ: Mapping[str, str], data: Path) -> dict[str, Channel]:
    """Return the channels by name; what one must keep, it keeps in the data folder.

    Raise ConfigError if one lacks its libraries or secrets.
    """
    return {
        name: _make(name, ChannelContext(settings, environ, data, name=name))
        for name in settings.channels
    }


def examine_channels(context: ChannelContext) -> Iterator[Finding]:
    """Yield what `pynchy doctor` says of the channels in the settings."""
    for name in context.settings.channels:
        try:
            yield from _plugin(name).examine(replace(context, name=name))
        except Exception as exc:  # noqa: BLE001 - doctor tells what the others say as well
            yield problem(f"channel {name}", _words(exc), _REINSTALL)
    for name in usurped_names():
        told = "another package brings a channel of this name too, which is not used"
        yield warning(f"channel {name}", told, "remove that package")


class InstalledChannels(Mapping[str, type[ChannelSettings]]):
    """The model of each channel's table by its name; others are looked for when one is named."""

    def __getitem__(self, name: str) -> type[ChannelSettings]:
        try:
            plugin = load_plugin(name)
            if plugin is None:
                raise KeyError(name)
            return _model_of(plugin)
        except PluginBroken:
            log.exception("channel.not_loaded", extra={"channel": name})
            return UnloadedChannelSettings

    def __iter__(self) -> Iterator[str]:
        return iter(known_names())

    def __len__(self) -> int:
        return len(known_names())


class UnloadedChannelSettings(ChannelSettings):
    """The table of a channel that could not be loaded: nobody can say what is right in it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def secrets(self) -> tuple[str, ...]:
        """Return whatever may be the name of a variable that holds a secret."""
        return tuple(v for v in (self.model_extra or {}).values() if isinstance(v, str))


class OpenChannels:
    """Opens the channels, opens again what stops or could not be opened, and closes them."""

    def __init__(
        self, channels: Mapping[str, Channel], handler: ReplyHandler, timeout_seconds: float
    ) -> None:
        self._channels = channels
        self._handler = handler
        self._timeout_seconds = timeout_seconds
        # What is told of a channel that could not be opened, or has stopped not long ago.
        self._unopened: dict[str, str] = {}
        self._stopped: dict[str, str] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open all, keep them open while the context lasts, and close them in reverse.

        One that cannot be opened holds up nobody.
        """
        async with AsyncExitStack() as stack:
            for name, channel in self._channels.items():
                # Before it is open: a start that is broken off leaves nothing behind.
                stack.push_async_callback(self._try, name, channel.close)
                await self._open(name, channel)
            tasks = await stack.enter_async_context(cancelled_at_end())
            for name, channel in self._channels.items():
                tasks.create_task(self._keep_open(name, channel), name=f"channel {name}")
            yield

    def problems(self) -> list[str]:
        """Say what is wrong with the channels, in words for a person."""
        told = {name: said_of_itself(channel.problem) for name, channel in self._channels.items()}
        own = [f"{name}: {text}" for name, text in told.items() if text]
        return [*self._unopened.values(), *self._stopped.values(), *own, *self._backlogs()]

    def _backlogs(self) -> list[str]:
        # Not "slack: …", which says that the channel is down.
        told = {name: said_of_itself(channel.backlog) for name, channel in self._channels.items()}
        return [f"cards come late in {name}: {text}" for name, text in told.items() if text]

    async def _keep_open(self, name: str, channel: Channel) -> None:
        wait, opened_at = _REOPEN_SECONDS, time.monotonic()
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            stopped = said_of_itself(channel.stopped)
            if stopped is None and name not in self._unopened:
                if time.monotonic() - opened_at > _TOLD_SECONDS:
                    self._stopped.pop(name, None)
                    wait = _REOPEN_SECONDS
                continue
            if stopped is not None:
                log.error("channel.stopped", extra={"channel": name, "why": stopped})
                self._stopped[name] = f"{name}: stopped ({stopped}) and is opened again"
            await self._try(name, channel.close)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _REOPEN_MAX_SECONDS)
            await self._open(name, channel)
            opened_at = time.monotonic()

    async def _open(self, name: str, channel: Channel) -> None:
        replies = ChannelReplies(name, self._handler)
        problem = await self._try(name, lambda: channel.open(replies))
        self._unopened.pop(name, None)
        if problem is not None:
            self._unopened[name] = f"{name}: could not be opened: {problem}"
        elif not_yet := said_of_itself(channel.problem):
            log.info("channel.not_ready", extra={"channel": name, "why": not_yet})

    async def _try(self, name: str, work: Callable[[], Awaitable[None]]) -> str | None:
        """Open or close a channel. Return what is broken there; it stops nobody else."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await work()
        except ChannelUnavailable as exc:
            # It is up to the channel to connect later, and to say so until then.
            log.warning("channel.unavailable", extra={"channel": name, "why": str(exc)})
        except TimeoutError:
            log.warning("channel.timeout", extra={"channel": name})
            return "it took too long"
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            log.warning("channel.cancelled_itself", extra={"channel": name})
            return "it cancelled its own call"
        except Exception as exc:
            log.exception("channel.failed", extra={"channel": name})
            return type(exc).__name__
        return None


class UnloadedChannel(Channel):
    """Stands for a channel that could not be loaded or made, and says so."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self._why = why

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """See Channel."""
        del jid, request_id, questions, card
        raise CannotShow(self._why)

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """See Channel."""
        del jid, message_id, request_id, questions, card
        raise ChannelUnavailable(self._why)

    def problem(self) -> str | None:
        """See Channel."""
        return self._why


def _plugin(name: str) -> ChannelPlugin:
    plugin = load_plugin(name)
    if plugin is None:
        raise ConfigError(f"no package brings a channel {name}; {allowed(known_names())}")
    return plugin


def _model_of(plugin: ChannelPlugin) -> type[ChannelSettings]:
    model = _try(plugin.name, plugin.settings)
    if not issubclass(model, ChannelSettings):
        raise PluginBroken(f"the channel {plugin.name} has settings that are no ChannelSettings")
    return model


def _make(name: str, context: ChannelContext) -> Channel:
    try:
        plugin = _plugin(name)
        made = _try(name, lambda: plugin.make(context))
    except PluginBroken as exc:
        log.exception("channel.not_made", extra={"channel": name})
        return UnloadedChannel(name, str(exc))
    if not isinstance(made, Channel):
        return UnloadedChannel(name, f"its plug-in made no channel, but {type(made).__name__}")
    return made


def _try(name: str, work: Callable[[], T]) -> T:
    """Return what comes of it. Raise PluginBroken for what is wrong with the plug-in itself."""
    try:
        return work()
    except (ConfigError, PluginBroken):
        raise
    except Exception as exc:
        raise PluginBroken(f"the channel {name} cannot be used: {_words(exc)}") from exc


def _words(exc: Exception) -> str:
    known = isinstance(exc, ConfigError | PluginBroken)
    return str(exc) if known else f"{type(exc).__name__}: {exc}"


def _wrong_groups(settings: Settings) -> Iterator[SettingProblem]:
    """Let each channel look at the groups: the built-in ones always, the others if configured."""
    for name in dict.fromkeys((*BUILT_IN, *settings.channels)):
        try:
            found = [*_look_at_groups(_plugin(name), settings.groups)]
        except PluginBroken:
            continue  # told when its table was read
        except Exception:
            log.exception("channel.check_failed", extra={"channel": name})
        else:
            yield from found


def _look_at_groups(
    plugin: ChannelPlugin, groups: Mapping[str, GroupSettings]
) -> Iterator[SettingProblem]:
    for name, group in groups.items():
        chat: Loc = ("groups", name, "chat", plugin.name)
        if plugin.name in group.chat:
            yield from _must_be(chat, plugin.check_chat(group.chat[plugin.name]))
        elif plugin.needs_chat and plugin.name in group.channels:
            says = f"{dotted(chat[:2])} asks in {plugin.name} and does not say where"
            note = f'say it with: chat = {{ {plugin.name} = "…" }}'
            yield SettingProblem((*chat[:2], "channels"), says, (note,))
        users: Loc = ("groups", name, "allowed_users", plugin.name)
        for number, user in enumerate(group.allowed_users.get(plugin.name, ())):
            yield from _must_be((*users, number), plugin.check_user(user))
        yield from plugin.check_group(name, group)


def _must_be(loc: Loc, phrase: str) -> Iterable[SettingProblem]:
    return [SettingProblem(loc, f"{dotted(loc)} must be {phrase}")] if phrase else []
