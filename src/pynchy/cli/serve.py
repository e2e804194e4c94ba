"""`pynchy serve`: run the host until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

import click

from pynchy.channels.loading import load_settings
from pynchy.cli.inbox import show_link
from pynchy.cli.options import config_option, data_dir_option
from pynchy.config import Settings
from pynchy.data_dir import DataFolder, SettingsSource
from pynchy.host import running_host
from pynchy.logs import LogFormat, set_up_logging

log = logging.getLogger(__name__)


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
def serve_command(
    data: DataFolder, config: Path | None, port: int | None, log_level: str, log_format: str
) -> None:
    r"""Run the host: carry questions to people and answers back, until stopped.

    Prints one line with its address when it is ready; at a terminal also a link that signs a
    browser in to the inbox, with a code to scan where a phone can reach it (http.public_url). Stop
    it with Ctrl-C or SIGTERM; what is open stays open and is taken up at the next start.

    \b
    Example:
      pynchy serve --config pynchy.toml
    """
    set_up_logging(log_level, LogFormat(log_format))
    origin = SettingsSource.of(config)
    settings = load_settings(config)
    if port is not None:
        settings = settings.model_copy(
            update={"http": settings.http.model_copy(update={"port": port})}
        )
    asyncio.run(_serve(settings, data, origin))


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
        log.info("host.ready", extra={"url": running.url, "recovered": running.recovered})
        await stop.wait()
    log.info("host.stopped")
