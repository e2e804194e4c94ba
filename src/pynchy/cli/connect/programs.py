"""Where each agent program reads its MCP servers, and what it has to be told of ours.

Learnt by running them. An entry is ours if it starts `pynchy mcp`; any other entry of that name is
somebody's own and is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent_runner.cli import DEFAULT_CALL_LIMIT_SECONDS
from agent_runner.cores.base import SERVER_NAME, STARTUP_SECONDS

CLAUDE, CODEX, OPENCODE = "claude", "codex", "opencode"
PROGRAMS = (CLAUDE, CODEX, OPENCODE)
# What Claude Code calls every tool of the server, and OpenCode.
CLAUDE_RULE = f"mcp__{SERVER_NAME}"
OPENCODE_RULE = f"{SERVER_NAME}_*"

# OpenCode restarts it with each sign of progress, one in 10 s; it is the limit for starting too.
_OPENCODE_MILLISECONDS = 120_000
_LIMIT = round(DEFAULT_CALL_LIMIT_SECONDS)

Entry = Mapping[str, Any]


class Scope(StrEnum):
    """Whether the program is told for every folder, or for one."""

    USER = "user"
    PROJECT = "project"


class Format(StrEnum):
    """How a file is written."""

    JSON = "json"
    JSONC = "jsonc"
    TOML = "toml"


@dataclass(frozen=True, slots=True)
class EntryLocation:
    """Where an entry is: in which file, and under which keys."""

    program: str
    scope: Scope
    path: Path
    format: Format
    keys: tuple[str, ...]
    folder: Path


@dataclass(frozen=True, slots=True)
class McpServerEntry:
    """The MCP server as a program starts it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def is_ours(self) -> bool:
        """Say whether it is `pynchy mcp`, wherever that lies."""
        return Path(self.argv[0]).name == "pynchy" and self.argv[1:2] == ("mcp",)

    @property
    def group(self) -> str:
        """The group that it asks for, empty where it names none."""
        return self.option("--group")

    def option(self, name: str) -> str:
        """Return what an option of its command says, empty where it is not there."""
        return dict(zip(self.argv, self.argv[1:], strict=False)).get(name, "")


def find_project(folder: Path) -> Path:
    """Return the repository that the folder is in, else the folder: all three go by that."""
    folder = folder.resolve()
    found = (path for path in (folder, *folder.parents) if (path / ".git").exists())
    return next(found, folder)


def find_place(
    program: str, scope: Scope, environ: Mapping[str, str], folder: Path
) -> EntryLocation:
    """Return where the program looks for the servers of that scope."""
    project = find_project(folder)
    home = Path(environ.get("HOME") or Path.home())
    keys: tuple[str, ...]
    match program:
        case "claude":
            # Not .mcp.json, which is shared with others and has to be approved first.
            path = Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
            keys = ("mcpServers", SERVER_NAME)
            if scope is Scope.PROJECT:
                keys = ("projects", str(project), *keys)
            return EntryLocation(program, scope, path, Format.JSON, keys, project)
        case "codex":
            path = Path(environ.get("CODEX_HOME") or home / ".codex")
            path = project / ".codex" if scope is Scope.PROJECT else path
            keys = ("mcp_servers", SERVER_NAME)
            return EntryLocation(program, scope, path / "config.toml", Format.TOML, keys, project)
    path = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    path = _opencode_file(project if scope is Scope.PROJECT else path)
    return EntryLocation(program, scope, path, Format.JSONC, ("mcp", SERVER_NAME), project)


def claude_settings(environ: Mapping[str, str]) -> Path:
    """Return the file with the person's own permissions and variables for Claude Code."""
    folder = environ.get("CLAUDE_CONFIG_DIR")
    home = Path(environ.get("HOME") or Path.home())
    return (Path(folder) if folder else home / ".claude") / "settings.json"


def claude_hooks_file(place: EntryLocation, environ: Mapping[str, str]) -> Path:
    """Return the file with the person's own hooks for Claude Code, for all folders or this one."""
    if place.scope is Scope.USER:
        return claude_settings(environ)
    return place.folder / ".claude" / "settings.local.json"


def _opencode_file(folder: Path) -> Path:
    names = [folder / "opencode.jsonc", folder / "opencode.json"]
    return next((path for path in names if path.exists()), names[-1])


def write_entry(program: str, argv: Sequence[str]) -> dict[str, Any]:
    """Return the program's entry for a server that is started by that command."""
    command, *arguments = argv
    # The call returns before the program gives up, and the question stays open.
    env = {"PYNCHY_MAX_WAIT": str(_LIMIT)}
    match program:
        case "claude":
            return {
                "type": "stdio",
                "command": command,
                "args": arguments,
                "env": env,
                # Before the first turn, and among the tools from the start.
                "alwaysLoad": True,
                "timeout": _LIMIT * 1000,
            }
        case "codex":
            return {
                "command": command,
                "args": arguments,
                "env": env,
                "startup_timeout_sec": STARTUP_SECONDS,
                "tool_timeout_sec": _LIMIT,
                # Or it asks in the terminal whether somebody may be asked on the phone.
                "default_tools_approval_mode": "approve",
            }
    return {
        "type": "local",
        "command": [command, *arguments],
        "enabled": True,
        "timeout": _OPENCODE_MILLISECONDS,
    }


def read_entry(program: str, entry: object) -> McpServerEntry | None:
    """Return the server that an entry starts, None if it starts none."""
    fields = entry if isinstance(entry, dict) else {}
    command = fields.get("command")
    if program == OPENCODE:
        argv, env = command, fields.get("environment", {})
    else:
        argv, env = [command, *_texts(fields.get("args", []))], fields.get("env", {})
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        return None
    return McpServerEntry(
        tuple(argv), {k: str(v) for k, v in env.items()} if isinstance(env, dict) else {}
    )


def _texts(value: object) -> list[object]:
    return value if isinstance(value, list) else [None]
