"""What a program wants to do, as a call that a person and a rule understand.

Nothing of it is left out: what no known field holds stays under its own name, and is shown.
"""

import re
import shlex
from dataclasses import dataclass
from typing import Any

from agent_runner.asking import arguments
from agent_runner.cores.base import (
    APPROVAL_TOOL,
    ASK_TOOL,
    SERVER_NAME,
    Fields,
    fields_of,
    items_of,
    text_of,
)
from agent_runner.errors import BadArguments

MULTI_EDIT = "MultiEdit"

# How programs name the file of a change, and what is put in place of what.
_PATHS = ("file_path", "filePath", "filepath", "path", "abs_path")
_REPLACED = (("old_string", "new_string"), ("oldString", "newString"))
_MCP = "mcp__"
# Less than what the host takes for the name of a tool.
_LONGEST_TITLE = 400
# How programs call the tools of our server, and which kinds of calls they take them for.
_OURS = re.compile(
    rf"(?:Tool: )?(?:mcp__{SERVER_NAME}__|(?:mcp\.)?{SERVER_NAME}[_./:])"
    rf"({ASK_TOOL}|check_answer|withdraw_question|{APPROVAL_TOOL})"
)
_KINDS_OF_OURS = (None, "other")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after; `old` is None where it is new."""

    path: str
    old: str | None
    new: str


def titled_as_ours(call: Fields) -> str:
    """Return which tool of our own server the title names; empty if it names none.

    A title is for people, and may be the model's own words: it allows nothing.
    """
    found = _OURS.fullmatch(text_of(call, "title").strip())
    return found[1] if found else ""


def is_ours(call: Fields) -> bool:
    """Say whether a tool of our own server is called: nothing else takes such an input."""
    tool = titled_as_ours(call)
    if not tool or call.get("kind") not in _KINDS_OF_OURS or call.get("locations"):
        return False
    if any(item.get("type") != "content" for item in items_of(call, "content")):
        return False
    given = fields_of(call, "rawInput")
    if set(given) == {"server", "tool", "arguments"}:
        if (given["server"], given["tool"]) != (SERVER_NAME, tool):
            return False
        given = fields_of(given, "arguments")
    try:
        _check_arguments(tool, given)
    except BadArguments:
        return False
    return True


def _check_arguments(tool: str, given: Fields) -> None:
    """Raise BadArguments for what the schema of our tool does not take."""
    if tool == ASK_TOOL:
        arguments.check_ask_names(given)
        arguments.parse_ask(given)
    elif tool == APPROVAL_TOOL:
        arguments.parse_approval(given)
    else:
        arguments.check_names(given, "request_id", "timeout")
        arguments.parse_check(given)


def read_call(call: Fields, folder: str) -> tuple[str, Fields]:
    """Return the tool and its input, in the words that all programs share where there are any.

    What else is known of the call stands beside that, and no rule that allows covers it then.
    `folder` is where the program works, which people are shown with every call.
    """
    raw = call.get("rawInput")
    given = dict(raw) if isinstance(raw, dict) else ({} if raw is None else {"input": raw})
    kind, changes = call.get("kind"), _changes(call)
    if text_of(call, "title").startswith(_MCP):
        tool, told = _titled(call)
    elif kind == "execute" and (command := _command(given)):
        tool, told = "Bash", {"command": command}
        del given["command"]
        if given.get("cwd") == folder:
            del given["cwd"]
    elif changes:
        tool, told = read_changes(changes)
        given = _unshown(given, changes)
    elif kind == "fetch" and (url := text_of(given, "url")):
        tool, told = "WebFetch", {"url": url}
    elif kind == "read" and (path := _taken_path(given)):
        tool, told = "Read", {"file_path": path}
    else:
        tool, told = _titled(call)
    if changes:
        told = _with(told, read_changes(changes)[1])
    shown = {folder, told.get("file_path"), *(change.path for change in changes)}
    told = _with(_with(told, given), _unshown_locations(call, shown))
    return tool, told or _said(call)


def _titled(call: Fields) -> tuple[str, Fields]:
    """Return what the program calls a call to people, as a name that no allow rule can have."""
    title, kind = text_of(call, "title"), text_of(call, "kind")
    if len(title) <= _LONGEST_TITLE:
        return f"“{title or kind or 'a tool without a name'}”", {}
    return f"“{kind[:_LONGEST_TITLE] or 'a tool'}”", {"title": title}


def _unshown(given: Fields, changes: list[FileChange]) -> dict[str, Any]:
    """Return what of the input the changes do not show."""
    paths = [change.path for change in changes]
    left = {n: v for n, v in given.items() if n not in _PATHS or v not in paths}
    if len(changes) > 1:
        return left
    [change] = changes
    for old, new in _REPLACED:
        if _replaces(change, left.get(old), left.get(new)):
            del left[old], left[new]
    if left.get("content") == change.new:
        del left["content"]
    if _says_the_same(text_of(left, "diff"), _diff(change)):
        left.pop("diff", None)
    return left


def _replaces(change: FileChange, old: object, new: object) -> bool:
    """Say whether the change is that one text was put in place of another."""
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    before = change.old or ""
    return change.new in {before.replace(old, new, 1), before.replace(old, new)}


def _says_the_same(diff: str, shown: str) -> bool:
    """Say whether a diff takes out and puts in what is shown.

    All of its lines may lack the same blanks at their beginning, as OpenCode writes them.
    """
    told, known = _changed_lines(diff), _changed_lines(shown)
    missing = max((len(own) - len(one) for one, own in zip(told, known, strict=False)), default=0)
    same = [own[0] + own[1 + missing :] for own in known]
    return told == same and not any(own[1 : 1 + missing].strip(" \t") for own in known)


def _changed_lines(diff: str) -> list[str]:
    """Return the lines that a diff takes out and puts in. Before its first @@ it names files."""
    lines = diff.split("\n")
    start = next((at for at, line in enumerate(lines) if line.startswith("@@")), 0)
    head = [line for line in lines[:start] if not line.startswith(("+++ ", "--- "))]
    return [line for line in head + lines[start:] if line.startswith(("+", "-"))]


def _unshown_locations(call: Fields, shown: set[str | None]) -> Fields:
    """Return which files the call is about where they are others than those that are shown."""
    locations = call.get("locations")
    paths = [text_of(one, "path") for one in items_of(call, "locations")]
    is_all = isinstance(locations, list) and len(paths) == len(locations)
    return {"locations": locations} if locations and not (is_all and shown >= set(paths)) else {}


def _with(told: Fields, more: Fields) -> Fields:
    """Return both: of two values under one name, neither takes the other's place."""
    joined = dict(told)
    for name, value in more.items():
        free = name
        while free in joined and joined[free] != value:
            free += "_"
        joined[free] = value
    return joined


