"""Pass what Claude Code tells a hook of on to the host that runs, and print what the host says.

A hook must never be in the way: without a host, or a key, nothing is said and the program goes on.
"""

from __future__ import annotations

import http.client
import json
import os
from typing import Any
from urllib.parse import urlsplit

import click

from pynchy.data_dir import DataFolder
from pynchy.errors import NoHost, PynchyError
from pynchy.http.hook_keys import (
    HOOK_PATH,
    STARTED_VARIABLE,
    WAITING_FILE,
    HookKeys,
    is_unattended,
)
from pynchy.safe_folder import UnsafeFile

ASKS = "PermissionRequest"
# No set: what an event says may be anything, also what no set can hold.
_EVENTS = (ASKS, "PostToolUse", "PostToolUseFailure", "Stop")
# A call's output may be large, and is none of the host's business.
_FIELDS = (
    *("hook_event_name", "session_id", "cwd", "agent_id", "tool_name", "tool_input"),
    *("tool_use_id", "decision_reason", "blocked_path", "permission_suggestions"),
)
_TELL_SECONDS = 5.0
_OK = 200


def read_event(data: bytes) -> dict[str, Any]:
    """Return the event, empty if it is none."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def is_ours(event: dict[str, Any]) -> bool:
    """True for the events of permissions and of the calls that they are for."""
    return event.get("hook_event_name") in _EVENTS


def pass_on(data: DataFolder, group: str | None, event: dict[str, Any]) -> None:
    """Ask or tell the host, and print what it says. Without a group, tell it for each that asks."""
    asks = event.get("hook_event_name") == ASKS
    if asks and is_unattended(os.environ.get(STARTED_VARIABLE, "")):
        return
    if not asks and not data.folder.has(WAITING_FILE):
        return
    body = json.dumps({name: event[name] for name in _FIELDS if name in event}).encode()
    for key in _keys(data, group, asks=asks):
        said = _post(data, key, body, None if asks else _TELL_SECONDS)
        if said:
            click.echo(json.dumps(said))


def _keys(data: DataFolder, group: str | None, *, asks: bool) -> list[str]:
    """Return the key of the group, made for who asks; without a group, all keys that there are."""
    keys = HookKeys(data)
    try:
        if group is not None and asks:
            return [keys.make(group)]
        groups = keys.groups() if group is None else [group]
        return [key for one in groups if (key := keys.find(one)) is not None]
    except (PynchyError, OSError, UnsafeFile) as exc:
        click.echo(f"pynchy: {exc}", err=True)
        return []


def _post(data: DataFolder, key: str, body: bytes, seconds: float | None) -> dict[str, Any]:
    try:
        address = urlsplit(data.host().url)
        connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=seconds
        )
        connection.request("POST", HOOK_PATH, body, {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        said = read_event(response.read())
    except (NoHost, OSError, http.client.HTTPException):
        return {}
    if response.status != _OK:
        click.echo(f"pynchy: {said.get('error') or response.reason}", err=True)
        return {}
    return said
