"""The sources of the settings: whether the programs that they follow can be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from pynchy.config import CodexSourceSettings, OpenCodeSourceSettings, Settings
from pynchy.findings import Finding, fine, problem, warning
from pynchy.sources.codex_daemon import (
    TESTED_CODEX,
    DaemonFailed,
    DaemonMissing,
    codex_home,
    find_codex,
)


def check_sources(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look whether the sources of the settings can be reached."""
    if settings.sources.codex is not None:
        yield from _check_codex(settings.sources.codex, environ)
    if settings.sources.opencode is not None:
        yield from _check_opencode(settings.sources.opencode, environ)


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
