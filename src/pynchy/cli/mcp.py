"""`pynchy mcp`: the server that an agent program on the host's own machine starts."""

from __future__ import annotations

import os
import sys

import click

from pynchy.cli.mailbox import make_mailbox, warn_of_misspelling
from pynchy.cli.options import complete_groups, data_dir_option
from pynchy.data_dir import DataFolder


@click.command("mcp", short_help="Run the MCP server that an agent asks through.")
@click.option(
    "--group",
    required=True,
    metavar="NAME",
    shell_complete=complete_groups,
    help="The agent's group.",
)
@click.option(
    "--client",
    type=click.Choice(["claude", "codex", "opencode"]),
    help="The agent program that starts it, where a person started that.",
)
@click.option(
    "--profile",
    type=click.Choice(["notify"]),
    help="Offer OpenFlow's notify tools in place of our own.",
)
@data_dir_option
def mcp_command(group: str, client: str | None, profile: str | None, data: DataFolder) -> None:
    r"""Run the MCP server that an agent asks through, on stdin and stdout.

    The group is made if it is new; the host notices it by itself. Who asks is told by
    PYNCHY_SESSION_ID, PYNCHY_AGENT and PYNCHY_TASK; PYNCHY_MAX_WAIT is the agent program's own
    limit for a call, in seconds. With --client, which `pynchy connect` writes, the session is the
    one that the program itself names (Claude Code and Codex do).

    With --profile notify it offers ask_user, notify_commit, notify_merge and notify_sync as
    OpenFlow's notify has them, and check_answer for answers that came late.

    \b
    Examples, as an agent's MCP settings, and as those of OpenCode:
      {"command": "pynchy", "args": ["mcp", "--group", "web-team"]}
      "notify": {"type": "local",
                 "command": ["pynchy", "mcp", "--group", "web-team", "--profile", "notify"]}
    """
    warn_of_misspelling(data, group)
    ipc_dir = make_mailbox(data, group)
    from agent_runner.agent_tools import main_as_told  # noqa: PLC0415 - the arguments come first

    sys.exit(main_as_told(ipc_dir, os.environ, client or "", profile or ""))
