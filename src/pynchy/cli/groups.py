"""`pynchy groups`: which groups there are, and removing one that nobody needs any more."""

from __future__ import annotations

import click
from rich.text import Text

from pynchy.cli import with_examples
from pynchy.cli.options import by_option, complete_groups, data_dir_option, json_option
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.tables import plain_table
from pynchy.cli.text import one_line
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder

_NAMES = ("group", "from", "asks in", "waiting", "undelivered", "sessions")
# The host waits for answers that are on their way, for a while.
_REMOVE_SECONDS = 120.0
_NONE = 'There is no group. The first question makes one: pynchy ask "Deploy?" -o Yes -o No'


@click.group("groups", invoke_without_command=True, short_help="List the groups, and remove one.")
@json_option
@data_dir_option
@click.pass_context
def groups_command(ctx: click.Context, data: DataFolder, *, as_json: bool) -> None:
    r"""List the groups: those of the settings, and those that joined by asking.

    A group joins as soon as an agent asks under its name, so a misspelt name makes a new group. It
    is marked here if it looks like one of the settings. Without a terminal each group is one line
    with tabs between its fields: name, from, channels, how many questions wait, how many answers
    were not delivered, how many sessions have not ended.

    \b
    Examples:
      pynchy groups
      pynchy groups --json | jq -r '.[] | select(.in_settings | not) | .name'
      pynchy groups remove web-taem
    """
    if ctx.invoked_subcommand is not None:
        return
    views = HostClient.of(data).groups()
    if as_json:
        show_json(views)
    elif not views:
        click.echo(_NONE)
    elif is_terminal():
        table = plain_table(_NAMES, stretch="asks in")
        for view in views:
            table.add_row(*(Text(cell) for cell in _fields(view)))
        show([table])
    else:
        for view in views:
            show_fields(_fields(view))
    if not as_json:
        for view in [view for view in views if view.get("did_you_mean")]:
            _say_misspelt(view)


def _fields(view: Json) -> list[str]:
    chats = {str(channel): str(chat) for channel, chat in dict(view.get("chat") or {}).items()}
    named = [f"{c} ({chats[c]})" if chats.get(c) else str(c) for c in view.get("channels", ())]
    return [
        one_line(str(view.get("name", ""))),
        "settings" if view.get("in_settings") else "joined by asking",
        one_line(", ".join(named)),
        *(str(view.get(name, 0)) for name in ("waiting", "undelivered", "sessions")),
    ]


def _say_misspelt(view: Json) -> None:
    name, meant = one_line(str(view["name"])), one_line(str(view["did_you_mean"]))
    click.echo(
        f"{name} is not in the settings; did you mean {meant}? "
        f"To remove it: pynchy groups remove {name}",
        err=True,
    )


@click.command("remove", short_help="Remove a group that is no longer needed.")
@click.argument("name", shell_complete=complete_groups)
@click.option(
    "--force",
    is_flag=True,
    help="Decline what it still asks, dismiss what did not arrive, and remove it all the same.",
)
@by_option
@data_dir_option
def remove_command(name: str, by: str, data: DataFolder, *, force: bool) -> None:
    r"""Remove a group that is no longer needed: its mailbox, and its place in the lists.

    What it asked stays in `pynchy history` and `pynchy events`. A group of the settings is not
    removed: take its table out of the file first. An agent that asks under the name again makes
    the group again.

    Exit code: 0 it is removed, 1 it is not (the message says why), 5 no host is running.

    \b
    Examples:
      pynchy groups remove web-taem
      pynchy groups remove web-taem --force
    """
    done = HostClient.of(data, _REMOVE_SECONDS).remove_group(name, by, force=force)
    also = [f"{done[word]} {word}" for word in ("declined", "dismissed") if done.get(word)]
    ended = f" Questions: {', '.join(also)}." if also else ""
    click.echo(f"Removed group {name} and its mailbox.{ended} Its history is kept.")


groups_command.add_command(with_examples(remove_command))
