"""`pynchy slack`: make the Slack app, and see whether it works."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from pynchy.channels.base import ChannelContext
from pynchy.channels.loading import load_settings
from pynchy.channels.slack.plugin import look_at_slack
from pynchy.channels.slack.setup import manifest, new_app_link
from pynchy.cli import with_examples
from pynchy.cli.options import config_option, json_option
from pynchy.cli.output import show_findings, show_json
from pynchy.config import SLACK
from pynchy.errors import EXIT_FAILED, ConfigError
from pynchy.findings import Status


@click.group("slack", short_help="Set up the Slack channel, and look whether it works.")
def slack_command() -> None:
    r"""Set up the Slack channel, and look whether it works.

    \b
    Examples:
      pynchy slack manifest        the app, to paste into Slack
      pynchy slack check           tokens, scopes, channels
      pynchy slack check --post    and a test card in each channel
    """


@click.command("manifest", short_help="Print the manifest of the Slack app.")
@json_option
@click.option("--request-url", help="For HTTP mode: https://YOUR-NAME/slack/events")
def manifest_command(request_url: str | None, *, as_json: bool) -> None:
    r"""Print the manifest that Slack makes the app from, and a link that fills it in.

    \b
    Examples:
      pynchy slack manifest
      pynchy slack manifest --json > manifest.json
    """
    made = manifest(request_url)
    if as_json:
        show_json(made)
        return
    click.echo(json.dumps(made, indent=2))
    click.echo("\nOpen this link, choose the workspace, and create the app:")
    click.echo(new_app_link(made))
    click.echo("\nThen: Install App; copy the bot token; Basic Information → App-Level Tokens →")
    click.echo("Generate, with the scope connections:write. `pynchy docs slack` has all steps.")


@click.command("check", short_help="Look whether tokens, scopes and channels are right.")
@click.option("--post", is_flag=True, help="Post a test card to each group's channel.")
@json_option
@config_option
def check_command(config: Path | None, *, post: bool, as_json: bool) -> None:
    r"""Look whether tokens, scopes and channels are right.

    Exit code: 0 all is well, 1 something is not.

    \b
    Examples:
      pynchy slack check
      pynchy slack check --post
    """
    settings = load_settings(config)
    if SLACK not in settings.channels:
        raise ConfigError(
            f"there is no [channels.{SLACK}] in the settings; pynchy docs slack says how"
        )
    context = ChannelContext(settings, os.environ, Path(), name=SLACK)
    findings = list(look_at_slack(context, post=post))
    if as_json:
        show_json([asdict(finding) for finding in findings])
    else:
        show_findings(findings)
    if any(finding.status is not Status.OK for finding in findings):
        sys.exit(EXIT_FAILED)


for _command in (manifest_command, check_command):
    slack_command.add_command(with_examples(_command))
