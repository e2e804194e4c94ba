"""Options and arguments that many commands share; ids are completed from the running host."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pynchy import data_dir
from pynchy.cli.text import clean, one_line, to_json
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.errors import PynchyError, QuestionOver, UnknownQuestion
from pynchy.model import SESSION_PATTERN

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

_PATH = click.Path(path_type=Path)
_PLAIN_WORD = re.compile(rf"{SESSION_PATTERN}\Z")


class _Text(click.ParamType[str]):
    """Words that can be sent on. The shell may pass bytes that are no text at all."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail("not valid UTF-8 text", param, ctx)
        return value


TEXT = _Text()


_DURATION = re.compile(r"(?P<count>[0-9]+(?:\.[0-9]+)?)(?P<unit>[smhd]?)\Z")
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_MAX_SECONDS = 30 * 86_400


def read_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return the seconds that an option says. Raise BadParameter for what is no duration."""
    if value is None:
        return None
    found = _DURATION.match(value)
    if found is None:
        message = f"{value!r} is not a duration; write 90, 90s, 30m, 2h or 7d, at most 30d"
        raise click.BadParameter(message, ctx, param)
    seconds = float(found["count"]) * _UNIT_SECONDS[found["unit"]]
    if not 0 < seconds <= _MAX_SECONDS:
        limit = "too long: at most 30d" if seconds else "too short: more than 0"
        raise click.BadParameter(f"{value!r} is {limit}", ctx, param)
    return seconds


def data_dir_option(function: F) -> F:
    """Add --data-dir; without it the group's option, the environment, then the usual place."""
    return click.option(
        "--data-dir",
        "data",
        type=_PATH,
        callback=_data_folder,
        help="The host's data folder.  [env: PYNCHY_DATA_DIR]",
    )(function)


def config_option(function: F) -> F:
    """Add --config; without it the group's option, the environment, then the usual places.

    A file that nobody named is refused if it may be an agent's: see `DataFolder.check_found`.
    """
    return click.option(
        "--config",
        type=_PATH,
        callback=_settings_path,
        help="The settings file.  [env: PYNCHY_CONFIG]",
    )(function)


def json_option(function: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def complete_groups(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a group: those of the settings, and those that have a mailbox."""
    from pynchy.cli.mailbox import group_names, groups_of_settings  # noqa: PLC0415 - seldom

    try:
        data = data_folder_of(ctx)
        found = sorted({*groups_of_settings(data), *group_names(data)})
    except PynchyError:
        return []  # A shell that completes must never be spoken to.
    return _offered((name, None) for name in found if name.startswith(incomplete))


def _offered(found: Iterable[tuple[str, str | None]]) -> list[CompletionItem]:
    """Return the words, each with its help, that a shell can put into the line as they are.

    Shells do not quote them, so that another one could be run at the next Enter.
    """
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only to complete

    return [CompletionItem(word, help=text) for word, text in found if _PLAIN_WORD.match(word)]


def data_folder_of(ctx: click.Context) -> DataFolder:
    """Return the data folder of a command whose options are not all read yet."""
    given = ctx.params.get("data")
    return given if isinstance(given, DataFolder) else _data_folder(ctx, None, given)


def _data_folder(
    ctx: click.Context, _param: click.Parameter | None, value: Path | None
) -> DataFolder:
    return DataFolder(data_dir.data_dir(value or shared_path(ctx, "data_dir"), os.environ))


def _settings_path(ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    named = value or shared_path(ctx, "config")
    found = data_dir.find_settings(named, os.environ)
    if found is not None and not (named or os.environ.get("PYNCHY_CONFIG")):
        # What is given is read before what is not: --data-dir is known by now.
        data_folder_of(ctx).check_found(found)
    return found


def shared_path(ctx: click.Context, name: str) -> Path | None:
    """Return the path that was given before the command, if any."""
    # Not ctx.obj, which is not set yet where a shell completes.
    given = ctx.find_root().params.get(name)
    return given if isinstance(given, Path) else None


_COMPLETION_SECONDS = 0.5
_HELP_WIDTH = 60
_MAX_NAME = 200


def id_argument(function: F) -> F:
    """Add the ID of a question: its short id or its request id."""
    return click.argument("target", metavar="ID", shell_complete=_complete)(function)


def session_argument(function: F) -> F:
    """Add the SESSION: its id, or enough of its beginning."""
    return click.argument("target", metavar="SESSION", shell_complete=_complete_sessions)(function)


def by_option(function: F) -> F:
    """Add --by, who answers; without it the user of this machine."""
    return click.option(
        "--by", metavar="NAME", callback=_by, help="Who you are.  [default: your user name]"
    )(function)


def find_question(client: HostClient, target: str) -> dict[str, Any]:
    """Return the question that the person means. Say so if the id is a request id.

    Raise UnknownQuestion with ids that are nearly it, ReplyRejected if several have it.
    """
    try:
        view = client.question(target)
    except UnknownQuestion:
        raise UnknownQuestion(_advice(target, client.pending())) from None
    if target.removeprefix("#").lower() != view["short_id"]:
        named = f"{target} is the request id of {view['short_id']}, group {view['group']}"
        click.echo(clean(named), err=True)
    return view


def reply_to(client: HostClient, view: dict[str, Any], verb: str, **body: object) -> dict[str, Any]:
    """Reply to the very question that was found, and return it as it is then."""
    return client.reply(view["group"], view["request_id"], verb, body)


@contextmanager
def telling_what_won(client: HostClient, view: dict[str, Any]) -> Iterator[None]:
    """Where the question is over already, print it as JSON before that is raised."""
    try:
        yield
    except QuestionOver:
        click.echo(to_json(client.question_of(view["group"], view["request_id"])))
        raise


def _advice(target: str, pending: list[dict[str, Any]]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    unknown = f"no question has the id {target}"
    known = [view["short_id"] for view in pending]
    near = get_close_matches(target.removeprefix("#").lower(), known, n=3, cutoff=0.5)
    if near:
        return f"{unknown}; did you mean {' or '.join(near)}?"
    if known:
        return f"{unknown}; see what waits with: pynchy pending"
    return f"{unknown}; nothing waits for an answer (pynchy history shows what is over)"


def _by(ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    del ctx
    if value is not None and not 0 < len(value.strip()) <= _MAX_NAME:
        raise click.BadParameter(f"a name of 1 to {_MAX_NAME} characters is needed")
    return (value or user_name())[:_MAX_NAME]


def user_name() -> str:
    """Return who answers where nobody said otherwise."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody with the token"


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        pending = HostClient.of(data_folder_of(ctx), _COMPLETION_SECONDS).pending()
        return _offered(
            (view["short_id"], one_line(str(view["questions"][0]["question"]), _HELP_WIDTH))
            for view in pending
            if view["short_id"].startswith(incomplete.removeprefix("#").lower())
        )
    except (PynchyError, OSError, KeyError, TypeError):
        return []  # A shell that completes must never be spoken to.


def _complete_sessions(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    try:
        sessions = HostClient.of(data_folder_of(ctx), _COMPLETION_SECONDS).sessions()
        return _offered(
            (view["session_id"], one_line(_about(view), _HELP_WIDTH))
            for view in sessions
            if view["state"] != "ended" and view["session_id"].startswith(incomplete)
        )
    except (PynchyError, OSError, KeyError, TypeError):
        return []  # A shell that completes must never be spoken to.


def _about(view: dict[str, Any]) -> str:
    return f"{view['group']}: {view['task'] or view['agent'] or view['state']}"
