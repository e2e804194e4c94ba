"""A host whose pauses are short: nothing but the time between two looks or attempts is changed.

There is no setting for these pauses. The order of everything is kept, so what a test asserts holds
for the usual pauses as well; `make prove` has the usual ones wherever it starts `pynchy serve`.
"""

from pynchy.__main__ import main as run_command
from pynchy.bridge import cards, deliver, expire, resume, workers
from pynchy.channels.slack import connection, posting, web
from pynchy.http import hooks
from pynchy.ipc import watcher
from pynchy.launchers import jobs
from pynchy.sources import codex, phux, running
from pynchy.tracking import tracker

# Whoever waits for the next look or the next attempt waits a tenth of the usual time.
PACE = 0.1


def hurry(*, rescans: bool = True) -> None:
    """Shorten the pauses of this process; with many mailboxes, frequent rescans cost too much."""
    workers._RETRY_SECONDS *= PACE  # noqa: SLF001
    cards._WAIT_SECONDS *= PACE  # noqa: SLF001
    deliver.POLL_SECONDS *= PACE
    resume.POLL_SECONDS *= PACE
    deliver.UNDELIVERED_POLL_SECONDS *= PACE
    expire._POLL_SECONDS *= PACE  # noqa: SLF001
    tracker.POLL_SECONDS *= PACE
    if rescans:
        watcher.RESCAN_SECONDS *= PACE
    jobs._ADOPTED_POLL_SECONDS *= PACE  # noqa: SLF001
    codex._PAUSE_SECONDS *= PACE  # noqa: SLF001
    phux._LOOK_SECONDS *= PACE  # noqa: SLF001
    running._RETRY_SECONDS *= PACE  # noqa: SLF001
    running._RESTART_SECONDS *= PACE  # noqa: SLF001
    connection._RETRY_SECONDS *= PACE  # noqa: SLF001
    posting._RETRY_SECONDS *= PACE  # noqa: SLF001
    web._RETRY_SECONDS *= PACE  # noqa: SLF001
    hooks._RETRY_SECONDS *= PACE  # noqa: SLF001


def main() -> None:
    """Run a command of pynchy so."""
    hurry(rescans=False)
    run_command()
