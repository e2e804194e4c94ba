"""`pynchy hook`: what Claude Code tells of a session, for its agent's side or for the host.

What concerns permissions is passed on to the host that runs, which says what to print. A hook must
never be in the way: without a host, or a key, nothing is said and the program goes on.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from pynchy.cli.mailbox import make_mailbox, warn_of_misspelling
from pynchy.cli.options import complete_groups, data_dir_option
from pynchy.data_dir import DataFolder
from pynchy.errors import NoHost, PynchyError
from pynchy.safe_folder import UnsafeFile

if TYPE_CHECKING:
    from pynchy.http.hook_keys import HookKeys

_ASKS = "PermissionRequest"
# No set: what an event says may be anything, also what no set can hold.
_EVENTS = (_ASKS, "PostToolUse", "PostToolUseFailure", "Stop")
# A call's output may be large, and is none of the host's business.
_FIELDS = (
    *("hook_event_name", "session_id", "cwd", "agent_id", "tool_name", "tool_input"),
    *("tool_use_id", "decision_reason", "blocked_path", "permission_suggestions"),
)
_TELL_SECONDS = 5.0
_OK = 200


@click.command("hook", short_help="Let an agent end while it waits (a hook of Claude Code).")
@click.argument("program", type=click.Choice(["claude"]))
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="The agent's group; not for SessionStart and Stop.",
)
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

    given = sys.stdin.buffer.read()
    event = _read_event(given)
    if _is_ours(event):
        _pass_on(data, group, event)
    if group is None:
        sys.exit(claude.tell_missed(sorted(data.ipc.glob("*")), os.environ, given))
    if _is_ours(event):
        return
    warn_of_misspelling(data, group)
    sys.exit(claude.main(make_mailbox(data, group), os.environ, given))


def _read_event(data: bytes) -> dict[str, Any]:
    """Return the event, empty if it is none."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _is_ours(event: dict[str, Any]) -> bool:
    """True for the events of permissions and of the calls that they are for."""
    return event.get("hook_event_name") in _EVENTS


def _pass_on(data: DataFolder, group: str | None, event: dict[str, Any]) -> None:
    """Ask or tell the host, and print what it says. Without a group, tell it for each that asks."""
    from pynchy.http import hook_keys  # noqa: PLC0415 - the arguments come first

    asks = event.get("hook_event_name") == _ASKS
    if asks and hook_keys.is_unattended(os.environ.get(hook_keys.STARTED_VARIABLE, "")):
        return
    if not asks and not data.folder.has(hook_keys.WAITING_FILE):
        return
    body = json.dumps({name: event[name] for name in _FIELDS if name in event}).encode()
    for key in _keys(hook_keys.HookKeys(data), group, asks=asks):
        said = _post(data, key, body, None if asks else _TELL_SECONDS)
        if said:
            click.echo(json.dumps(said))


def _keys(keys: HookKeys, group: str | None, *, asks: bool) -> list[str]:
    """Return the key of the group, made for who asks; without a group, all keys that there are."""
    try:
        if group is not None and asks:
            return [keys.make(group)]
        groups = keys.groups() if group is None else [group]
        return [key for one in groups if (key := keys.find(one)) is not None]
    except (PynchyError, OSError, UnsafeFile) as exc:
        click.echo(f"pynchy: {exc}", err=True)
        return []


def _post(data: DataFolder, key: str, body: bytes, seconds: float | None) -> dict[str, Any]:
    from pynchy.http.hook_keys import HOOK_PATH  # noqa: PLC0415 - the arguments come first

    try:
        address = urlsplit(data.host().url)
        connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=seconds
        )
        connection.request("POST", HOOK_PATH, body, {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        said = _read_event(response.read())
    except (NoHost, OSError, http.client.HTTPException):
        return {}
    if response.status != _OK:
        click.echo(f"pynchy: {said.get('error') or response.reason}", err=True)
        return {}
    return said
