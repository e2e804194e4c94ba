"""`pynchy rules`: what agents may do without a question, a trial of it, and taking it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.padding import Padding
from rich.text import Text

from pynchy.calls import BASH, FILE_TOOLS
from pynchy.cli import with_examples
from pynchy.cli.options import (
    TEXT,
    by_option,
    complete_groups,
    data_dir_option,
    data_folder_of,
    json_option,
)
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.text import flat, moment, one_line, read_moment
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_DECLINED, EXIT_UNANSWERED, PynchyError, UnknownGroup, UnknownRule
from pynchy.misspelling import no_such_group

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_STYLES = {"allow": "green", "ask": "yellow", "deny": "red"}
_TRIAL_EXITS = {"allow": 0, "deny": EXIT_DECLINED, "ask": EXIT_UNANSWERED}
_COMPLETION_SECONDS = 0.5
_HELP_WIDTH = 60
_FOR_GOOD = "for good"
_NONE = (
    "There are no rules: every permission is asked. A rule is made on a card, or in the settings "
    "under [groups.NAME.permissions]; see: pynchy docs rules"
)


@click.group(
    "rules", invoke_without_command=True, short_help="List the rules, try and revoke them."
)
@click.option("--group", metavar="NAME", shell_complete=complete_groups, help="Only of that group.")
@json_option
@data_dir_option
@click.pass_context
def rules_command(
    ctx: click.Context, data: DataFolder, group: str | None, *, as_json: bool
) -> None:
    r"""List the rules: what agents may do without a question, what is asked each time, what never.

    Deny beats ask, ask beats allow; what no rule speaks of is asked. Without a terminal each rule
    is one line with tabs between its fields: id, effect, what it covers, its pattern, group (and
    session), until when, who made it, how often it was used, when last.

    \b
    Examples:
      pynchy rules
      pynchy rules --group web-team --json | jq -r '.[] | select(.uses == 0) | .short_id'
      pynchy rules test web-team Bash --command "git push origin main"
      pynchy rules revoke h3kd7p
    """
    if ctx.invoked_subcommand is not None:
        return
    client = HostClient.of(data)
    views = client.rules(group)
    if group and not views:
        _check_group(client, group)
    problem = _say_problems(client)
    if as_json:
        show_json(views)
    elif not views:
        click.echo(_NONE if not problem else "No rule can be listed.")
    elif is_terminal():
        show(_block(_fields(view)) for view in views)
    else:
        for view in views:
            show_fields(_fields(view))


def _check_group(client: HostClient, group: str) -> None:
    """Raise UnknownGroup for a name that no group has."""
    known = [str(view.get("name", "")) for view in client.groups()]
    if group not in known:
        raise UnknownGroup(no_such_group(group, known))


def _say_problems(client: HostClient) -> bool:
    """Say on stderr what is wrong with the rules. True if none allows anything because of it."""
    try:
        view = client.rule_problems()
    except UnknownRule:
        return False  # a host of an earlier version, which cannot tell
    problem = view.get("problem")
    for told in [*([problem] if problem else []), *view.get("warnings", [])]:
        click.echo(f"Warning: {one_line(str(told))}", err=True)
    return bool(problem)


def _block(fields: list[str]) -> Padding:
    """Return the rule as a few lines: whoever trusts a rule must see all of it."""
    short_id, effect, covers, pattern, whom, until, by, uses, last = fields
    text = Text.assemble(
        (short_id, "bold"), "  ", (effect, _STYLES.get(effect, "")), f"  {pattern}\n"
    )
    text.append(f"{covers}\n")
    lasts = until if until == _FOR_GOOD else f"until {until}"
    text.append(f"group {whom}, {lasts}, by {by}; used {uses} times, last: {last}", "dim")
    return Padding(text, (0, 0, 1, 0))


def _fields(view: Json) -> list[str]:
    session = view.get("session_id")
    return [
        one_line(str(view.get("short_id", ""))),
        one_line(str(view.get("effect", ""))),
        flat(str(view.get("covers", ""))),
        flat(str(view.get("pattern", ""))),
        one_line(f"{view.get('group', '')}/{session}" if session else str(view.get("group", ""))),
        _when(view.get("expires_at"), _FOR_GOOD),
        one_line(str(view.get("made_by", ""))),
        str(view.get("uses", 0)),
        _when(view.get("last_used"), "never"),
    ]


def _when(at: object, otherwise: str) -> str:
    return moment(read_moment(str(at))) if at else otherwise


def _complete_rules(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only to complete

    try:
        views = HostClient.of(data_folder_of(ctx), _COMPLETION_SECONDS).rules()
        return [
            CompletionItem(view["short_id"], help=one_line(str(view["pattern"]), _HELP_WIDTH))
            for view in views
            if view["origin"] == "card" and view["short_id"].startswith(incomplete)
        ]
    except (PynchyError, OSError, KeyError, TypeError):
        return []  # A shell that completes must never be spoken to.


@click.command("revoke", short_help="Let a rule count no more.")
@click.argument("target", metavar="ID", shell_complete=_complete_rules)
@by_option
@data_dir_option
def revoke_command(target: str, by: str, data: DataFolder) -> None:
    r"""Let a rule that was made on a card count no more, from now on.

    A rule of the settings is not revoked: take it out of the file, and restart `pynchy serve`.

    Exit code: 0 it is revoked, 1 it is not (the message says why), 5 no host is running.

    \b
    Examples:
      pynchy rules revoke h3kd7p
    """
    view = HostClient.of(data).revoke_rule(target, by)
    effect, pattern = (one_line(str(view.get(name, ""))) for name in ("effect", "pattern"))
    click.echo(f"Revoked: {effect} {pattern} in group {one_line(str(view.get('group', '')))}.")


@click.command("test", short_help="Say what the rules would say of a call.")
@click.argument("group", shell_complete=complete_groups)
@click.argument("tool")
@click.option("--command", type=TEXT, metavar="TEXT", help="The shell command, of Bash.")
@click.option("--file", type=TEXT, metavar="PATH", help="The file, of Read, Edit, Write and such.")
@click.option("--input", "given", type=TEXT, metavar="JSON", help="All of the call's input.")
@click.option(
    "--cwd", type=TEXT, default="", metavar="DIR", help="Where the agent works.  [not known]"
)
@click.option("--exit-code", is_flag=True, help="Exit with 0 for allow, 2 for deny, 3 for ask.")
@json_option
@data_dir_option
def test_command(  # noqa: PLR0913 - each is an option
    *,
    data: DataFolder,
    group: str,
    tool: str,
    command: str | None,
    file: str | None,
    given: str | None,
    cwd: str,
    exit_code: bool,
    as_json: bool,
) -> None:
    r"""Say whether the rules of GROUP would allow, ask or deny a call of TOOL, by which and why.

    Nothing is asked, counted or written down. TOOL is what a rule calls it: Bash, Edit, WebFetch,
    mcp__jira__create. Rules for one session are left out.

    Exit code: 0 whatever it says, 1 there is no such group, 5 no host is running; with --exit-code
    0 allow, 2 deny, 3 ask.

    \b
    Examples:
      pynchy rules test web-team Bash --command "git push origin main"
      pynchy rules test web-team Edit --file src/app.py --cwd /srv/app
      pynchy rules test web-team WebFetch --input '{"url": "https://docs.python.org/3/"}' --json
    """
    called = _called(tool, command, file, given)
    folder = str(Path(cwd).expanduser().absolute()) if cwd else ""
    view = HostClient.of(data).test_rules(group, tool, called, folder)
    effect = str(view.get("effect", ""))
    if as_json:
        show_json(view)
    else:
        click.echo(one_line(effect))
        click.echo(flat(str(view.get("because", ""))))
        for rule in view.get("rules", []):
            show_fields(_fields(rule)[:4])
    if exit_code:
        click.get_current_context().exit(_TRIAL_EXITS.get(effect, EXIT_UNANSWERED))


def _called(tool: str, command: str | None, file: str | None, given: str | None) -> Json:
    """Return the input of the call. Raise UsageError if it is not said, or said twice."""
    if sum(one is not None for one in (command, file, given)) > 1:
        raise click.UsageError("--command, --file and --input exclude each other")
    if command is not None and tool != BASH:
        raise click.UsageError(f"--command is for {BASH}: give the input of {tool} with --input")
    if file is not None and tool not in FILE_TOOLS:
        raise click.UsageError(f"--file is not for {tool}: give its input with --input")
    if tool == BASH and command is None and given is None:
        raise click.UsageError("which command? Say it with --command")
    if command is not None:
        return {"command": command}
    if file is not None:
        return {"notebook_path" if tool == "NotebookEdit" else "file_path": file}
    return _read_input(given) if given is not None else {}


def _read_input(given: str) -> Json:
    try:
        value = json.loads(given)
    except (ValueError, RecursionError) as exc:
        raise click.UsageError(f"--input: this is no JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise click.UsageError("--input: a JSON object is needed, in braces")
    return value


rules_command.add_command(with_examples(revoke_command))
rules_command.add_command(with_examples(test_command))
