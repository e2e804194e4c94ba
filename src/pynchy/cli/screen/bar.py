"""The line at the top: what waits, and whether the host is there."""

from __future__ import annotations

from rich.text import Text

from pynchy.cli.event_follower import HostLink
from pynchy.cli.screen.question_list import QuestionList
from pynchy.cli.screen.saved_state import SavedState
from pynchy.cli.text import duration, one_line

# The host says something at least every 15 seconds.
SILENT_SECONDS = 25.0


def counts(roster: QuestionList, kept: SavedState, search: str) -> Text:
    """Return how many wait, are urgent, did not arrive or are hidden, and what is searched."""
    asleep = kept.asleep()
    waiting = roster.keys() - asleep.keys()
    urgent = sum(roster.is_urgent(key) for key in waiting)
    bar = Text(no_wrap=True, overflow="ellipsis").append("pynchy  ", "bold")
    bar.append(f"{len(waiting)} waiting" if waiting else "nothing waits")
    bar.append(f" · {urgent} urgent" if urgent else "", "bold red")
    stuck = roster.undelivered
    bar.append(f" · {stuck} not delivered (a)" if stuck else "", "red")
    bar.append(f" · {len(asleep)} hidden (z)" if asleep else "", "dim")
    return bar.append(f" · search: {one_line(search)}" if search else "", "yellow")


def link_text(link: HostLink | None, silent_seconds: float) -> Text:
    """Return how the connection is."""
    ago = f"last seen {duration(silent_seconds)} ago"
    if link is HostLink.GONE:
        return Text(f"○ reconnecting, {ago}", "bold yellow")
    if link is None:
        return Text("○ connecting…", "yellow")
    if silent_seconds > SILENT_SECONDS:
        return Text(f"○ the host is silent, {ago}", "bold yellow")
    return Text("● live", "green")
