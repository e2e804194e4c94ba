"""`pynchy stop`: end the runner of a session."""

from __future__ import annotations

import click

from pynchy.cli.ids import by_option, session_argument
from pynchy.cli.options import data_dir_option
from pynchy.cli.text import one_line
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder

# A runner has its grace to end, and the host some more to notice.
_TIMEOUT_SECONDS = 600.0


@click.command("stop", short_help="End the runner of a session.")
@session_argument
@by_option
@data_dir_option
def stop_command(target: str, by: str, data: DataFolder) -> None:
    r"""End the runner of a session: ask it to end, and kill it after its grace.

    What it asked stays open; an answer to that starts it again. An answer that it was just being
    given, or was about to be started with, is kept, and `pynchy retry` delivers it.

    Exit code: 0 it has ended, 4 nothing was running, 5 no host is running.

    \b
    Examples:
      pynchy stop 6f1c2f0a-0d1c-4f6e-9d57-3d3f1f6d2b11
      pynchy stop 6f1c
      pynchy stop web-team/nightly    # where two groups use the same id
    """
    view = HostClient.of(data, _TIMEOUT_SECONDS).stop(target, by)
    click.echo(f"{one_line(str(view['session_id']))}: {one_line(str(view['end']))}")
