"""`pynchy log`: what the runners of a session have printed."""

from __future__ import annotations

import sys

import click

from pynchy.cli.ids import session_argument
from pynchy.cli.options import data_dir_option
from pynchy.cli.text import printed
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


@click.command("log", short_help="Print what the runners of a session printed.")
@session_argument
@click.option("--follow", "-f", is_flag=True, help="Stay until it has ended.  [Ctrl-C detaches]")
@data_dir_option
def log_command(target: str, data: DataFolder, *, follow: bool) -> None:
    r"""Print what the runners of a session have printed, all of them in order.

    With --follow, go on with what is printed, and what happens to the session on stderr, until the
    session has ended.

    Exit code: 0, with --follow 1 if the session failed, 130 detached; 5 no host is running.

    \b
    Examples:
      pynchy log 6f1c
      pynchy log 6f1c --follow
    """
    client = HostClient.of(data)
    session = client.session(target)
    if follow:
        from pynchy.cli.follow_session import FollowedSession  # noqa: PLC0415 - threads only where needed

        staying = FollowedSession(
            data, str(session["group"]), str(session["session_id"]), as_json=False
        )
        sys.exit(staying.stay())
    if not _print_all(client, f"{session['group']}/{session['session_id']}"):
        click.echo("It has printed nothing, or nothing that is kept.", err=True)


def _print_all(client: HostClient, session: str) -> bool:
    """Print all there is. Return False if there is nothing."""
    read = 0
    while piece := client.output(session, read):
        text, read = str(piece.get("text", "")), int(piece.get("next", 0))
        if not text:
            break
        click.echo(printed(text) if sys.stdout.isatty() else text, nl=False)
    return read > 0
