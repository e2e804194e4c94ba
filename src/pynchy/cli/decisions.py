"""`pynchy approve` and `deny`: a person's yes or no to a permission or an approval."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import click

from pynchy.calls import BASH
from pynchy.cli.options import (
    TEXT,
    by_option,
    data_dir_option,
    find_question,
    id_argument,
    json_option,
    read_duration,
    reply_to,
    telling_what_won,
)
from pynchy.cli.question_text import say_if_nobody_waits
from pynchy.cli.text import flat, moment, one_line, read_moment, to_json
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.errors import EXIT_PARTLY, InvalidReply

Json = dict[str, Any]

_APPROVE, _ALWAYS, _SESSION, _DENY = "approve", "always", "session", "deny"
# What a rule is made of, and for whom.
_MADE = {_ALWAYS: "", _SESSION: " for this session"}
# The host makes the rule right after it has taken the answer.
_RULE_SECONDS = 5.0
_PAUSE_SECONDS = 0.05


def _read_rule_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read the duration, which needs its unit: a rule for eight seconds is hardly meant."""
    if value is not None and value.isdecimal():
        raise click.BadParameter(f"{value} what? write {value}h, {value}d or {value}m", ctx, param)
    return read_duration(ctx, param, value)


@click.command("approve", short_help="Approve what an agent wants to do.")
@id_argument
@click.option("--always", is_flag=True, help="Make a rule that allows what is like it.")
@click.option(
    "--for",
    "rule_seconds",
    callback=_read_rule_time,
    metavar="DURATION",
    help="The same, for so long: 8h, 7d, at most 30d.  [with --always: the group's rule_ttl]",
)
@click.option("--session", is_flag=True, help="The rule holds in this session of the agent alone.")
@click.option("--edit", "edits", is_flag=True, help="Change the call in $VISUAL or $EDITOR first.")
@click.option("--command", type=TEXT, metavar="TEXT", help="Run this shell command in its place.")
@click.option("--note", type=TEXT, metavar="TEXT", help="Tell the agent something beside it.")
@json_option
@by_option
@data_dir_option
def approve_command(  # noqa: PLR0913 - one for each option
    *,
    target: str,
    always: bool,
    rule_seconds: float | None,
    session: bool,
    edits: bool,
    command: str | None,
    note: str | None,
    by: str,
    data: DataFolder,
    as_json: bool,
) -> None:
    r"""Approve what an agent wants to do: a permission, or an approval that it asks for.

    See what it is with `pynchy show` first. With --always or --for, a rule is made of a permission,
    for every agent of the group or, with --session, for this session; `pynchy show` says what it
    would cover. Where more people must approve, your approval is kept until they have. With --edit
    you see the call in your editor: what you make of it is run in its place, once, and the agent is
    told what you changed. With --json the question is printed as it is now, also where somebody
    else was first.

    \b
    Exit code: 0 it is approved, 4 it was already over, 5 no host, 6 more people must approve,
    2 wrong usage, 1 anything else.

    \b
    Examples:
      pynchy approve k7qm
      pynchy approve k7qm --note "but not before six"
      pynchy approve k7qm --for 8h
      pynchy approve k7qm --always --session
      pynchy approve k7qm --command "git push origin dev"
    """
    if always and rule_seconds is not None:
        raise click.UsageError("--always and --for exclude each other: --for makes a rule too")
    makes_rule = always or rule_seconds is not None
    if session and not makes_rule:
        raise click.UsageError("--session goes with --always or --for: it says for whom a rule is")
    if edits and command is not None:
        raise click.UsageError("--edit and --command exclude each other")
    if makes_rule and (edits or command is not None):
        raise click.UsageError("what is edited is allowed once: leave out --always and --for")
    value = _APPROVE if not makes_rule else _SESSION if session else _ALWAYS
    rule = {} if rule_seconds is None else {"rule_seconds": rule_seconds}
    body: dict[str, object] = {"by": by, "text": note, **rule}
    client = HostClient.of(data)
    view = find_question(client, target)
    if (edits or command is not None) and not view.get("ending"):
        body["edited"] = _edited(view, command)
    _decide(client, view, value, body, as_json=as_json)


@click.command("deny", short_help="Deny what an agent wants to do.")
@id_argument
@click.option("--reason", type=TEXT, metavar="TEXT", help="Tell the agent why.")
@json_option
@by_option
@data_dir_option
def deny_command(
    *, target: str, reason: str | None, by: str, data: DataFolder, as_json: bool
) -> None:
    r"""Deny what an agent wants to do: a permission, or an approval that it asks for.

    The agent is told so, with your reason word for word. With --json the question is printed as it
    is now, also where somebody else was first.

    Exit code: 0 it is denied, 4 it was already over, 5 no host, 2 wrong usage, 1 anything else.

    \b
    Example:
      pynchy deny k7qm --reason "too risky on a Friday"
    """
    client = HostClient.of(data)
    view = find_question(client, target)
    _decide(client, view, _DENY, {"by": by, "text": reason}, as_json=as_json)