def read_changes(changes: list[FileChange]) -> tuple[str, Fields]:
    """Return the call that makes these changes: of one file, or of several as one diff."""
    if len(changes) > 1:
        paths = list(dict.fromkeys(change.path for change in changes))
        return MULTI_EDIT, {"paths": paths, "diff": "\n".join(map(_diff, changes))}
    [change] = changes
    if change.old is None:
        return "Write", {"file_path": change.path, "content": change.new}
    return "Edit", {"file_path": change.path, "diff": _diff(change)}


def _command(given: Fields) -> str:
    """Return the command line, also where it is a list of words."""
    command = given.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return shlex.join(command)
    return text_of(given, "command")


def _changes(call: Fields) -> list[FileChange]:
    diffs = [item for item in items_of(call, "content") if item.get("type") == "diff"]
    return [
        FileChange(
            text_of(diff, "path"),
            text_of(diff, "oldText") if isinstance(diff.get("oldText"), str) else None,
            text_of(diff, "newText"),
        )
        for diff in diffs
    ]


def _diff(change: FileChange) -> str:
    # Seldom needed, and slow to load.
    import difflib  # noqa: PLC0415

    # At nothing but \n: what else ends a line to Python may be part of one to a shell.
    old, new = (text.split("\n") if text else [] for text in (change.old, change.new))
    before = "/dev/null" if change.old is None else change.path
    return "\n".join(difflib.unified_diff(old, new, before, change.path, lineterm=""))


def _taken_path(given: dict[str, Any]) -> str:
    """Take the file out of the input."""
    for name in _PATHS:
        if path := text_of(given, name):
            del given[name]
            return path
    return ""


def _said(call: Fields) -> Fields:
    """Return what the program says of a call whose input it does not tell."""
    blocks = (item.get("content") for item in items_of(call, "content"))
    texts = [text_of(block, "text") for block in blocks if isinstance(block, dict)]
    return {"content": "\n".join(texts)} if any(texts) else {}
