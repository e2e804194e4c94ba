"""`pynchy hook`: what an agent program on the host's own machine calls before it asks a person.

The agent program waits for it at every call: nothing heavy is imported.
"""

from __future__ import annotations

import os
import sys

import click

from pynchy.cli.mailbox import make_mailbox
from pynchy.cli.options import data_dir_option
from pynchy.data_dir import DataFolder


@click.command("hook", short_help="Ask before an agent program's tool does, and park the agent.")
@click.argument("program", type=click.Choice(["claude"]))
@click.option("--group", required=True, metavar="NAME", help="The agent's group.")
@data_dir_option
def hook_command(program: str, group: str, data: DataFolder) -> None:
    r"""Decide on the call of a tool that asks a person: the event on stdin, the decision on stdout.

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
    ipc_dir = make_mailbox(data, group)
    from agent_runner.hooks.claude import main  # noqa: PLC0415 - the arguments come first

    sys.exit(main(ipc_dir, os.environ))
