"""Where rules come from: the settings, and the file of those that people made on cards.

What a pattern may be is the same for both. The file has permissions for single calls, too. It is
read whole or not at all: one that cannot be understood is left as it is, and told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from pynchy import wire
from pynchy.config import PermissionSettings, Settings
from pynchy.config.errors import SettingProblem, dotted
from pynchy.errors import RuleRefused
from pynchy.misspelling import similar_tool
from pynchy.model import GroupName
from pynchy.permissions.patterns import (
    PatternProblem,
    ToolPattern,
    check_allowing,
    check_refusing,
    read_pattern,
)
from pynchy.rule import Effect, Grant, Origin, Rule
from pynchy.safe_folder import Folder, UnsafeFile

FILE_NAME = "rules.json"
_CAP = 64 * 1024 * 1024


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


class UnreadableRules(Exception):
    """The file cannot be used; the text says why, and quotes nothing of it."""


class RuleFile:
    """`rules.json` in the data folder."""

    def __init__(self, data: Path) -> None:
        self._folder = Folder(data)
        self.path = data / FILE_NAME

    def read(self) -> tuple[list[Rule], list[Grant]]:
        """Return what is in it; nothing where there is none. Raise UnreadableRules."""
        try:
            found, grants = wire.read_rules(self._folder.read(FILE_NAME, _CAP))
            for rule in found:
                read_pattern(rule.pattern)
        except FileNotFoundError:
            return [], []
        except (OSError, ValueError, UnsafeFile, ImportError) as exc:
            raise UnreadableRules(_why_unreadable(exc)) from exc
        return found, grants

    def write(self, rules: Iterable[Rule], grants: Iterable[Grant]) -> None:
        """Put these in its place. Raise OSError, or RuleRefused where they are too many."""
        data = wire.rules_json(list(rules), list(grants))
        if len(data) > _CAP:
            raise RuleRefused("there are too many rules: revoke some (pynchy rules)")
        self._folder.replace(FILE_NAME, data)


def _why_unreadable(exc: Exception) -> str:
    match exc:
        case OSError():
            return exc.strerror or type(exc).__name__
        case ImportError():
            return f"the parser of commands cannot be loaded: {exc}"
    # Only the kind: the error's own text would quote what the file says.
    return "it is damaged, or of a later pynchy"
