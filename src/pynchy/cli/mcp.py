"""`pynchy mcp` and `pynchy hook`: what an agent program on the host's own machine starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pynchy.cli.mailbox import make_mailbox, warn_of_misspelling
from pynchy.cli.options import complete_groups, data_dir_option
from pynchy.data_dir import DataFolder

F = TypeVar("F", bound=Callable[..., Any])


def _group_option(*, required: bool, text: str) -> Callable[[F], F]:
    return click.option(
        "--group", required=required, metavar="NAME", shell_complete=complete_groups, help=text
    )


@click.command("mcp", short_help="Run the MCP server that an agent asks through.")
@_group_option(required=True, text="The agent's group.")
@click.option(
    "--client",
    type=click.Choice(["claude", "codex", "opencode"]),
    help="The agent program that starts it, where a person started that.",
)
@data_dir_option
def mcp_command(group: str, client: str | None, data: DataFolder) -> None:
    r"""Run the MCP server that an agent asks through, on stdin and stdout.

    The group is made if it is new; the host notices it by itself. Who asks is told by
    PYNCHY_SESSION_ID, PYNCHY_AGENT and PYNCHY_TASK; PYNCHY_MAX_WAIT is the agent program's own
    limit for a call, in seconds. With --client, which `pynchy connect` writes, the session is the
    one that the program itself names (Claude Code and Codex do).

    \b
    Example, as an agent's MCP settings:
      {"command": "pynchy", "args": ["mcp", "--group", "web-team"]}
    """
    warn_of_misspelling(data, group)
    ipc_dir = make_mailbox(data, group)
    from agent_runner.agent_tools import main_as_told  # noqa: PLC0415 - the arguments come first

    sys.exit(main_as_told(ipc_dir, os.environ, client or ""))


@click.command("hook", short_help="Let an agent end while it waits (a hook of Claude Code).")
@click.argument("program", type=click.Choice(["claude"]))
@_group_option(required=False, text="The agent's group; not for SessionStart and Stop.")
@data_dir_option
def hook_command(program: str, group: str | None, data: DataFolder) -> None:
    r"""Take an event of Claude Code on stdin, and print what it is to do on stdout.

    \b
    event                          what it is for
    SessionStart, Stop             without --group: a session that you open again
                                   by hand is told what was answered meanwhile
    PermissionRequest,             its permission dialog is shown elsewhere as
    PostToolUse(Failure)           well, while a host runs
    PreToolUse of a tool that      a call that nobody answers at once is put off,
    asks a person                  with wait = "park" in the group's settings

    `pynchy connect claude` sets up the first two, and a launcher of kind "process" the last: the
    tools are mcp__pynchy__ask_user, mcp__pynchy__request_approval and AskUserQuestion; any other is
    left alone. A call is put off so that `claude -p` ends, and the group's launcher resumes it with
    the answer. PYNCHY_SESSION_ID must be the same as for `pynchy mcp`.

    \b
    Example, in Claude Code's settings:
      {"hooks": {"PreToolUse": [{
        "matcher": "mcp__pynchy__ask_user|mcp__pynchy__request_approval", "hooks": [
        {"type": "command", "command": "pynchy hook claude --group web-team", "timeout": 3600}]}]}}
    """
    del program
    from agent_runner.hooks import claude  # noqa: PLC0415 - the arguments come first
    from pynchy.cli import terminal_hook  # noqa: PLC0415 - the same

    given = sys.stdin.buffer.read()
    event = terminal_hook.read_event(given)
    if terminal_hook.is_ours(event):
        terminal_hook.pass_on(data, group, event)
    if group is None:
        sys.exit(claude.tell_missed(sorted(data.ipc.glob("*")), os.environ, given))
    if terminal_hook.is_ours(event):
        return
    warn_of_misspelling(data, group)
    sys.exit(claude.main(make_mailbox(data, group), os.environ, given))
