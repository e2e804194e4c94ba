"""Begin with the inbox: the screen at a terminal, plain lines anywhere else."""

from __future__ import annotations

import os
import sys

import click

from pynchy.cli.ids import user_name
from pynchy.cli.pending import print_pending
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


def show_inbox(data: DataFolder) -> None:
    """Show what waits until the person leaves. Raise NoHost if there is no host to begin with."""
    if is_screen():
        data.host()
        from pynchy.cli.screen.app import InboxApp  # noqa: PLC0415 - slow to import

        InboxApp(data, user_name()).run()
        return
    views = HostClient.of(data).pending()
    print_pending(views, as_json=False)
    if views:
        click.echo("Answer with: pynchy answer ID VALUE (there is no terminal here)", err=True)


def is_screen() -> bool:
    """True if there is a whole terminal: keys come in, and the cursor can go anywhere."""
    is_smart = os.environ.get("TERM", "") not in {"", "dumb"}
    # The screen is drawn on stderr, as textual does.
    return is_smart and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
