"""Slack: the secrets, what they open, and the chat of each group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from pynchy.cli.doctor.finding import Finding, fine, problem, warning
from pynchy.config import SLACK, Settings, SlackChannelSettings
from pynchy.errors import ConfigError

_INSTALL = "pip install '.[slack]' in pynchy's folder"


def look_at_slack(
    settings: Settings, environ: Mapping[str, str], *, post: bool = False
) -> Iterator[Finding]:
    """Look at the Slack channel, if there is one."""
    table = settings.channels.get(SLACK)
    if not isinstance(table, SlackChannelSettings):
        return
    try:
        # Only where it is used: others run without these libraries.
        from pynchy.channels.slack.channel import read_secrets  # noqa: PLC0415
        from pynchy.channels.slack.setup import examine  # noqa: PLC0415
    except ImportError as exc:
        yield problem("slack", f"{exc.name} is not installed", _INSTALL)
        return
    try:
        secrets = read_secrets(table, environ)
    except ConfigError as exc:
        yield warning("slack", str(exc), "set them where pynchy runs, and here to look at them")
        return
    for look in asyncio.run(examine(table, secrets, settings, post=post)):
        found = problem(look.check, look.detail, look.fix) if look.fix else None
        yield found or fine(look.check, look.detail)
