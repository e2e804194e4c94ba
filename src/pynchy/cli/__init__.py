"""The command line. A command's module is imported only when that command runs.

Some commands (`mcp` above all) are started by agents, so what one command needs must not slow
another one down.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pynchy.errors import PluginBroken, PynchyError, exit_code

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# name: (module, what it does in one line). Channels bring commands of their own besides.
COMMANDS = {
    "serve": ("serve", "Run the host: carry questions to people and answers back."),
    "mcp": ("mcp", "Run the MCP server that an agent asks through."),
    "connect": ("connect.command", "Let an agent in your terminal ask through pynchy."),
    "hook": ("hook", "Let an agent end while it waits (a hook of Claude Code)."),
    "inbox": ("inbox", "Answer what waits: a live list here, or --open in a browser."),
    "desktop": ("desktop.command", "Pop up what waits, with buttons, in your session."),
    "watch": ("watch", "Carry what a program, or tmux's panes, ask by their titles to people."),
    "ask": ("ask", "Ask a person, as an agent would, and print the answer."),
    "agents": ("agents", "List every agent, and what each is doing."),
    "status": ("status", "Show how many agents work and what waits for you."),
    "run": ("sessions", "Start an agent's session with a prompt."),
    "sessions": ("sessions", "List the sessions, and what each is doing."),
    "log": ("sessions", "Print what the runners of a session printed."),
    "stop": ("sessions", "End the runner of a session."),
    "groups": ("groups", "List the groups, and remove one."),
    "rules": ("rules", "List what agents may do without asking, and revoke a rule."),
    "pending": ("questions", "List what waits for a person."),
    "show": ("questions", "Show one question in full."),
    "answer": ("answers", "Answer a question."),
    "approve": ("decisions", "Approve what an agent wants to do."),
    "deny": ("decisions", "Deny what an agent wants to do."),
    "decline": ("answers", "End a question without an answer."),
    "retry": ("answers", "Try again to deliver an answer that did not arrive."),
    "dismiss": ("answers", "Stop keeping an answer that could not be delivered."),
    "history": ("questions", "List closed questions, and how each ended."),
    "events": ("events", "List what happened, or follow it."),
    "sweep": ("questions", "End questions that are past their deadline."),
    "init": ("init", "Write a settings file to start from."),
    "doctor": ("doctor.command", "Find what is wrong, and say how to fix it."),
    "docs": ("help", "Print a page of the documentation, or list the pages."),
    "demo": ("demo", "See it work: an agent asks, you answer, the answer arrives."),
    "completion": ("help", "Print the completion script for your shell."),
}


def with_examples(command: click.Command) -> click.Command:
    """Return the command, the backslashes of its raw docstring turned into what click wants."""
    command.help = (command.help or "").replace(r"\b", "\b")
    return command


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table, and then those of the channels."""
        del ctx
        return [*COMMANDS, *_commands_of_channels()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command."""
        del ctx
        if cmd_name not in COMMANDS:
            return _command_of_channel(cmd_name)
        module = import_module(f"pynchy.cli.{COMMANDS[cmd_name][0]}")
        return with_examples(getattr(module, f"{cmd_name}_command"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        from pynchy.channels.plugins import all_commands  # noqa: PLC0415 - only to list them

        with formatter.section("Commands of channels"):
            formatter.write_dl(list(_commands_of_channels().items()))
        if broken := all_commands()[1]:
            with formatter.section("Broken, see pynchy doctor"):
                formatter.write_text("\n\n".join(broken))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run the command; what pynchy itself refuses is said on stderr, with an exit code."""
        try:
            return super().invoke(ctx)
        except PynchyError as exc:
            from pynchy.cli.text import clean  # noqa: PLC0415 - only for a failure

            click.echo(f"pynchy: {clean(str(exc))}", err=True)
            ctx.exit(exit_code(exc))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the commands without importing them."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only to complete

        listed = {name: text for name, (_, text) in COMMANDS.items()} | _commands_of_channels()
        found = [
            CompletionItem(name, help=text)
            for name, text in listed.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest a near name for a wrong one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"{exc.message}{hint}", ctx) from exc


def _commands_of_channels() -> dict[str, str]:
    """Return the commands that channels bring, with their lines of help."""
    from pynchy.channels.plugins import all_commands  # noqa: PLC0415 - not for every command

    brought, _ = all_commands()
    return {name: command.help for name, command in brought.items() if name not in COMMANDS}


def _command_of_channel(name: str) -> click.Command | None:
    from pynchy.channels.plugins import find_command, load_target  # noqa: PLC0415 - the same

    found = find_command(name)
    if found is None:
        return None
    try:
        command = load_target(found.target)
    except ModuleNotFoundError as exc:
        if not found.target.startswith("pynchy."):
            raise PluginBroken(f"the command {name} cannot be loaded: {exc}") from exc
        needed = f"pip install 'pynchy[{name}]' (or, in a clone, pip install '.[{name}]')"
        raise PluginBroken(f"the command {name} needs more packages: {needed}") from exc
    except (ImportError, AttributeError) as exc:
        raise PluginBroken(f"the command {name} cannot be loaded: {exc} ({found.target})") from exc
    return with_examples(command)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data-dir", type=click.Path(path_type=Path), help="The host's data folder.")
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
@click.version_option(None, "--version", package_name="pynchy")
def cli(data_dir: Path | None, config: Path | None) -> None:
    r"""Carry a question from an unattended agent to the person who can answer it.

    \b
    Start with:
      pynchy demo                        see it work
      pynchy serve                       run the host
      pynchy connect claude              let Claude Code ask (or codex, opencode)
      pynchy inbox --open                answer in a browser
      pynchy ask "Deploy?" -o Yes -o No  ask something, as an agent would
      pynchy pending                     see what waits for you
    """
    del data_dir, config  # Each command takes them from here by itself.


with_examples(cli)


def main() -> None:
    """Run the command line."""
    cli(prog_name="pynchy")
