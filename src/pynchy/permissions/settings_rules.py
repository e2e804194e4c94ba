"""The rules that are in the settings, and what is wrong with them.

What a pattern may be is the same for rules that are made on cards.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pynchy.config import PermissionSettings, Settings
from pynchy.config.errors import SettingProblem, dotted
from pynchy.misspelling import similar_tool
from pynchy.model import GroupName
from pynchy.permissions.patterns import (
    PatternProblem,
    ToolPattern,
    check_allowing,
    check_refusing,
    read_pattern,
)
from pynchy.rule import Effect, Origin, Rule


def settings_rules(settings: Settings, now: datetime) -> Iterator[Rule]:
    """Yield the rules that the settings have."""
    for name, group in settings.groups.items():
        for effect, pattern in _patterns(group.permissions):
            yield Rule(
                id=f"settings:{effect}:{pattern}",
                effect=effect,
                pattern=pattern,
                group=GroupName(name),
                made_by="the settings",
                made_at=now,
                origin=Origin.SETTINGS,
            )


def wrong_patterns(settings: Settings) -> Iterator[SettingProblem]:
    """Yield what is wrong with the patterns of the settings."""
    for name, group in settings.groups.items():
        for effect in Effect:
            for number, pattern in enumerate(getattr(group.permissions, effect.value)):
                loc = ("groups", name, "permissions", effect.value, number)
                try:
                    check_pattern(effect, pattern)
                except PatternProblem as exc:
                    yield SettingProblem(loc, f"{dotted(loc)}: this pattern {exc}")


def misspelt_tools(settings: Settings) -> Iterator[tuple[GroupName, str]]:
    """Yield the group and the words for each rule whose tool is probably written wrongly.

    Such a rule is used all the same: what tools a program has is for it to say.
    """
    for name, group in settings.groups.items():
        for effect, pattern in _patterns(group.permissions):
            read = read_pattern(pattern)
            tool = read.name if isinstance(read, ToolPattern) and not read.is_prefix else ""
            near = similar_tool(tool) if tool else ""
            # What denies or asks does not mind upper and lower case.
            is_heeded = effect is not Effect.ALLOW and near.casefold() == tool.casefold()
            if near and not is_heeded:
                where = dotted(("groups", name, "permissions", effect.value))
                yield GroupName(name), f"{where}: no tool is called {tool}; did you mean {near}?"


def _patterns(permissions: PermissionSettings) -> Iterator[tuple[Effect, str]]:
    for effect in Effect:
        for pattern in dict.fromkeys(getattr(permissions, effect.value)):
            yield effect, pattern


def check_pattern(effect: Effect, pattern: str) -> None:
    """Raise PatternProblem for a pattern that no rule of that effect can have."""
    known = read_pattern(pattern)
    (check_allowing if effect is Effect.ALLOW else check_refusing)(known)
