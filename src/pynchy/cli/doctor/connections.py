"""The agent programs that `pynchy connect` has connected: do their tools really come.

The server is started exactly as the program's settings say. What lies in a project may come from
anybody, so from there nothing is started but this very pynchy, and no environment but ours set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_runner.cores.claude import BACKGROUND_VARIABLE
from pynchy.cli.connect.own import find_own_program
from pynchy.cli.connect.plan import find_server, holds_calls
from pynchy.cli.connect.programs import (
    CLAUDE,
    PROGRAMS,
    EntryLocation,
    McpServerEntry,
    Scope,
    claude_settings,
    find_place,
)
from pynchy.cli.doctor.finding import Finding, fine, problem, warning
from pynchy.cli.doctor.probe import NoTools, list_tools
from pynchy.data_dir import DataFolder
from pynchy.errors import ConfigError
from pynchy.paths import data_dir

SECONDS = 20.0
_TOOLS = {"ask_user", "check_answer", "withdraw_question"}
# The session of an agent that runs us is not the one that the server is to be started for.
_NOT_OURS = ("CLAUDE_CODE_SESSION_ID", "PYNCHY_SESSION_ID", "PYNCHY_CALLED")


def check_connections(
    data: DataFolder, environ: Mapping[str, str], folder: Path, seconds: float = SECONDS
) -> Iterator[Finding]:
    """Look at every program's settings, for all folders and for this one."""
    for program in PROGRAMS:
        for scope in Scope:
            place = find_place(program, scope, environ, folder)
            yield from _check(place, data, environ, seconds)


def _check(
    place: EntryLocation, data: DataFolder, environ: Mapping[str, str], seconds: float
) -> Iterator[Finding]:
    check = f"{place.program} ({place.scope})"
    try:
        server = find_server(place)
    except ConfigError as exc:
        yield warning(check, str(exc), "correct the file: the program cannot read it either")
        return
    if server is None:
        return
    if not server.is_ours:
        detail = f"{place.path}: {'.'.join(place.keys)} does not start `pynchy mcp`"
        yield warning(check, detail, "take it out, then pynchy connect")
    elif stranger := _stranger(place, server):
        yield warning(check, f"{place.path}: {stranger}, so it was not started", _fix(place))
    elif (asked := _data_of(server, environ)) != data.path:
        detail = f"{place.path}: it asks in {asked}, and this is about {data.path}"
        yield warning(check, detail, f"{_fix(place)}, with the --data-dir of your host")
    else:
        yield _try(check, place, server, environ, seconds)
        if place.program == CLAUDE:
            yield from _check_waiting(check, place, environ)


def _check_waiting(
    check: str, place: EntryLocation, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Claude Code's terminal moves a call that waits to the background unless it is told not to."""
    try:
        waits = holds_calls(environ)
    except ConfigError as exc:
        yield warning(check, str(exc), "correct the file: the program cannot read it either")
        return
    if not waits:
        detail = (
            f"{claude_settings(environ)} does not set {BACKGROUND_VARIABLE} to 0: in its terminal"
            " Claude Code goes on without your answer after two minutes"
        )
        yield problem(check, detail, _fix(place))


def _data_of(server: McpServerEntry, environ: Mapping[str, str]) -> Path:
    """Return the data folder of the server as a program starts it that hands on HOME alone."""
    given = server.option("--data-dir")
    home = {name: value for name, value in environ.items() if name == "HOME"}
    return data_dir(Path(given) if given else None, home | dict(server.env)).absolute()


def _stranger(place: EntryLocation, server: McpServerEntry) -> str:
    """Return why a server that somebody else may have written is not to be started."""
    if place.scope is Scope.USER or place.program == CLAUDE:  # both lie in the person's own files
        return ""
    if server.argv[0] != find_own_program():
        return f"{server.argv[0]} is not the pynchy that runs now"
    foreign = [name for name in server.env if not name.startswith("PYNCHY_")]
    return f"it sets {', '.join(foreign)}" if foreign else ""


def _try(
    check: str,
    place: EntryLocation,
    server: McpServerEntry,
    environ: Mapping[str, str],
    seconds: float,
) -> Finding:
    inherited = {name: value for name, value in environ.items() if name not in _NOT_OURS}
    started = time.monotonic()
    try:
        tools = list_tools(server.argv, {**inherited, **server.env}, place.folder, seconds)
    except NoTools as exc:
        return problem(check, f"{place.path}: {exc}", _fix(place))
    if missing := _TOOLS - set(tools):
        detail = f"{place.path}: the server lacks {', '.join(sorted(missing))}"
        return problem(check, detail, _fix(place))
    took = f"{time.monotonic() - started:.1f} s"
    return fine(check, f"connected as group {server.group}: {', '.join(tools)} (in {took})")


def _fix(place: EntryLocation) -> str:
    scope = "" if place.scope is Scope.USER else f" --scope {place.scope}"
    return f"run pynchy connect {place.program}{scope} again"
