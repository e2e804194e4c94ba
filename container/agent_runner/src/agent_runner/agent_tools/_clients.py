"""What agent programs do differently as MCP clients, learnt by running them.

Which session they serve: Claude Code says it in the server's environment, Codex with each call,
OpenCode not at all. What one program says is not asked of another: an agent that runs inside
another one inherits its environment.
"""

from collections.abc import Mapping
from pathlib import Path

_VARIABLES = {"claude": "CLAUDE_CODE_SESSION_ID"}
_CALL_KEYS = {"codex": "threadId"}
# Claude Code runs a task in the background: its model goes on without the answer, which it is later
# told not to take for a person's.
_GOES_ON_WITHOUT = frozenset({"claude-code"})


def session_in(environ: Mapping[str, str], client: str) -> str:
    """Return the session that the client's environment names, empty where it names none."""
    return environ.get(_VARIABLES.get(client, ""), "")


def session_key(client: str) -> str:
    """Return under which name in a call's `_meta` the client says its session, empty if nowhere."""
    return _CALL_KEYS.get(client, "")


def waits_for_tasks(client_name: str) -> bool:
    """True if a client of that name lets its model wait for a task as for any other call."""
    return client_name not in _GOES_ON_WITHOUT


def workplace() -> str:
    """Return the name of the folder that the client works in, for cards that name no task."""
    try:
        return Path.cwd().name
    except OSError:  # it was removed
        return ""
