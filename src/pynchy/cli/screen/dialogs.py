"""Small questions to the person: why, for how long, and which keys there are.

Escape leaves each of them, and nothing has happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.events import Key as KeyPress
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from pynchy.cli.screen.keymap import IGNORE_KEYS_SECONDS, Clock
from pynchy.cli.screen.saved_state import BEFORE_END, SavedState
from pynchy.cli.text import duration, one_line
from pynchy.cli.views import HostQuestion
from pynchy.inbox.keys import BINDINGS, SCREEN_BINDINGS, SNOOZES, Snooze

_MAX_REASON = 2_000


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
