"""Agent programs of this machine: how Claude Code waits and asks, and whether sources are reached.

Of Claude Code, its version and its settings tell; whether its calls wait can be tried with the
program itself. Nothing here reaches further than this machine and the servers that the settings
name.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent_runner.cores.claude import BACKGROUND_VARIABLE
from pynchy.cli.connect.document import read_document
from pynchy.cli.connect.plan import open_text
from pynchy.cli.connect.programs import Format, claude_settings
from pynchy.cli.doctor.gate import GateTrial, NotTried
from pynchy.config import (
    CodexSourceSettings,
    OpenCodeSourceSettings,
    PhuxSourceSettings,
    Settings,
)
from pynchy.errors import ConfigError
from pynchy.findings import Finding, fine, problem, warning
from pynchy.launchers.box_folders import safe_search
from pynchy.sources.codex_daemon import (
    TESTED_CODEX,
    DaemonFailed,
    DaemonMissing,
    codex_home,
    find_codex,
)
from pynchy.sources.phux_program import PhuxFailed, PhuxMissing, PhuxNotRunning, PhuxProgram

_CHECK = "Claude Code"
GATE = "Claude Code's gate"
_PROGRAM = "claude"
_VERSION_SECONDS = 10.0
_BACKGROUND = ("env", BACKGROUND_VARIABLE)
_MODE = ("permissions", "defaultMode")
_NEVER = "0"

Version = tuple[int, int, int]
# The newest that our tests run, in a terminal and without one.
TESTED: Version = (2, 1, 325)
# From here on its terminal starts in auto mode.
_AUTO_MODE: Version = (2, 1, 325)
# A mode that was chosen, and asks nobody: what it does not let pass is denied, or all is let pass.
_ASKING_NOBODY = frozenset({"auto", "bypassPermissions", "dontAsk"})


def check_claude_code(
    environ: Mapping[str, str], project: Path, boxes: Sequence[Path] = (), *, try_gate: bool = False
) -> Iterator[Finding]:
    """Say of the installed version whether it is set to wait, and whether it asks for permissions.

    `boxes` are folders where agents may have put programs, which are not run. With `try_gate` it is
    run, to see that it waits.
    """
    version = find_version(environ, boxes)
    try:
        yield _waiting(version, environ, project)
        if try_gate:
            yield _tried(version, environ, project, boxes)
        if version is not None and version >= _AUTO_MODE:
            yield from _asking(version, environ, project)
    except ConfigError as exc:
        yield warning(_CHECK, str(exc), "correct the file: the program cannot read it either")


def _tried(
    version: Version | None, environ: Mapping[str, str], project: Path, boxes: Sequence[Path]
) -> Finding:
    """Run the program with what its settings say, and see whether a call of ours waits."""
    program = _find_program(environ, boxes)
    if program is None:
        return warning(GATE, "not tried: no claude was found on your PATH", "install it")
    value, _ = _setting(_BACKGROUND, environ, project)
    try:
        holds = GateTrial(program, value, environ).holds()
    except NotTried as exc:
        fix = "let it ask you something in a terminal, and see that it waits"
        return warning(GATE, f"{_told(version)} could not be tried: {exc}", fix)
    if holds:
        return fine(GATE, f"tried: in its terminal {_told(version)} waits for your answer")
    detail = f"tried: in its terminal {_told(version)} goes on without your answer"
    return problem(GATE, detail, "run pynchy connect claude again, and see the line above")


def _find_program(environ: Mapping[str, str], boxes: Sequence[Path]) -> str | None:
    return shutil.which(_PROGRAM, path=safe_search(_PROGRAM, environ.get("PATH"), boxes))


def find_version(environ: Mapping[str, str], boxes: Sequence[Path] = ()) -> Version | None:
    """Return the version that is installed; None if it cannot be told."""
    program = _find_program(environ, boxes)
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the program that the person has connected
            [program, "--version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(rb"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", done.stdout)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _waiting(version: Version | None, environ: Mapping[str, str], project: Path) -> Finding:
    told, own = _told(version), claude_settings(environ)
    value, path = _setting(_BACKGROUND, environ, project)
    if value != _NEVER:
        said = f"sets it to {value!r}" if path else "does not set it to 0"
        goes_on = f"in its terminal {told} goes on without your answer after a while"
        detail = f"{BACKGROUND_VARIABLE}: {path or own} {said}; {goes_on}"
        fix = "run pynchy connect claude again" if path in {None, own} else f"take it out of {path}"
        return problem(_CHECK, detail, fix)
    detail = f"{told} is set to wait for your answer, in a terminal too ({BACKGROUND_VARIABLE} is 0"
    if version is None or version <= TESTED:
        return fine(_CHECK, f"{detail}; its settings say so; pynchy doctor --gate tries it)")
    newer = f"{detail}), but it is newer than what was tested ({_text(TESTED)})"
    return warning(_CHECK, newer, "let it ask you something in a terminal, and see that it waits")


def _asking(version: Version, environ: Mapping[str, str], project: Path) -> Iterator[Finding]:
    mode, path = _setting(_MODE, environ, project)
    if not isinstance(mode, str) or mode in _ASKING_NOBODY:
        why = f"{path} says {mode!r}" if path else "it starts in auto mode"
        own = claude_settings(environ)
        put = f'set permissions.defaultMode to "default" in {own}'
        more = put if path in {None, own} else f"take permissions.defaultMode out of {path}"
        yield warning(
            _CHECK,
            f"{_told(version)} asks for no permission at all in a terminal: {why}",
            f"start it with claude --permission-mode default, or {more}",
        )


def _setting(
    keys: tuple[str, ...], environ: Mapping[str, str], project: Path
) -> tuple[object, Path | None]:
    """Return what counts, and the file that says so. Raise ConfigError for one that is broken."""
    for path in (*_above(project), claude_settings(environ)):
        value = open_text(read_document(path), Format.JSON).find(keys)
        if value is not None:
            return value, path
    return None, None


def _above(project: Path) -> tuple[Path, ...]:
    """Return the files that win over the person's own, the strongest first."""
    managed = (
        Path("/Library/Application Support/ClaudeCode/managed-settings.json")
        if sys.platform == "darwin"
        else Path("/etc/claude-code/managed-settings.json")
    )
    own = project / ".claude"
    return managed, own / "settings.local.json", own / "settings.json"


