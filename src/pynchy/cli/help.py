"""`pynchy docs` and `pynchy completion`: the pages that messages point to, and help for a shell."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from pynchy.errors import PynchyError

_PACKAGE = Path(__file__).parents[1]
# In the wheel, or beside the source of an installation that can be edited.
_FOLDERS = (_PACKAGE / "docs", _PACKAGE.parents[1] / "docs")
_VARIABLE = "_PYNCHY_COMPLETE"
PAGES = (
    "agents",
    "channels",
    "connect",
    "desktop",
    "foreign-agents",
    "glossary",
    "inbox",
    "mailbox",
    "numbered",
    "parking",
    "permissions",
    "reliability",
    "rules",
    "sandboxes",
    "sessions",
    "settings",
    "slack",
    "status-bars",
    "terminal",
    "terminals",
    "whatsapp",
)


def pages_folder() -> Path:
    """Return where the pages are. Raise PynchyError if they are not there."""
    found = [folder for folder in _FOLDERS if (folder / f"{PAGES[0]}.md").is_file()]
    if not found:
        raise PynchyError("the pages are missing from this installation; install pynchy again")
    return found[0]


def _complete(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(page) for page in PAGES if page.startswith(incomplete)]


@click.command("docs", short_help="Print a page of the documentation.")
@click.argument("page", required=False, shell_complete=_complete)
def docs_command(page: str | None) -> None:
    r"""Print a page of the documentation; without PAGE, list the pages and say where they are.

    \b
    Examples:
      pynchy docs
      pynchy docs slack | less
    """
    folder = pages_folder()
    if page is None:
        for name in PAGES:
            click.echo(f"{name:<11}  {_title(folder / f'{name}.md')}")
        click.echo(f"They are in {folder}")
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in PAGES:
        raise PynchyError(_unknown(page))
    click.echo((folder / f"{name}.md").read_text("utf-8"), nl=False)


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("# ").strip()


def _unknown(page: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    near = get_close_matches(page, PAGES, n=1)
    meant = f"did you mean {near[0]}?" if near else f"there are: {', '.join(PAGES)}"
    return f"there is no page {page}; {meant}"


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
