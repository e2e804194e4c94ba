"""`pynchy serve`: run the host until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource

from pynchy.aio import HostLoop
from pynchy.channels.loading import load_settings
from pynchy.cli.doctor.settings import check_exposure, check_people
from pynchy.cli.inbox import show_link
from pynchy.cli.options import config_option, data_dir_option, shared_path
from pynchy.config import Settings
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.host import running_host
from pynchy.logs import LogFormat, set_up_logging

log = logging.getLogger(__name__)

_NO_FILE = "no file, so the defaults count"


@click.command("serve", short_help="Run the host.")
@data_dir_option
@config_option
@click.option("--port", type=click.IntRange(0, 65_535), help="Listen here instead (0: any free).")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
@click.option(
    "--log-format",
    type=click.Choice([each.value for each in LogFormat]),
    default=LogFormat.TEXT.value,
    show_default=True,
    help="How the lines on stderr are written: key=value, or one JSON object each.",
)
@click.pass_context
def serve_command(  # noqa: PLR0913 - one for each option
    ctx: click.Context,
    *,
    data: DataFolder,
    config: Path | None,
    port: int | None,
    log_level: str,
    log_format: str,
) -> None:
    r"""Run the host: carry questions to people and answers back, until stopped.

    Prints one line with its address when it is ready. Its log says which settings file it has read:
    --config, else PYNCHY_CONFIG, else pynchy.toml in this folder, else
    ~/.config/pynchy/pynchy.toml. If the host last ran with another file or none, the one in this
    folder has to be named. A port that you choose (here or in the settings) must be free; if
    the default, 8765, is taken, another one is used. At a terminal it also prints a link that
    signs a browser in to the inbox, with a code to scan where a phone can reach it
    (http.public_url). Stop it with Ctrl-C or SIGTERM; what is open stays open and is taken up at
    the next start.

    \b
    Example:
      pynchy serve --config pynchy.toml
    """
    set_up_logging(log_level, LogFormat(log_format))
    is_named = _was_asked_for(ctx)
    origin = SettingsSource.of(config)
    settings = load_settings(config)
    if port is not None:
        settings = settings.model_copy(
            update={"http": settings.http.model_copy(update={"port": port})}
        )
    log.info("host.settings", extra={"file": origin.path or _NO_FILE})
    for warning in _warnings(settings, None if is_named else origin):
        _warn(warning, LogFormat(log_format))
    with asyncio.Runner(loop_factory=HostLoop) as runner:
        runner.run(_serve(settings, data, origin))


def _was_asked_for(ctx: click.Context) -> bool:
    """True if somebody named the settings file."""
    named = ctx.get_parameter_source("config") is not ParameterSource.DEFAULT
    return named or bool(shared_path(ctx, "config") or os.environ.get("PYNCHY_CONFIG"))


def _warnings(settings: Settings, found: SettingsSource | None) -> Iterator[str]:
    """Yield what whoever starts the host should know; `found` is a file that nobody named."""
    if found and found.path and found.path.parent == Path.cwd():
        starts = [name for name, group in settings.groups.items() if group.launcher]
        can = f"; it starts programs for: {', '.join(starts)}" if starts else ""
        yield (
            f"the settings are those of {found.path}, because you are in this folder{can}. "
            "If that is not what you want, name another file with --config"
        )
    findings = list(check_exposure(settings.http))
    for name, group in settings.groups.items():
        findings += check_people(name, group)
    for finding in findings:
        yield f"{finding.check}: {finding.detail}. To change that: {finding.fix}"


def _warn(text: str, log_format: LogFormat) -> None:
    """Say it in words, unless a program reads every line."""
    if log_format is LogFormat.JSON:
        log.warning("host.warned", extra={"why": text})
    else:
        click.echo(click.style(f"Warning: {text}", fg="yellow"), err=True)


async def _serve(settings: Settings, data: DataFolder, origin: SettingsSource) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running_host(settings, data, origin=origin) as running:
        click.echo(f"pynchy is ready: {running.url}/ (data: {data.path})")
        # Not into a file or a journal: whoever reads the link first is let in.
        if sys.stdout.isatty():
            show_link(await running.make_link())
            click.echo(f"settings: {origin.path or _NO_FILE}")
        log.info("host.ready", extra={"url": running.url, "recovered": running.recovered})
        await stop.wait()
    log.info("host.stopped")