def _told(version: Version | None) -> str:
    return (
        f"version {_text(version)}"
        if version
        else "Claude Code (no version of it was found on your PATH)"
    )


def _text(version: Version) -> str:
    return ".".join(map(str, version))


def check_sources(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look whether the sources of the settings can be reached."""
    if settings.sources.codex is not None:
        yield from _check_codex(settings.sources.codex, environ)
    if settings.sources.opencode is not None:
        yield from _check_opencode(settings.sources.opencode, environ)
    if settings.sources.phux is not None:
        yield from _check_phux(settings.sources.phux, environ)


def _check_phux(table: PhuxSourceSettings, environ: Mapping[str, str]) -> Iterator[Finding]:
    asks = f"what is asked in its terminals is asked in group {table.group}, too"
    program = PhuxProgram(table.command, table.socket, environ)
    try:
        count = len(asyncio.run(program.terminals()))
    except PhuxMissing as exc:
        fix = "install phux, or name the program: command in [sources.phux]"
        yield problem("phux", str(exc), fix)
    except PhuxNotRunning:
        yield fine("phux", f"no server of it runs; once one does, {asks}")
    except PhuxFailed as exc:
        yield problem("phux", str(exc), "look what phux ls --json says, or update phux")
    else:
        yield fine("phux", f"{count} terminal{'' if count == 1 else 's'}; {asks}")


def _check_opencode(table: OpenCodeSourceSettings, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        from pynchy.sources.opencode.source import look_around  # noqa: PLC0415 - an extra
    except ImportError as exc:
        yield problem("opencode", f"{exc.name} is not installed", "pip install '.[opencode]'")
        return
    for server in asyncio.run(look_around(table, environ)):
        check = f"opencode {server.url}"
        if server.why:
            fix = "start it (opencode serve --port …), or correct [sources.opencode]"
            yield warning(check, server.why, fix)
            continue
        told = "tells what it waits for" if server.is_exact else "is older: permissions are guessed"
        asks = f"what it asks is asked in group {table.group}, too" if table.forward else "is shown"
        yield fine(
            check, f"{told}; {asks if server.is_trusted else 'was found, and is only shown'}"
        )


def _check_codex(table: CodexSourceSettings, environ: Mapping[str, str]) -> Iterator[Finding]:
    check, home = "codex (in a terminal)", codex_home(table.home, environ)
    asks = f"what it asks is asked in group {table.group}, too"
    try:
        version = asyncio.run(find_codex(home))
    except DaemonMissing:
        if home.is_dir():
            yield fine(check, f"none runs ({home}); once somebody opens one, {asks}")
        else:
            fix = "correct home in [sources.codex], or start codex once as this user"
            yield warning(check, f"{home}: there is no such folder", fix)
    except DaemonFailed as exc:
        fix = "end Codex with codex app-server daemon stop, and open it again as this user"
        yield problem(check, str(exc), fix)
    else:
        told = "" if version == TESTED_CODEX else f" (tested with {TESTED_CODEX})"
        yield fine(check, f"version {version or 'unknown'} runs{told}; {asks}")
