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
@_group_option(required=False, text="The agent's group; for PreToolUse.")
@data_dir_option
def hook_command(program: str, group: str | None, data: DataFolder) -> None:
    r"""Decide on the call of a tool that asks a person: the event on stdin, the decision on stdout.

    Without --group, for Claude Code's SessionStart and Stop: a session that you open again by hand
    is told what was answered while it was closed. `pynchy connect claude` sets that up.

    For Claude Code's PreToolUse, and the tools mcp__pynchy__ask_user and AskUserQuestion; any other
    is left alone. Agents that a launcher of kind "process" starts have it set up already. With
    wait = "park" in the group's settings it has a call put off that nobody answers at once:
    `claude -p` ends, and the group's launcher resumes it with the answer. PYNCHY_SESSION_ID must
    be the same as for `pynchy mcp`.

    \b
    Example, in Claude Code's settings:
      {"hooks": {"PreToolUse": [{"matcher": "mcp__pynchy__ask_user", "hooks": [
        {"type": "command", "command": "pynchy hook claude --group web-team", "timeout": 3600}]}]}}
    """
    del program
    from agent_runner.hooks import claude  # noqa: PLC0415 - the arguments come first

    if group is None:
        sys.exit(claude.tell_missed(sorted(data.ipc.glob("*")), os.environ))
    warn_of_misspelling(data, group)
    sys.exit(claude.main(make_mailbox(data, group), os.environ))
