"""`pynchy connect`: let an agent program that a person runs in a terminal ask through pynchy."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from agent_runner.cores.claude import BACKGROUND_VARIABLE
from pynchy import data_dir
from pynchy.channels.loading import load_settings
from pynchy.cli.connect.document import check_writable, replace_document
from pynchy.cli.connect.permission_hooks import (
    NO_KEY_YET,
    PermissionHooks,
    Way,
    find_url,
    find_way,
    hide_keys,
    plan_hooks,
)
from pynchy.cli.connect.plan import (
    OWN_QUESTIONS,
    Change,
    connected_groups,
    denies_questions,
    find_hooks,
    find_server,
    hook_words,
    plan_connection,
    plan_launcher,
    plan_removal,
)
from pynchy.cli.connect.programs import (
    CLAUDE,
    CODEX,
    OPENCODE,
    PROGRAMS,
    EntryLocation,
    Scope,
    claude_hooks_file,
    find_place,
)
from pynchy.cli.mailbox import misspelt_group
from pynchy.cli.options import complete_groups, config_option, data_dir_option, json_option
from pynchy.cli.output import is_terminal, show_json
from pynchy.cli.text import clean
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_DECLINED, ConfigError
from pynchy.http.hook_keys import WAITING_FILE, HookKeys
from pynchy.launchers.box_folders import writable_by_agents
from pynchy.model import GROUP_PATTERN
from pynchy.own_program import find_own_program, own_call

_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")
_MAX_LETTERS = 64
_NO_SESSION = (
    "OpenCode does not tell its MCP servers which session they serve, so a session cannot be"
    " resumed; the answer is kept for check_answer"
)
_NO_FOLDER = (
    "a session is resumed in the folder that it was begun in, so --resume needs --scope project"
)
_WAITS = (
    f"{BACKGROUND_VARIABLE}=0 counts for all MCP servers of Claude Code: their calls wait, however"
    " long, instead of going on in the background, where an answer does not count as a person's"
)
_OWN_QUESTIONS = (
    f"Claude Code keeps its own {OWN_QUESTIONS}, which asks in its terminal and nowhere else;"
    " --no-own-questions switches it off, so that every question comes through pynchy"
)
_PERMISSIONS = (
    "what Claude Code asks in its permission dialog, somebody can allow or deny from elsewhere as"
    " well: the first answer counts; --permissions off leaves that out. In its auto mode, in which"
    " newer versions start, it asks nobody: claude --permission-mode default"
)
_UNTRUSTED = "Codex reads this file only in a folder that you have told it to trust"
_UNSHARED = "this file names the pynchy of this machine, so keep it out of what you share"


@dataclass(slots=True)
class _Report:
    """What there is to say when all is done."""

    program: str
    scope: Scope
    group: str
    changes: list[Change]
    notes: list[str] = field(default_factory=list)
    copies: list[Path | None] = field(default_factory=list)
    written: bool = False

    def as_json(self) -> dict[str, Any]:
        copies = [*self.copies, *[None] * len(self.changes)]
        return {
            "program": self.program,
            "scope": self.scope,
            "group": self.group,
            "written": self.written,
            "changes": [
                {"path": str(change.path), "diff": change.diff(), "copy": copy and str(copy)}
                for change, copy in zip(self.changes, copies, strict=False)
            ],
            "notes": self.notes,
        }


@click.command("connect", short_help="Let an agent in your terminal ask through pynchy.")
@click.argument("program", type=click.Choice(PROGRAMS))
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="The group that it asks as.  [default: the program's name, or the project's]",
)
@click.option(
    "--scope",
    type=click.Choice([str(scope) for scope in Scope]),
    default=str(Scope.USER),
    show_default=True,
    help="For every folder, or for this project alone.",
)
@click.option("--resume", is_flag=True, help="Let an answer that comes late resume the session.")
@click.option(
    "--no-own-questions",
    is_flag=True,
    help="Switch off the tool with which Claude Code asks in its terminal.",
)
@click.option(
    "--permissions",
    type=click.Choice([str(way) for way in Way]),
    help="How its permission dialog reaches you elsewhere.  [default: http; command if it was so]",
)
@click.option("--remove", is_flag=True, help="Undo it: take out what connect wrote.")
@click.option("--yes", "-y", is_flag=True, help="Write without asking.")
@click.option("--dry-run", "--print", is_flag=True, help="Show the change, write nothing.")
@json_option
@config_option
@data_dir_option
def connect_command(  # noqa: PLR0913 - each is an option
    data: DataFolder,
    config: Path | None,
    program: str,
    group: str | None,
    scope: str,
    *,
    resume: bool,
    no_own_questions: bool,
    permissions: str | None,
    remove: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    r"""Put pynchy's MCP server into the settings of an agent program, with the right time limits.

    For an agent that you run in a terminal, and whose questions you want on your phone. The change
    is shown before it is written, a copy of each file is kept beside it, and everything else in it
    stays as it is. A second run changes nothing.

    Claude Code keeps a tool of its own that asks in its terminal, unless you say
    --no-own-questions.

    What Claude Code asks in its permission dialog is asked elsewhere at the same time, by a hook
    (see `pynchy docs permissions`): over HTTP, with a key in a file of yours, or by a command.

    Without --resume an answer that comes when the agent has ended is kept for check_answer. With it
    (and --scope project) pynchy.toml is told to resume the session, unattended.

    Exit code: 0 done, or nothing to do; 1 it cannot be done; 2 not confirmed, nothing written.

    \b
    Examples:
      pynchy connect claude
      pynchy connect claude --no-own-questions
      pynchy connect codex --scope project --resume --yes
      pynchy connect opencode --remove
    """
    place = find_place(program, Scope(scope), os.environ, Path.cwd())
    known = find_server(place)
    name = group or (known.group if known and known.is_ours else "")
    told = _Report(program, place.scope, name if remove else _group(place, name), [])
    if remove:
        told.changes = plan_removal(place, os.environ)
    else:
        if permissions and place.program != CLAUDE:
            raise click.UsageError("--permissions is for claude alone")
        way = Way(permissions) if permissions else None
        _plan(told, place, data, config, way, resume=resume, no_own_questions=no_own_questions)
    for change in told.changes:  # before anything is shown or written
        change.document.encode(change.text)
    if not as_json:
        _show(told)
    agreed = bool(told.changes) and not dry_run and _is_agreed(yes=yes, as_json=as_json)
    if agreed:
        _write(told, data)
        if remove and place.program == CLAUDE and told.group not in connected_groups(place):
            HookKeys(data).drop(told.group)
    if as_json:
        show_json(told.as_json())
    else:
        _say(told, remove=remove, resume=resume, dry_run=dry_run)
    if told.changes and not agreed and not dry_run:
        sys.exit(EXIT_DECLINED)


def _plan(  # noqa: PLR0913 - what the options say
    told: _Report,
    place: EntryLocation,
    data: DataFolder,
    config: Path | None,
    way: Way | None,
    *,
    resume: bool,
    no_own_questions: bool,
) -> None:
    """Work out what has to change so that the program asks, and its session is resumed if so."""
    if resume:
        _check_resume(place)
    if no_own_questions and place.program != CLAUDE:
        raise click.UsageError("--no-own-questions is for claude alone")
    command = [find_own_program(), "mcp", "--client", place.program, "--group", told.group]
    command += _data_option(data)
    hooks = None
    if place.program == CLAUDE:
        known = find_hooks(place, os.environ)
        words = tuple(hook_words(command, told.group))
        url = find_url(data, config, known, place.scope)
        waiting = data.path / WAITING_FILE
        wanted = PermissionHooks(way or find_way(known), words, waiting, url)
        hooks = _hooks(told, place, data, wanted, _boxes(config, data))
    told.changes = plan_connection(
        place, command, os.environ, no_own_questions=no_own_questions, permissions=hooks
    )
    told.notes += _notes(place)
    if place.program == CLAUDE and not (no_own_questions or denies_questions(os.environ)):
        told.notes.append(_OWN_QUESTIONS)
    if warning := misspelt_group(data, told.group):
        told.notes.append(warning)
    if resume:
        more, note = plan_launcher(place, told.group, config, os.environ)
        told.changes += more
        told.notes += [note] if note else []


def _boxes(config: Path | None, data: DataFolder) -> list[Path]:
    """Return the folders that agents may write in boxes."""
    with suppress(ConfigError):  # serve will say what is wrong with them
        return writable_by_agents(load_settings(config).launchers(), data.path)
    return []


def _hooks(
    told: _Report,
    place: EntryLocation,
    data: DataFolder,
    wanted: PermissionHooks,
    boxes: Sequence[Path],
) -> PermissionHooks:
    """Return the hooks by which Claude Code asks for permissions, and note what is to be said."""
    hooks, why = plan_hooks(wanted, data, told.group, claude_hooks_file(place, os.environ), boxes)
    if why:
        told.notes.append(f"permissions are asked for by a command, not by HTTP: {why}")
    if hooks.way is not Way.OFF:
        told.notes.append(_PERMISSIONS)
    return hooks


def _notes(place: EntryLocation) -> list[str]:
    notes = []
    if shutil.which(place.program) is None:
        notes.append(f"there is no {place.program} on your PATH")
    if place.program == CLAUDE:
        notes.append(_WAITS)
    if place.scope is Scope.PROJECT and place.program != CLAUDE:
        notes.append(_UNSHARED)
    if place.scope is Scope.PROJECT and place.program == CODEX:
        notes.append(_UNTRUSTED)
    return notes


def _check_resume(place: EntryLocation) -> None:
    if place.program == OPENCODE:
        raise click.UsageError(_NO_SESSION)
    if place.scope is not Scope.PROJECT:
        raise click.UsageError(_NO_FOLDER)


def _group(place: EntryLocation, given: str) -> str:
    """Return the group: as given, else the program's name, or for a project the folder's."""
    if given:
        if not _GROUP.match(given):
            raise click.BadParameter("letters, digits, - _ and . only", param_hint="--group")
        return given
    if place.scope is Scope.USER:
        return place.program
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", place.folder.name).strip("-_")[:_MAX_LETTERS]
    if not _GROUP.match(name):
        raise click.UsageError(f"no group can be named after {place.folder}: say --group NAME")
    return name


def _data_option(data: DataFolder) -> list[str]:
    """Say where the data is unless it is where it always is: programs hand on few variables."""
    home = {name: value for name, value in os.environ.items() if name == "HOME"}
    usual = data_dir.data_dir(None, home).absolute()
    return [] if data.path == usual else ["--data-dir", str(data.path)]


def _show(told: _Report) -> None:
    for change in told.changes:
        click.echo(clean(change.diff()))
        click.echo()


def _is_agreed(*, yes: bool, as_json: bool) -> bool:
    if yes:
        return True
    return (
        not as_json
        and is_terminal()
        and sys.stdin.isatty()
        and click.confirm("Write this?", default=False)
    )


def _write(told: _Report, data: DataFolder) -> None:
    for change in told.changes:  # all of them first, so that none is written alone
        check_writable(change.path)
    now = datetime.now().astimezone()
    for number, change in enumerate(told.changes):
        mode = 0o600 if change.is_private else 0o666
        try:
            text = change.text
            if NO_KEY_YET in text:
                text = text.replace(NO_KEY_YET, HookKeys(data).make(told.group))
            copy = replace_document(change.document, text, now, mode, hide_keys)
            told.copies.append(copy)
        except ConfigError as exc:
            done = ", ".join(str(one.path) for one in told.changes[:number])
            raise ConfigError(f"{exc}" + (f"; already written: {done}" if done else "")) from exc
    told.written = True


def _say(told: _Report, *, remove: bool, resume: bool, dry_run: bool) -> None:
    for note in told.notes:
        click.echo(f"Note: {clean(note)}.")
    if not told.changes:
        state = "is not connected" if remove else f"is connected already, as group {told.group}"
        click.echo(f"{told.program} {state} ({told.scope}): nothing to change.")
    elif not told.written:
        if not dry_run:
            click.echo("Nothing was written; to write this: the same with --yes", err=True)
    else:
        _say_written(told, remove=remove, resume=resume)


def _say_written(told: _Report, *, remove: bool, resume: bool) -> None:
    for change, copy in zip(told.changes, told.copies, strict=True):
        click.echo(clean(f"Wrote {change.path}" + (f" (before: {copy.name})" if copy else "")))
    if remove:
        click.echo(
            f"{told.program} is no longer connected. "
            "A program that is running keeps it until you close it."
        )
        return
    click.echo(f"{told.program} asks as group {told.group} from its next start. Then:")
    pynchy = own_call()
    click.echo(
        f"  {pynchy} serve       must run, so that somebody is asked{_restart(resume=resume)}"
    )
    click.echo(f"  {pynchy} doctor      lists the tools as the program will see them")


def _restart(*, resume: bool) -> str:
    return "; restart it for --resume" if resume else ""
