"""`pynchy watch`: run a program in a terminal of ours, and carry what its title asks to people."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pynchy.cli.mailbox import make_mailbox, own_group, warn_of_misspelling
from pynchy.cli.options import complete_groups, data_dir_option
from pynchy.cli.text import clean
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError

_INTERPRETERS = ("sh", "bash", "dash", "zsh", "python", "node", "ruby", "perl")


@click.command(
    "watch",
    context_settings={"allow_interspersed_args": False},
    short_help="Run a program, and carry what its title asks to people.",
)
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="Ask as this group.  [default: that of PYNCHY_IPC_DIR, else cli]",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@data_dir_option
def watch_command(*, data: DataFolder, group: str | None, command: tuple[str, ...]) -> None:
    r"""Run COMMAND as it would run without us, and let it ask people by its terminal's title.

    A title such as "phux-ask[q1]:Deploy??s=Yes|No" becomes a question with two options. The answer
    is typed into the program, as one line with Enter: once, only while the title still asks, and
    only if the program is in front that asked. Never into a shell.

    \b
    Exit code: that of COMMAND; 126 or 127 if it cannot be run.

    \b
    Examples:
      pynchy watch -- ./agent.sh
      pynchy watch --group web-team -- claude
    """
    if not command:
        raise click.UsageError("name what to run: pynchy watch -- COMMAND")
    if group:
        warn_of_misspelling(data, group)
    ipc_dir = make_mailbox(data, group or own_group(data))
    _warn_without_host(data)
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
    from pynchy.terminals.pump import CannotRun, Pump  # noqa: PLC0415 - no terminal elsewhere

    # Before anything else is loaded: the program need not wait for it.
    pump = Pump(command)
    from pynchy.sources.terminals import describe_folder  # noqa: PLC0415
    from pynchy.terminals.watching import Names, TitleWatch  # noqa: PLC0415

    names = Names(_name_of(command), describe_folder(str(Path.cwd())))
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
