"""Turn the arguments of OpenFlow's notify into a request, or into an announcement.

Whatever a person can choose has a button of its own: nothing else is an answer, so that no word of
a person is taken for a yes.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace

from agent_runner.asking._model import Announcement, Option, Question, Request, Urgency
from agent_runner.asking.arguments import (
    MAX_LINE_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    check_names,
    read_flag,
    read_options,
    read_seconds,
    read_text,
    read_urgency,
)
from agent_runner.errors import BadArguments

DEFAULT_SECONDS = 60.0
DEFAULT_LABEL = "OK"

_ASK_NAMES = (
    *("title", "question", "options", "urgency", "repo", "branch", "agent", "task"),
    *("action_label", "wait_for_response", "timeout"),
)
_COMMIT_NAMES = ("branch", "message", "files", "hash", "agent")
_MERGE_NAMES = ("source_branch", "commits_count", "files_count", "version", "repo", "agent")
_SYNC_NAMES = ("worktrees", "source", "repo", "conflicts")
_MOST_LISTED = 20

Fields = Mapping[str, object]


def parse_question(arguments: Fields) -> tuple[Request, bool]:
    """Return the request and whether to wait. Raise BadArguments."""
    check_names(arguments, *_ASK_NAMES)
    text = _required(arguments, "question", limit=MAX_QUESTION_CHARACTERS)
    question = Question(text, options=_labelled(arguments), options_only=True)
    request = Request(
        (question,),
        title=_required(arguments, "title"),
        agent=read_text(arguments, "agent"),
        task=_task(arguments),
        urgency=read_urgency(arguments),
        wait_seconds=read_seconds(arguments, "timeout") or DEFAULT_SECONDS,
        hears_dismissal=True,
    )
    return request, read_flag(arguments, "wait_for_response", default=False)


def parse_commit(arguments: Fields) -> tuple[Announcement, str]:
    """Return what people are told of a commit, and what the agent is. Raise BadArguments."""
    check_names(arguments, *_COMMIT_NAMES)
    branch = _required(arguments, "branch")
    message = _required(arguments, "message", limit=sys.maxsize)
    revision, files = read_text(arguments, "hash"), _names(arguments, "files")
    lines = [message[:MAX_QUESTION_CHARACTERS], f"Files: {_listed(files)}" if files else ""]
    told = Announcement(
        f"Commit {revision}".strip(),
        _joined(lines),
        agent=read_text(arguments, "agent"),
        task=branch,
        urgency=Urgency.LOW,
    )
    return told, f"Commit notified: {f'{revision} on ' if revision else 'on '}{branch}"


def parse_merge(arguments: Fields) -> tuple[Announcement, str]:
    """Return what people are told of a merge, and what the agent is. Raise BadArguments."""
    check_names(arguments, *_MERGE_NAMES)
    source, version = _required(arguments, "source_branch"), read_text(arguments, "version")
    counted = [
        f"{count} {word}"
        for word in ("commits", "files")
        if (count := _count(arguments, f"{word}_count")) is not None
    ]
    merged = f"{source} → main"
    told = Announcement(
        f"Merged {version}".strip(),
        _joined([merged, ", ".join(counted)]),
        agent=read_text(arguments, "agent"),
        task=read_text(arguments, "repo"),
    )
    return told, f"Merge notified: {merged}"


def parse_sync(arguments: Fields) -> tuple[Announcement, str]:
    """Return what people are told of a synchronisation, and what the agent is.

    Conflicts are more urgent than none. Raise BadArguments.
    """
    check_names(arguments, *_SYNC_NAMES)
    names, conflicts = _names(arguments, "worktrees"), _names(arguments, "conflicts")
    if not names:
        raise BadArguments("worktrees: missing; give a list of names")
    source = read_text(arguments, "source") or "main"
    updated = f"{len(names)} worktrees updated"
    lines = [f"{updated} from {source}", _listed(names)]
    lines += [f"Conflicts: {_listed(conflicts)}"] if conflicts else []
    urgency = Urgency.NORMAL if conflicts else Urgency.LOW
    told = Announcement(
        "Worktrees synchronised", _joined(lines), task=read_text(arguments, "repo"), urgency=urgency
    )
    return told, f"Sync notified: {updated}"


def _labelled(arguments: Fields) -> tuple[Option, ...]:
    """Return the options, of which the first has the action's label."""
    options = read_options(arguments, "options")
    label = read_text(arguments, "action_label").strip()
    if not options:
        return (Option(label or DEFAULT_LABEL),)
    if not label:
        return options
    same = [option for option in options if option.label.casefold() == label.casefold()]
    if same:
        return (*same, *(option for option in options if option not in same))
    # What the agent called it stays to be read.
    return (replace(options[0], label=label, description=options[0].label), *options[1:])


def _task(arguments: Fields) -> str:
    repo, branch = read_text(arguments, "repo"), read_text(arguments, "branch")
    place = " @ ".join(part for part in (repo, branch) if part)
    parts = [part for part in (place, read_text(arguments, "task")) if part]
    return " · ".join(parts)[:MAX_LINE_CHARACTERS]


def _required(arguments: Fields, name: str, *, limit: int = MAX_LINE_CHARACTERS) -> str:
    text = read_text(arguments, name, limit=limit)
    if not text.strip():
        raise BadArguments(f"{name}: missing")
    return text


def _names(arguments: Fields, name: str) -> tuple[str, ...]:
    value = arguments.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadArguments(f"{name}: must be a list of texts")
    # What is told is cut, not refused: nobody waits for it.
    return tuple(
        read_text({name: item}, name, limit=sys.maxsize)[:MAX_LINE_CHARACTERS] for item in value
    )


def _count(arguments: Fields, name: str) -> int | None:
    value = arguments.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadArguments(f"{name}: must be a number of at least 0")
    return value


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more


def _joined(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line)[:MAX_QUESTION_CHARACTERS]