def _decide(
    client: HostClient, view: Json, value: str, body: dict[str, object], *, as_json: bool
) -> None:
    """Choose the option with that value, and say what came of it. Exit if more must approve.

    The `text` of the body goes along with the choice.
    """
    answer = {"selected": [_label(view, value)], "text": body.pop("text")}
    say_if_nobody_waits(view)
    body["answers"] = [answer]
    if as_json:
        with telling_what_won(client, view):
            view = reply_to(client, view, "answer", **body)
        click.echo(to_json(view))
    else:
        view = reply_to(client, view, "answer", **body)
        asked = read_question(view)
        said = "denied" if value == _DENY else "approved"
        done = said if asked.ending else f"noted. {asked.approved}"
        if view.get("ending") and "edited" in view["ending"]:
            done += ", edited"
        if value in _MADE and asked.ending:
            done += _what_became_of_the_rule(client, view, _MADE[value])
        click.echo(f"{asked.short_id}{' ' if asked.ending else ': '}{done}")
    if not view.get("ending"):
        sys.exit(EXIT_PARTLY)


def _what_became_of_the_rule(client: HostClient, view: Json, whom: str) -> str:
    """Say whether the rule was made, as soon as that is known."""
    deadline = time.monotonic() + _RULE_SECONDS
    while time.monotonic() < deadline:
        made = [r for r in client.rules(view["group"]) if r["id"] == view["request_id"]]
        if made:
            return f", and a rule was made of it{whom}\n{_tell_rule(made[0])}"
        if why := client.question_of(view["group"], view["request_id"]).get("rule_problem"):
            return f" once; no rule was made: {why}"
        time.sleep(_PAUSE_SECONDS)
    return "; whether a rule was made is not known yet, see: pynchy rules"


def _tell_rule(rule: Json) -> str:
    """Say what the rule lets in, until when, and how to be rid of it."""
    until = moment(read_moment(str(rule["expires_at"]))) if rule.get("expires_at") else "revoked"
    undo = f"pynchy rules revoke {one_line(str(rule['short_id']))}"
    return f"It covers, until {until}: {flat(str(rule['covers']))}. To take it back: {undo}"


def _edited(view: Json, command: str | None) -> Json:
    """Return what the call is to be made with. Raise InvalidReply, or Abort if it is as it was."""
    asked = read_question(view)
    if not asked.is_editable:
        raise InvalidReply(
            f"{asked.short_id} cannot be edited: whoever asks takes a yes or a no and no more"
        )
    given: Json = view.get("input") or {}
    is_command = (view.get("call") or {}).get("tool") == BASH and isinstance(
        given.get("command"), str
    )
    if command is not None and not is_command:
        raise InvalidReply(f"{asked.short_id} is no shell command: use --edit")
    if command is not None:
        return {**given, "command": command}
    if is_command:
        written = _in_editor(given["command"], ".sh")
        return {**given, "command": written} if written is not None else given
    return _edited_json(given)


def _edited_json(given: Json) -> Json:
    """Return what a person makes of the input as JSON, asking again for what is none."""
    before = text = json.dumps(given, ensure_ascii=False, indent=2)
    while True:
        written = _in_editor(text, ".json", before)
        if written is None:
            return given
        try:
            edited = json.loads(written)
        except (ValueError, RecursionError) as exc:
            problem = f"this is no JSON: {exc}"
        else:
            if isinstance(edited, dict):
                return edited
            problem = "a JSON object is needed, in braces"
        click.echo(problem, err=True)
        click.confirm("Edit it again? Else nothing is sent.", default=True, abort=True, err=True)
        text = written


def _in_editor(text: str, extension: str, before: str | None = None) -> str | None:
    """Return what a person makes of the text; None if they agree to it as it was `before`.

    Raise Abort if they leave nothing, or do not agree: then nothing is sent.
    """
    written = (click.edit(text, extension=extension, require_save=False) or "").rstrip("\n")
    if not written.strip():
        click.echo("Nothing is left of it, so nothing was sent.", err=True)
        raise click.Abort
    if written != (text if before is None else before).rstrip("\n"):
        return written
    click.confirm("Nothing was changed. Allow it as it is?", abort=True, err=True)
    return None


def _label(view: Json, value: str) -> str:
    """Return the label of the option with that value. Raise InvalidReply if there is none."""
    asked = read_question(view)
    labels = {option.value: option.label for one in asked.questions for option in one.options}
    if len(asked.questions) == 1 and value in labels:
        return labels[value]
    if value == _SESSION and _ALWAYS in labels:
        raise InvalidReply(
            f"{asked.short_id} is of no session that a rule could be for: leave out --session"
        )
    if value in {_ALWAYS, _SESSION} and _APPROVE in labels:
        raise InvalidReply(
            f"no rule can be made of {asked.short_id}: approve it once with: "
            f"pynchy approve {asked.short_id}"
        )
    raise InvalidReply(
        f"{asked.short_id} is a question and no request for an approval: answer it with: "
        f"pynchy answer {asked.short_id} VALUE"
    )
