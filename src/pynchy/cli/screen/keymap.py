"""Which key does what, from the one table that the page uses too; and the screen's clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.text import Text
from textual.events import Key as KeyPress

from pynchy.inbox.keys import BINDINGS, SCREEN_BINDINGS, Action, ScreenAction, hint

# What has just appeared takes no keys for so long: they were meant for something else.
IGNORE_KEYS_SECONDS = 0.4

# Comes before each key where single keys are off. Not Alt: terminals tell it in too many ways.
BEFORE_KEYS = "ctrl+k"
_NAMES = {"enter": "Enter", "escape": "Escape"}
_ACTIONS: dict[str, Action | ScreenAction] = {
    **{key: binding.action for binding in BINDINGS for key in binding.keys},
    **{binding.key: binding.action for binding in SCREEN_BINDINGS},
}
# What a key that was meant for something else may do.
HARMLESS = frozenset(
    {Action.NEXT, Action.PREVIOUS, Action.NEXT_WAITING, Action.HELP, Action.UNDO, Action.LEAVE}
    | {ScreenAction.QUIT, ScreenAction.AGENTS, ScreenAction.HISTORY}
)
# The most needed first.
_HINTS = (
    (hint(Action.HELP), "keys"),
    ("q", "leave"),
    (f"{hint(Action.NEXT)}/{hint(Action.PREVIOUS)}", "move"),
    (hint(Action.CHOOSE), "mark"),
    (hint(Action.SEND), "send"),
    (hint(Action.WRITE), "write"),
    (hint(Action.DECLINE), "decline"),
    (hint(Action.UNDO), "undo"),
    (hint(Action.SNOOZE), "hide"),
    (hint(Action.NEXT_WAITING), "next waiting"),
    (hint(Action.SEARCH), "search"),
    ("a", "agents"),
    ("o", "over"),
)


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is, and how much of it has passed."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic


def name_of(event: KeyPress) -> str:
    """Return the key as the table names it."""
    return _NAMES.get(event.key) or event.character or ""


def action_of(name: str) -> Action | ScreenAction | None:
    """Return what the key is for."""
    return _ACTIONS.get(name)


def is_single(event: KeyPress) -> bool:
    """True for a letter, a digit or a sign on its own. Space works on what has the focus."""
    return event.is_printable and event.character != " "


def hints(width: int, *, single_keys: bool = True) -> Text:
    """Return the line at the bottom: as many keys as fit; ? shows the others."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if not single_keys:
        line.append("F1", "bold cyan").append(" keys  after Ctrl+K: ", "dim")
    for key, what in _HINTS:
        if len(line) + len(f"{key} {what}") > width:
            break
        line.append(key, "bold cyan").append(f" {what}  ", "dim")
    line.rstrip()
    return line
