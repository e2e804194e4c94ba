"""`pynchy doctor`: one line and one fix for each thing that is looked at."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from pynchy.channels.base import ChannelContext
from pynchy.channels.loading import examine_channels
from pynchy.cli.doctor.connections import check_connections
from pynchy.cli.doctor.machine import (
    check_clock,
    check_data_folder,
    check_disk,
    check_inotify,
    check_python,
    check_stale_host,
    check_token,
    look_at_host,
    wait_for_host,
)
from pynchy.cli.doctor.programs import check_sources
from pynchy.cli.doctor.settings import (
    check_exposure,
    check_groups,
    look_at_settings,
)
from pynchy.cli.options import data_dir_option, json_option, shared_path
from pynchy.cli.output import show_findings, show_json
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_FAILED
from pynchy.findings import Finding, Status
from pynchy.launchers.box_folders import writable_by_agents


@click.command("doctor", short_help="Find what is wrong, and say how to fix it.")
# Not the shared option: that one gives up where the file is missing, and here it is a finding.
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The settings file.  [env: PYNCHY_CONFIG]",
)
@json_option
@data_dir_option
@click.pass_context
def doctor_command(
    ctx: click.Context, data: DataFolder, config: Path | None, *, as_json: bool
) -> None:
    r"""Find what is wrong, and say how to fix it. Changes nothing.

    While a host runs, doctor looks at the settings file that the host has read, whatever folder you
    are in. If --config or PYNCHY_CONFIG names another file, a warning says so.

    Where `pynchy connect` has connected an agent program, its MCP server is started as the program
    would start it, and asked for its tools. With [sources.codex] the background server of a
    terminal's Codex is asked for its version.

    Exit code: 0 no problems (there may be warnings), 1 at least one problem.

    \b
    Examples:
      pynchy doctor
      pynchy doctor --json | jq '.[] | select(.status == "problem")'
    """
    findings = list(examine(data, config or shared_path(ctx, "config"), datetime.now(UTC)))
    if as_json:
        show_json([asdict(finding) for finding in findings])
    else:
        show_findings(findings)
    if any(finding.status is Status.PROBLEM for finding in findings):
        sys.exit(EXIT_FAILED)


def examine(data: DataFolder, config: Path | None, now: datetime) -> Iterator[Finding]:
    """Yield everything that there is to say, in the order of reading.

    A host that starts or stops meanwhile would be there for one check and not for the next: then
    it is all looked at once more.
    """
    is_up = wait_for_host(data)
    found = list(_examine(data, config, now))
    if wait_for_host(data) != is_up:
        found = list(_examine(data, config, now))
    yield from found


def _examine(data: DataFolder, config: Path | None, now: datetime) -> Iterator[Finding]:
    yield from check_python()
    settings, told = look_at_settings(config, os.environ, data)
    yield from told
    yield from check_data_folder(data)
    yield from check_token(data)
    health = look_at_host(data)
    yield from health.findings
    yield from check_stale_host(data)
    yield from check_disk(data)
    yield from check_inotify()
    yield from check_clock(data, now)
    boxes = writable_by_agents(settings.launchers(), data.path) if settings else []
    yield from check_connections(data, os.environ, Path.cwd(), boxes=boxes)
    if settings is not None:
        yield from check_exposure(settings.http)
        yield from check_groups(settings, data, health.problems)
        yield from check_sources(settings, os.environ)
        running = health.problems is not None
        yield from examine_channels(ChannelContext(settings, os.environ, data.path, running))
