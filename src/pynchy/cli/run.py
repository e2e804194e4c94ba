"""`pynchy run`: start an agent's session with a prompt."""

from __future__ import annotations

import sys

import click

from agent_runner.cores import names
from pynchy.cli.ids import by_option
from pynchy.cli.options import complete_groups, data_dir_option, json_option
from pynchy.cli.output import show_json
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


@click.command("run", short_help="Start an agent's session with a prompt.")
@click.argument("group", shell_complete=complete_groups)
@click.argument("prompt")
@click.option("--agent", type=click.Choice(names()), help="Instead of the launcher's own.")
@click.option("--follow", is_flag=True, help="Stay, and print what happens.  [Ctrl-C detaches]")
@json_option
@by_option
@data_dir_option
def run_command(  # noqa: PLR0913 - each is an option
    data: DataFolder,
    group: str,
    prompt: str,
    agent: str | None,
    by: str,
    *,
    follow: bool,
    as_json: bool,
) -> None:
    r"""Start a session of the group's agent with a prompt, and print the session's id.

    How the agent is started is said in [groups.GROUP.launcher]. A PROMPT of "-" is read from stdin.
    With --follow, print what the runner prints and what happens to the session until it has ended;
    --json makes every piece of that one line.

    Exit code: 0 it was started (with --follow: and ended well), 1 it was not (it failed), 5 no host
    is running, 130 detached.

    \b
    Examples:
      pynchy run web-team "Update the changelog, and ask me before you commit"
      pynchy run web-team - --agent codex --follow < task.md
    """
    if prompt == "-":
        prompt = sys.stdin.read()
    if not prompt.strip():
        raise click.BadParameter("a prompt is needed", param_hint="PROMPT")
    session = HostClient.of(data).run(group, prompt, agent, by)
    session_id = str(session["session_id"])
    if not follow:
        if as_json:
            show_json(session)
        else:
            click.echo(session_id)
        return
    from pynchy.cli.follow_session import FollowedSession  # noqa: PLC0415 - threads only where needed

    if not as_json:
        click.echo(f"session {session_id}", err=True)
    sys.exit(FollowedSession(data, group, session_id, as_json=as_json).stay())
