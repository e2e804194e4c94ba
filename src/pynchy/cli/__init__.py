"""The command line. A command's module is imported only when that command runs.

Some commands (`mcp` above all) are started by agents, so what one command needs must not slow
another one down.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from pynchy.errors import AlreadyOver, NoHost, PynchyError

EXIT_OVER = 4
EXIT_NO_HOST = 5

# name: (module, what it does in one line)
COMMANDS = {
    "serve": ("serve", "Run the host: carry questions to people and answers back."),
    "mcp": ("mcp", "Run the MCP server that an agent asks through."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"pynchy.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest a near name for a wrong one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"{exc.message}{hint}", ctx) from exc


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data-dir", type=click.Path(path_type=Path), help="The host's data folder.")
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
@click.version_option(None, "--version", package_name="pynchy")
@click.pass_context
def cli(ctx: click.Context, data_dir: Path | None, config: Path | None) -> None:
    r"""Carry a question from an unattended agent to the person who can answer it.

    \b
    Begin with:
      pynchy demo                        see it work
      pynchy serve                       run the host
      pynchy ask "Deploy?" -o Yes -o No  ask something, as an agent would
      pynchy pending                     see what waits for you
    """
    ctx.obj = {"data_dir": data_dir, "config": config}


def main() -> None:
    """Run the command line; errors say what to do next."""
    try:
        cli(prog_name="pynchy")
    except PynchyError as exc:
        click.echo(f"pynchy: {exc}", err=True)
        sys.exit(_exit_code(exc))


def _exit_code(exc: PynchyError) -> int:
    match exc:
        case AlreadyOver():
            return EXIT_OVER
        case NoHost():
            return EXIT_NO_HOST
        case _:
            return 1
