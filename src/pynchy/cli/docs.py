"""`pynchy docs`: the pages that messages point to, wherever pynchy is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pynchy.errors import PynchyError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_PACKAGE = Path(__file__).parents[1]
# In the wheel, or beside the source of an installation that can be edited.
_FOLDERS = (_PACKAGE / "docs", _PACKAGE.parents[1] / "docs")
PAGES = (
    "agents",
    "channels",
    "connect",
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
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only to complete

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
