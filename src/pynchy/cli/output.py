"""Where the commands print: tables for a terminal, plain lines for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click
from rich.console import Console, RenderableType

from pynchy.cli.text import clean, to_json
from pynchy.findings import Finding, Status

_COLOURS = {Status.OK: "green", Status.WARNING: "yellow", Status.PROBLEM: "red"}
_STATUS_WIDTH = max(map(len, Status))


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


def show_findings(findings: list[Finding]) -> None:
    """Print each finding with its fix, and the sum."""
    for finding in findings:
        _show_finding(finding)
    click.echo(_summary(findings))


def _show_finding(finding: Finding) -> None:
    status = click.style(f"{finding.status:<{_STATUS_WIDTH}}", fg=_COLOURS[finding.status])
    indent = " " * (_STATUS_WIDTH + 2)
    detail = clean(finding.detail).replace("\n", f"\n{indent}")
    click.echo(f"{status}  {clean(finding.check)}: {detail}")
    if finding.fix:
        click.echo(f"{indent}→ {clean(finding.fix)}")


def _summary(findings: list[Finding]) -> str:
    counts = {status: sum(f.status is status for f in findings) for status in Status}
    if not counts[Status.PROBLEM] and not counts[Status.WARNING]:
        return "All is well."
    return f"Problems: {counts[Status.PROBLEM]}. Warnings: {counts[Status.WARNING]}."
