"""The keys of the inbox, once, for every screen that shows it.

No key answers by itself: a number only marks a choice, and Enter sends what is marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Action(StrEnum):
    """What a key does."""

    NEXT = "next"
    PREVIOUS = "previous"
    NEXT_WAITING = "next_waiting"
    CHOOSE = "choose"
    SEND = "send"
    WRITE = "write"
    DECLINE = "decline"
    UNDO = "undo"
    SNOOZE = "snooze"
    SEARCH = "search"
    HELP = "help"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Binding:
    """The keys of one action, the first of them to be shown, and what it does in a few words."""

    action: Action
    keys: tuple[str, ...]
    text: str
    shown: str = ""

    @property
    def hint(self) -> str:
        """What a control shows."""
        return self.shown or self.keys[0]


# Names of keys are those of the browser's KeyboardEvent.key.
BINDINGS = (
    Binding(Action.NEXT, ("j",), "next question"),
    Binding(Action.PREVIOUS, ("k",), "previous question"),
    Binding(Action.NEXT_WAITING, ("n",), "next question that waits, most urgent first"),
    Binding(Action.CHOOSE, tuple("123456789"), "mark an option", shown="1-9"),
    Binding(Action.SEND, ("Enter",), "send what is marked, at once", shown="↵"),
    Binding(Action.WRITE, ("w",), "write your own words (Ctrl+Enter sends them)"),
    Binding(Action.DECLINE, ("d",), "decline: asks for a reason first"),
    Binding(Action.UNDO, ("u",), "take a choice back before it is sent"),
    Binding(Action.SNOOZE, ("h",), "hide for a while"),
    Binding(Action.SEARCH, ("/",), "search"),
    Binding(Action.HELP, ("?",), "show these keys"),
    Binding(Action.LEAVE, ("Escape",), "leave a field or a dialog; never declines", shown="Esc"),
)


@dataclass(frozen=True, slots=True)
class Snooze:
    """A choice of how long a question is hidden; `until_hour` counts on the person's clock."""

    text: str
    length: timedelta | None = None
    until_hour: int | None = None


SNOOZES = (
    Snooze("15 minutes", timedelta(minutes=15)),
    Snooze("1 hour", timedelta(hours=1)),
    Snooze("until tomorrow, 9:00", until_hour=9),
)


def hint(action: Action) -> str:
    """Return the key that a control for the action shows."""
    return next(binding.hint for binding in BINDINGS if binding.action is action)


class ScreenAction(StrEnum):
    """What a key does in a terminal where a page has a link or a button."""

    AGENTS = "agents"
    HISTORY = "history"
    UNFOLD = "unfold"
    HIDDEN = "hidden"
    COPY = "copy"
    RETRY = "retry"
    DISCARD = "discard"
    QUIT = "quit"


@dataclass(frozen=True, slots=True)
class ScreenBinding:
    """The key of such an action."""

    action: ScreenAction
    key: str
    text: str


SCREEN_BINDINGS = (
    ScreenBinding(
        ScreenAction.AGENTS, "a", "list the agents that wait, and answers that did not arrive"
    ),
    ScreenBinding(ScreenAction.HISTORY, "o", "list the questions that are over"),
    ScreenBinding(ScreenAction.UNFOLD, "f", "show all of a long text, or fold it again"),
    ScreenBinding(ScreenAction.HIDDEN, "z", "list hidden questions, too (h shows one again)"),
    ScreenBinding(ScreenAction.COPY, "c", "copy the answer that you began to write"),
    ScreenBinding(ScreenAction.RETRY, "r", "deliver an answer again (in the list of agents)"),
    ScreenBinding(
        ScreenAction.DISCARD, "x", "discard your draft (in the list of agents: the answer)"
    ),
    ScreenBinding(ScreenAction.QUIT, "q", "quit"),
)
