"""How an agent program that a person started tells its MCP server which session it serves.

Learnt by running the programs: Claude Code says it in the server's environment, Codex with each
call, OpenCode not at all. What one program says is not asked of another: an agent that runs inside
another one inherits its environment.
"""

from collections.abc import Mapping
from pathlib import Path

_VARIABLES = {"claude": "CLAUDE_CODE_SESSION_ID"}
_CALL_KEYS = {"codex": "threadId"}


def session_in(environ: Mapping[str, str], client: str) -> str:
    """Return the session that the client's environment names, empty where it names none."""
    return environ.get(_VARIABLES.get(client, ""), "")


def session_key(client: str) -> str:
    """Return under which name in a call's `_meta` the client says its session, empty if nowhere."""
    return _CALL_KEYS.get(client, "")


def workplace() -> str:
    """Return the name of the folder that the client works in, for cards that name no task."""
    try:
        return Path.cwd().name
    except OSError:  # it was removed
        return ""
