"""`pynchy watch`: carry what titles ask to people: of a program that we run, or of tmux's panes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click

from pynchy.cli.mailbox import make_mailbox, own_group, warn_of_misspelling
from pynchy.cli.options import complete_groups, data_dir_option
from pynchy.cli.text import clean, one_line
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError

_INTERPRETERS = ("sh", "bash", "dash", "zsh", "python", "node", "ruby", "perl")


@click.command(
    "watch",
    context_settings={"allow_interspersed_args": False},
    short_help="Carry what a program, or tmux's panes, ask by their titles to people.",
)
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="Ask as this group.  [default: that of PYNCHY_IPC_DIR, else cli]",
)
@click.option("--tmux", is_flag=True, help="Watch all panes of a running tmux server instead.")
@click.option(
    "--tmux-socket",
    metavar="PATH",
    type=click.Path(),
    help="The socket of that server.  [default: that of TMUX, else tmux's own]",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@data_dir_option
def watch_command(
    *,
    data: DataFolder,
    group: str | None,
    tmux: bool,
    tmux_socket: str | None,
    command: tuple[str, ...],
) -> None:
    r"""Run COMMAND as it would run without us, and let it ask people by its terminal's title.

    A title such as "phux-ask[q1]:Deploy??s=Yes|No" becomes a question with two options. The answer
    is typed into the program, as one line with Enter: once, only while the title still asks, and
    only if the program is in front that asked. Never into a shell.

    With --tmux nothing is run: whatever asks in a pane of tmux (3.2 or newer) is asked for, until
    Ctrl-C or until tmux ends, and each thing that happens is printed.

    \b
    Exit code: that of COMMAND; 126 or 127 if it cannot be run. With --tmux 0, or 1 if there is
    no tmux that can be watched.

    \b
    Examples:
      pynchy watch -- ./agent.sh
      pynchy watch --group web-team -- claude
      pynchy watch --tmux
      pynchy watch --tmux --tmux-socket /tmp/tmux-1000/work
    """
    is_tmux = tmux or tmux_socket is not None
    if is_tmux and command:
        raise click.UsageError("name what to run, or --tmux: not both")
    if not is_tmux and not command:
        raise click.UsageError("name what to run: pynchy watch -- COMMAND (or pynchy watch --tmux)")
    if group:
        warn_of_misspelling(data, group)
    ipc_dir = make_mailbox(data, group or own_group(data))
    _warn_without_host(data)
    if is_tmux:
        asyncio.run(_watch_tmux(ipc_dir, tmux_socket))
    else:
        sys.exit(_watch(ipc_dir, command))


def _name_of(command: tuple[str, ...]) -> str:
    """Return what people call what is run: the script, where its interpreter is named first."""
    program, *rest = command
    is_script = bool(rest) and not rest[0].startswith("-") and Path(rest[0]).is_file()
    named = rest[0] if is_script and Path(program).name.startswith(_INTERPRETERS) else program
    return Path(named).name


def _warn_without_host(data: DataFolder) -> None:
    try:
        data.host()
    except HostError:
        told = "no host is running; what is asked waits until one is: pynchy serve"
        click.echo(f"pynchy: {told}", err=True)


def _watch(ipc_dir: Path, command: tuple[str, ...]) -> int:
    # Not for other commands, which may run where there is no terminal. And before the program is
    # started: from then on, Ctrl-C is its own.
    from pynchy.sources.terminals import describe_folder  # noqa: PLC0415
    from pynchy.terminals.pump import CannotRun, Pump  # noqa: PLC0415
    from pynchy.terminals.watching import Names, TitleWatch  # noqa: PLC0415

    names = Names(_name_of(command), describe_folder(str(Path.cwd())))
    pump = Pump(command)
    watch = TitleWatch(pump, ipc_dir, names)
    watch.start()
    try:
        return pump.run(watch)
    except CannotRun as exc:
        click.echo(f"pynchy: {clean(str(exc))}", err=True)
        return exc.code
    finally:
        watch.stop()
        for message in watch.messages:
            click.echo(f"pynchy: {clean(message)}", err=True)


async def _watch_tmux(ipc_dir: Path, socket: str | None) -> None:
    from pynchy.sources.terminals import describe_folder  # noqa: PLC0415 - as above
    from pynchy.terminals.tmux import SERVER_ENDED, TmuxWatch  # noqa: PLC0415
    from pynchy.terminals.tmux_server import TmuxServer  # noqa: PLC0415

    watch = TmuxWatch(TmuxServer.of(socket, os.environ), ipc_dir, describe_folder, _say)
    running = asyncio.ensure_future(watch.run())
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(one, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
        _say(SERVER_ENDED)


def _say(what: str) -> None:
    # Whoever reads it may have gone away; what is asked goes on.
    with suppress(OSError):
        click.echo(f"{datetime.now().astimezone():%H:%M:%S}  {one_line(what)}")
