"""Where the commands print: tables for a terminal, plain lines for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click
from rich.console import Console, RenderableType

from pynchy.cli.text import to_json


def is_terminal() -> bool:
    """True if a person is reading."""
    return sys.stdout.isatty()


def make_console() -> Console:
    """Return a console that takes nothing in a text for a command to itself."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=not is_terminal())


def show(renderables: Iterable[RenderableType]) -> None:
    """Print each of them; without a terminal nothing is wrapped, cut or coloured."""
    console = make_console()
    for renderable in renderables:
        console.print(renderable, soft_wrap=not is_terminal())


def show_fields(fields: Iterable[str]) -> None:
    """Print one line of a listing for a program: fields with tabs between."""
    click.echo("\t".join(field.replace("\t", " ") for field in fields))


def show_json(value: object) -> None:
    """Print JSON in one line."""
    click.echo(to_json(value))
