"""`pynchy mcp`: the MCP server of an agent that runs on the host's own machine.

Started by the agent program, and in its way until it answers: nothing heavy is imported.
"""

from __future__ import annotations

import os
import re
import sys

import click

from pynchy.cli.options import data_dir_option
from pynchy.datafolder import DataFolder
from pynchy.folder import Folder

_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")


@click.command("mcp", short_help="Run the MCP server that an agent asks through.")
@click.option("--group", required=True, metavar="NAME", help="The agent's group.")
@data_dir_option
def mcp_command(group: str, data: DataFolder) -> None:
    r"""Run the MCP server that an agent asks through, on stdin and stdout.

    The group is made if it is new; the host notices it by itself. Who asks is told by
    PYNCHY_SESSION_ID, PYNCHY_AGENT and PYNCHY_TASK.

    \b
    Example, as an agent's MCP settings:
      {"command": "pynchy", "args": ["mcp", "--group", "web-team"]}
    """
    if not _GROUP.match(group):
        raise click.BadParameter("letters, digits, - _ and . only", param_hint="--group")
    data.make()
    for name in ("tasks", "responses", "input"):
        Folder(data.ipc, group, name).make()
    from agent_runner.agent_tools import main  # noqa: PLC0415 - after the arguments are known good

    sys.exit(
        main(
            data.ipc / group,
            session_id=os.environ.get("PYNCHY_SESSION_ID", ""),
            agent=os.environ.get("PYNCHY_AGENT", ""),
            task=os.environ.get("PYNCHY_TASK", ""),
            max_wait=_max_wait(),
        )
    )


def _max_wait() -> float | None:
    value = os.environ.get("PYNCHY_MAX_WAIT", "")
    try:
        return float(value) if value else None
    except ValueError:
        return None
