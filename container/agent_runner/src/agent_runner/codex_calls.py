"""What Codex asks a person for, as its app-server tells it: for a core, and for a host beside it.

Nothing that a yes would allow is left out of a call: a person allows what they have read. "Always"
of Codex is never chosen.
"""

import os
import pwd
import shlex
from functools import cache

from agent_runner.cores._calls import MULTI_EDIT
from agent_runner.cores.base import Fields, fields_of, text_of

COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
RIGHTS = "item/permissions/requestApproval"
INPUT = "item/tool/requestUserInput"
RESOLVED = "serverRequest/resolved"

_MORE_RIGHTS = "more rights than its sandbox gives"
_SHELLS = ("bash", "sh", "zsh")
# Where a system keeps its shells: an agent cannot put a program of its own there.
_SYSTEM_SHELLS = frozenset(
    f"{folder}/{name}" for folder in ("/bin", "/usr/bin") for name in _SHELLS
)
_SHELL_OPTIONS = frozenset({"-c", "-lc"})


def read_call(method: str, params: Fields, changes: list[Fields]) -> tuple[str, Fields]:
    """Return the tool and its input. `changes` are those of the item that a change is asked for."""
    if method == COMMAND:
        return "Bash", _command(params)
    if method == CHANGE:
        tool, given = _changes(changes)
        root = {"grantRoot": params["grantRoot"]} if params.get("grantRoot") else {}
        return tool, {**given, **_reason(params), **root}
    return _MORE_RIGHTS, {**fields_of(params, "permissions"), **_reason(params)}


def is_described(method: str, params: Fields, changes: list[Fields]) -> bool:
    """Say whether Codex tells what it wants to do: else nobody could be shown anything."""
    if method == COMMAND:
        has_command = bool(text_of(params, "command").strip())
        return has_command or bool(params.get("networkApprovalContext"))
    if method == CHANGE:
        return bool(changes) and all(map(_is_told, changes))
    return bool(fields_of(params, "permissions"))


def decide(method: str, params: Fields, *, is_allowed: bool) -> Fields:
    """Return what Codex is told. Rights are granted for this turn."""
    if method == RIGHTS:
        rights = fields_of(params, "permissions") if is_allowed else {}
        return {"permissions": rights, "scope": "turn"}
    return {"decision": "accept" if is_allowed else "decline"}


def _command(params: Fields) -> Fields:
    given = {"command": _unwrapped(text_of(params, "command")), **_reason(params)}
    # What is more than a command must be seen, and no rule for commands covers it.
    if params.get("kind", "command") != "command":
        given["kind"] = params["kind"]
    if params.get("networkApprovalContext"):
        given["network"] = params["networkApprovalContext"]
    if params.get("additionalPermissions"):
        given["permissions"] = params["additionalPermissions"]
    return given


def _reason(params: Fields) -> Fields:
    reason = text_of(params, "reason")
    return {"description": reason} if reason else {}


def _unwrapped(command: str) -> str:
    """Return what the shell is given, where Codex has put the model's command into one.

    The model may name the shell itself, and any program can be called bash: only one that is
    surely a shell is left out.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    match words:
        case [shell, option, script] if option in _SHELL_OPTIONS and _is_trusted(shell):
            return script if script.strip() else command
    return command


def _is_trusted(shell: str) -> bool:
    return shell in _SYSTEM_SHELLS or shell == login_shell()


@cache
def login_shell() -> str:
    """Return the shell that Codex takes by itself; empty if it is none that people need not see."""
    try:
        shell = pwd.getpwuid(os.geteuid()).pw_shell
    except KeyError:
        return ""
    is_known = shell.startswith("/") and shell.rpartition("/")[2] in _SHELLS
    return shell if is_known else ""


def _changes(changes: list[Fields]) -> tuple[str, Fields]:
    """Return the call that makes these changes: of one file, or of several as one diff."""
    if len(changes) == 1:
        [change] = changes
        kind, path = fields_of(change, "kind"), text_of(change, "path")
        if kind.get("type") == "add":
            return "Write", {"file_path": path, "content": text_of(change, "diff")}
        if kind.get("type") == "update" and not kind.get("move_path"):
            return "Edit", {"file_path": path, "diff": text_of(change, "diff")}
    paths = [path for change in changes for path in _paths(change)]
    diff = "\n".join(_headed(change) for change in changes)
    return MULTI_EDIT, {"paths": list(dict.fromkeys(paths)), "diff": diff}


def _paths(change: Fields) -> list[str]:
    """Return the files that a change is of: a move is of two."""
    moved = text_of(fields_of(change, "kind"), "move_path")
    return [text_of(change, "path"), *([moved] if moved else [])]


def _is_told(change: Fields) -> bool:
    """Say whether it is told which file is changed, and how."""
    kind = fields_of(change, "kind")
    moved = kind.get("move_path")
    if not text_of(change, "path") or not isinstance(moved, str | None):
        return False
    how = text_of(kind, "type")
    return how in {"add", "delete"} or (how == "update" and bool(moved or change.get("diff")))


def _headed(change: Fields) -> str:
    kind = fields_of(change, "kind")
    moved = f" → {text_of(kind, 'move_path')}" if kind.get("move_path") else ""
    head = f"{text_of(kind, 'type') or 'change'} {text_of(change, 'path')}{moved}"
    return f"{head}\n{text_of(change, 'diff')}"
