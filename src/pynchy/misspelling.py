"""Which name of a group or tool somebody may have meant who wrote another one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_LETTERS = 100
_SIMILAR = 0.8
_PARTS = re.compile(r"[-_.]")
# Of Claude Code; what other programs do is told under the same names, as far as there is one.
_TOOLS = (
    "Bash BashOutput KillShell Read Edit Write MultiEdit NotebookEdit NotebookRead WebFetch "
    "WebSearch Glob Grep LS Task Agent TodoWrite Skill SlashCommand ExitPlanMode AskUserQuestion"
)
_NEARLY_MCP = re.compile(r"mcp[-_:.]+([^-_:.].*)", re.IGNORECASE)


def similar_group(name: str, groups: Iterable[str]) -> str:
    """Return the group whose name was probably meant, empty where none is similar.

    Names that differ in a number or a last letter, such as team-a and team-b, are counted on.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is not known

    known = set(groups)
    if name in known:
        return ""
    near = get_close_matches(name[:_MAX_LETTERS], sorted(known), n=5, cutoff=_SIMILAR)
    return next((other for other in near if not _is_series(name, other)), "")


def similar_tool(name: str) -> str:
    """Return the tool that was probably meant by one that is not known, empty where none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is not known

    if found := _NEARLY_MCP.fullmatch(name):
        meant = f"mcp__{found[1]}"
        return "" if meant == name else meant
    tools = {tool.casefold(): tool for tool in _TOOLS.split()}
    written = name[:_MAX_LETTERS].casefold()
    near = get_close_matches(written, sorted(tools), n=1, cutoff=_SIMILAR)
    meant = tools[near[0]] if near else ""
    return "" if meant == name else meant


def no_such_group(name: str, known: Iterable[str]) -> str:
    """Say that no group has that name, and which was probably meant."""
    near = similar_group(name, known)
    meant = f"did you mean {near}?" if near else "see which there are with: pynchy groups"
    return f"no group is called {name}; {meant}"


def _is_series(one: str, other: str) -> bool:
    if re.sub(r"\d+", "", one) == re.sub(r"\d+", "", other):
        return True
    *start, last = _PARTS.split(one)
    *other_start, other_last = _PARTS.split(other)
    return bool(start) and start == other_start and len(last) == len(other_last) == 1
