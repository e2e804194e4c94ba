"""Which key does what, and the small dialogs behind some: why, for how long, which keys there are.

The keys are those of the one table that the page uses too. Escape leaves each dialog, and nothing
has happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.events import Key as KeyPress
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from pynchy.cli.screen.saved_state import BEFORE_END, SavedState
from pynchy.cli.text import duration, one_line
from pynchy.cli.views import HostQuestion
from pynchy.inbox.keys import BINDINGS, SCREEN_BINDINGS, SNOOZES, Action, ScreenAction, Snooze, hint

# What has just appeared takes no keys for so long: they were meant for something else.
IGNORE_KEYS_SECONDS = 0.4

_MAX_REASON = 2_000

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


@dataclass(frozen=True, slots=True)
class Nap:
    """A choice of how long to hide a question."""

    text: str
    until: datetime


def naps(view: HostQuestion, now: datetime) -> list[Nap]:
    """Return for how long the question can be hidden: never up to its end."""
    latest = view.due_at - BEFORE_END
    found: list[Nap] = []
    for snooze in SNOOZES:
        until = _moment(snooze, now)
        if until <= latest:
            found.append(Nap(snooze.text, until))
        elif latest > now:
            left = duration((latest - now).total_seconds())
            return [*found, Nap(f"{left} (it ends soon)", latest)]
    return found


def _moment(snooze: Snooze, now: datetime) -> datetime:
    if snooze.length is not None:
        return now + snooze.length
    tomorrow = now.astimezone() + timedelta(days=1)
    return tomorrow.replace(hour=snooze.until_hour or 0, minute=0, second=0, microsecond=0)


class AskReason(ModalScreen[str | None]):
    """Asks why a question is declined. Returns the reason, be it empty; None keeps it open."""

    BINDINGS = [("escape", "keep", "Keep it open")]  # noqa: RUF012 - as textual has it

    def __init__(self, view: HostQuestion, clock: Clock) -> None:
        super().__init__()
        self._view = view
        self._clock = clock
        self._since = clock.monotonic()

    def compose(self) -> ComposeResult:
        """Lay it out."""
        with Vertical(classes="dialog"):
            yield Static(Text(f"Decline #{self._view.short_id}", "bold"))
            yield Static(Text("Why? The agent reads it (optional)"))
            yield Input(id="reason", max_length=_MAX_REASON, compact=True)
            yield Static(Text("↵ declines, Esc keeps it open", "dim"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Decline it, unless Enter was meant for something else."""
        if self._clock.monotonic() - self._since >= IGNORE_KEYS_SECONDS:
            self.dismiss(event.value.strip())

    def action_keep(self) -> None:
        """Leave it open."""
        self.dismiss(None)


class AskNap(ModalScreen[Nap | None]):
    """Asks for how long to hide a question."""

    BINDINGS = [("escape", "keep", "Cancel")]  # noqa: RUF012 - as textual has it

    def __init__(self, view: HostQuestion, choices: Sequence[Nap]) -> None:
        super().__init__()
        self._view = view
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Lay it out."""
        with Vertical(classes="dialog"):
            yield Static(Text(f"Hide #{self._view.short_id} for", "bold"))
            for number, nap in enumerate(self._choices, 1):
                yield Static(Text().append(f" {number} ", "reverse").append(f" {nap.text}"))
            yield Static(Text("Esc cancels", "dim"))

    def on_key(self, event: KeyPress) -> None:
        """A number chooses."""
        number = int(event.character) if event.character in set("123456789") else 0
        if 1 <= number <= len(self._choices):
            event.stop()
            self.dismiss(self._choices[number - 1])

    def action_keep(self) -> None:
        """Hide nothing."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """The keys, and the switch that turns single ones off."""

    BINDINGS = [  # noqa: RUF012 - as textual has it
        ("escape,question_mark,q,f1", "leave", "Close"),
        ("space", "switch", "Single keys on or off"),
    ]

    def __init__(self, by: str, kept: SavedState) -> None:
        super().__init__()
        self._by = by
        self._kept = kept

    def compose(self) -> ComposeResult:
        """Lay it out."""
        rows = [(binding.hint, binding.text) for binding in BINDINGS]
        rows += [(binding.key, binding.text) for binding in SCREEN_BINDINGS]
        rows += [("Tab", "to the next field, option or button; Space marks an option")]
        text = Text()
        for key, what in rows:
            text.append(f"{key:>5}  ", "bold cyan").append(f"{what}\n")
        text.append("\nIf Ctrl+Enter does nothing in your terminal: Esc, then Enter.\n", "dim")
        text.append(f"You answer as {one_line(self._by)}. Esc closes this.", "dim")
        with VerticalScroll(classes="dialog"):
            yield Static(Text("Keys", "bold"))
            yield Static(self._single_keys(), id="single-keys")
            yield Static(text)

    def _single_keys(self) -> Text:
        is_on = self._kept.single_keys
        said = (
            "Single keys work"
            if is_on
            else "Single keys are off: press Ctrl+K before each; F1 shows this"
        )
        switch = f"; Space turns them {'off' if is_on else 'on'}.\n"
        return Text().append(said, "bold").append(switch, "dim")

    def action_switch(self) -> None:
        """Turn the single keys on or off."""
        self._kept.switch_single_keys()
        self._kept.save()
        self.query_one("#single-keys", Static).update(self._single_keys())

    def action_leave(self) -> None:
        """Close it."""
        self.dismiss(None)
