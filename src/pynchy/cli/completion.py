"""`pynchy completion`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_PYNCHY_COMPLETE"


@click.command("completion", short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    r"""Print the completion script of a shell; ids are completed from the running host.

    \b
    Examples, for the shell's own settings:
      eval "$(pynchy completion bash)"                                  in ~/.bashrc
      eval "$(pynchy completion zsh)"                                   in ~/.zshrc
      pynchy completion fish > ~/.config/fish/completions/pynchy.fish   once
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.BadParameter(f"no completion for {shell}")
    root = ctx.find_root().command
    click.echo(completion(root, {}, "pynchy", _VARIABLE).source())
