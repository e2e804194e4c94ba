"""Which questions there are, in which order, and which one is being looked at.

Pure: what the host said goes in, rows come out. What is selected stays selected wherever its row
goes; nothing is ever selected because it is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pynchy.cli.views import HostQuestion
from pynchy.fair_order import fair_order

Key = tuple[str, str]

LINGER_SECONDS = 8.0


def key_of(view: HostQuestion) -> Key:
    """Return what tells this question from all others."""
    return (view.group, view.request_id)


@dataclass(slots=True)
class ListedQuestion:
    """One question on the screen.

    `over_since` is set when it ended before our eyes, `woken_at` when it came back from a snooze.
    """

    view: HostQuestion
    seen: bool = False
    over_since: float | None = None
    woken_at: float = float("-inf")

    @property
    def key(self) -> Key:
        """See `key_of`."""
        return key_of(self.view)


class QuestionList:
    """Every question that is open or has just ended."""

    def __init__(self) -> None:
        self._entries: dict[Key, ListedQuestion] = {}
        self._ordered: list[ListedQuestion] | None = None
        self._undelivered: set[Key] = set()
        self.selected: Key | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key | None) -> ListedQuestion | None:
        """Return the question, if it is on the screen."""
        return self._entries.get(key) if key is not None else None

    def keys(self) -> set[Key]:
        """Return what is open."""
        return {key for key, entry in self._entries.items() if entry.over_since is None}

    @property
    def undelivered(self) -> int:
        """How many answers did not reach their agent."""
        return len(self._undelivered)

    def over(self) -> set[Key]:
        """Return what ended before our eyes."""
        return self._entries.keys() - self.keys()

    def is_urgent(self, key: Key) -> bool:
        """True if the agent would like an answer soon."""
        return self._entries[key].view.urgency == "high"

    def put(self, view: HostQuestion, at: float) -> bool:
        """Take up the question as it is now. Return True if it is new here."""
        key = key_of(view)
        known = self._entries.get(key)
        self._ordered = None
        if view.state == "undelivered":
            self._undelivered.add(key)
        else:
            self._undelivered.discard(key)
        if known is None:
            if view.waits:
                self._entries[key] = ListedQuestion(view)
            return view.waits
        if not view.waits and known.over_since is None:
            known.over_since = at
        known.view = view
        return False

    def sync(self, views: Iterable[HostQuestion], at: float) -> set[Key]:
        """Take up all that the host has. Return what was open here and is not there any more."""
        listed = set()
        self._undelivered.clear()
        for view in views:
            listed.add(key_of(view))
            self.put(view, at)
        return self.keys() - listed

    def drop(self, key: Key) -> None:
        """Forget a question."""
        if self._entries.pop(key, None) is not None:
            self._ordered = None
        if self.selected == key:
            self.selected = None

    def tidy(self, at: float, keep: Iterable[Key]) -> bool:
        """Forget what ended a while ago and nobody looks at. Return True if there was any."""
        spared = {self.selected, *keep}
        gone = [
            key
            for key, entry in self._entries.items()
            if entry.over_since is not None
            and at - entry.over_since > LINGER_SECONDS
            and key not in spared
        ]
        for key in gone:
            self.drop(key)
        return bool(gone)

    def wake(self, key: Key, at: float) -> None:
        """Put what was snoozed on top."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.woken_at, entry.seen = at, False
            self._ordered = None

    def rows(self, hidden: Iterable[Key] = (), search: str = "") -> list[ListedQuestion]:
        """Return what to list, in order; what is selected is always there."""
        if self._ordered is None:
            fair = fair_order(
                self._entries.values(),
                lambda entry: entry.view.order,
                lambda entry: entry.view.group,
            )
            # What is back from a snooze is first of all.
            self._ordered = sorted(fair, key=lambda entry: -entry.woken_at)
        away, words = set(hidden), search.lower().split()
        return [
            entry
            for entry in self._ordered
            if entry.key == self.selected or (entry.key not in away and _fits(entry.view, words))
        ]


def _fits(view: HostQuestion, words: list[str]) -> bool:
    if not words:
        return True
    text = search_text(view)
    return all(word in text for word in words)


def search_text(view: HostQuestion) -> str:
    """Return everything of the question that a search looks at, in small letters."""
    parts = [view.short_id, view.group, view.agent, view.task, view.title]
    for question in view.questions:
        parts += [question.header, question.text]
        parts += [f"{option.label} {option.description}" for option in question.options]
    if view.ending is not None:
        parts += [view.ending.summary]
    return "\n".join(parts).lower()
