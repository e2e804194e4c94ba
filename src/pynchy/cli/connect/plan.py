"""What connecting or disconnecting would change, worked out before anything is written."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent_runner.cores.base import SERVER_NAME
from agent_runner.cores.claude import BACKGROUND_VARIABLE
from pynchy.cli.connect.document import Document, read_document
from pynchy.cli.connect.json_text import BadText, JsonText, Unwritable
from pynchy.cli.connect.permission_hooks import PermissionHooks, hide_keys, without_hooks
from pynchy.cli.connect.programs import (
    CLAUDE,
    CLAUDE_RULE,
    OPENCODE,
    OPENCODE_RULE,
    EntryLocation,
    Format,
    McpServerEntry,
    claude_hooks_file,
    claude_settings,
    read_entry,
    write_entry,
)
from pynchy.cli.connect.toml_text import TomlText, write_table
from pynchy.cli.text import to_json
from pynchy.data_dir import own_settings
from pynchy.errors import ConfigError

_ALLOW, _DENY = ("permissions", "allow"), ("permissions", "deny")
# Claude Code's tool that asks in the terminal. The variable in our entry is a note to ourselves.
OWN_QUESTIONS = "AskUserQuestion"
_DENIED_BY_US = "PYNCHY_DENIED_OWN_QUESTIONS"
# After how many milliseconds a call goes on in the background, where its answer does not count as a
# person's. The newest Claude Code does that in its terminal after two minutes.
_BACKGROUND = ("env", BACKGROUND_VARIABLE)
_NEVER = "0"
# When a session begins and when its model has replied: what it missed while it was closed.
_HOOKS = (("hooks", "SessionStart"), ("hooks", "Stop"))

Text = JsonText | TomlText

_SETTINGS = ("kind", "agent", "cwd")


@dataclass(frozen=True, slots=True)
class Change:
    """A file, and what it is to say. `is_private`: a new one is for its owner alone."""

    document: Document
    text: str
    is_private: bool = True

    @property
    def path(self) -> Path:
        """The file."""
        return self.document.path

    @property
    def is_needed(self) -> bool:
        """Say whether the file says something else now."""
        return self.text != self.document.text

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = self.document.text, self.text
        # Where it really goes must be seen: a project's file may be a link to anywhere.
        name = f"{self.path} → {self.path.resolve()}" if self.path.is_symlink() else str(self.path)
        before = name if self.document.raw is not None else "/dev/null"
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), before, name, lineterm="")
        return hide_keys("\n".join(lines))


def open_text(document: Document, kind: Format) -> Text:
    """Return the file's text, ready to be edited. Raise ConfigError with the line of a mistake."""
    text: Text
    if kind is Format.TOML:
        text = TomlText(document.text)
    else:
        text = JsonText(document.text, comments=kind is Format.JSONC)
    try:
        _ = text.plain
    except BadText as exc:
        where = f"{document.path}:{exc.line}"
        name = "JSON" if kind is Format.JSONC else kind.upper()
        raise ConfigError(f"{where}: is no valid {name}: {exc}; nothing was written") from exc
    return text


def find_server(place: EntryLocation) -> McpServerEntry | None:
    """Return the server of our name that is there, None if there is none. Raise ConfigError."""
    entry = open_text(read_document(place.path), place.format).find(place.keys)
    if entry is None:
        return None
    server = read_entry(place.program, entry)
    return server or McpServerEntry(("?",), {})


def plan_connection(
    place: EntryLocation,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    no_own_questions: bool = False,
    permissions: PermissionHooks | None = None,
) -> list[Change]:
    """Return what has to change so that the program starts that server. Raise ConfigError.

    Where Claude Code's own questions are switched off by us, each entry that wants it says so: that
    is how a later removal knows whose rule it is, and whether another connection wants it still.
    `permissions` are the hooks by which it asks for permissions.
    """
    document = read_document(place.path)
    text = open_text(document, place.format)
    _check_ours(place)
    entry = write_entry(place.program, argv)
    if no_own_questions:
        is_ours = not denies_questions(environ) or any(map(_denies, _claude_servers(text)))
    else:
        server = find_server(place)
        is_ours = server is not None and _denies(server)
    if is_ours:
        entry["env"][_DENIED_BY_US] = "1"
    if text.find(place.keys) != entry:
        try:
            text = text.put(place.keys, entry)
        except (BadText, Unwritable) as exc:
            raise ConfigError(
                f"{place.path}: {exc}; nothing was written. Put this there yourself:\n"
                f"{_snippet(place, entry)}"
            ) from exc
    if place.program == OPENCODE and isinstance(text, JsonText):
        text = _allow_in_opencode(text)
    changes = [Change(document, text.text, is_private=_is_private(place))]
    if place.program == CLAUDE:
        add = partial(_add_shared, hook=hook_command(argv), deny=no_own_questions)
        changes.append(_edit_claude_settings(environ, add))
    if permissions is not None:
        changes = _with_permissions(changes, place, environ, permissions)
    return [change for change in changes if change.is_needed]


def plan_removal(place: EntryLocation, environ: Mapping[str, str]) -> list[Change]:
    """Return what has to change so that nothing of ours is left there. Raise ConfigError.

    What all connections of Claude Code share stays until the last one that wants it is removed.
    """
    document = read_document(place.path)
    text = open_text(document, place.format)
    _check_ours(place)
    server = find_server(place)
    try:
        text = text.drop(place.keys)
        if place.program == OPENCODE and text.find(("permission", OPENCODE_RULE)) == "allow":
            text = text.drop(("permission", OPENCODE_RULE))
    except (BadText, Unwritable) as exc:
        keys = ".".join(place.keys)
        raise ConfigError(f"{place.path}: {exc}; take {keys} out yourself") from exc
    changes = [Change(document, text.text)]
    if place.program == CLAUDE:
        others = _claude_servers(text)
        hooks = [hook_command(other.argv) for other in others]
        allow = server is not None and _denies(server) and not any(map(_denies, others))
        if server is not None or not others:
            take = partial(_take_shared, hooks=hooks, allow=allow)
            changes.append(_edit_claude_settings(environ, take))
        changes = _with_permissions(changes, place, environ, None)
    return [change for change in changes if change.is_needed]


def _with_permissions(
    changes: list[Change],
    place: EntryLocation,
    environ: Mapping[str, str],
    permissions: PermissionHooks | None,
) -> list[Change]:
    """Put the hooks into their file, or take them out, with what else changes there."""
    path = claude_hooks_file(place, environ)
    [change] = [change for change in changes if change.path == path] or [_unchanged(path)]
    text = JsonText(change.text)
    try:
        text = permissions.put(text) if permissions else without_hooks(text)
    except (BadText, Unwritable) as exc:
        raise ConfigError(f"{path}: {exc}; nothing was written") from exc
    return [*(one for one in changes if one is not change), replace(change, text=text.text)]


def _unchanged(path: Path) -> Change:
    document = read_document(path)
    open_text(document, Format.JSON)
    return Change(document, document.text)


def find_hooks(place: EntryLocation, environ: Mapping[str, str]) -> JsonText:
    """Return the text in which Claude Code's hooks for permissions are. Raise ConfigError."""
    return JsonText(_unchanged(claude_hooks_file(place, environ)).text)


def _check_ours(place: EntryLocation) -> None:
    server = find_server(place)
    if server is not None and not server.is_ours:
        keys = ".".join(place.keys)
        raise ConfigError(
            f"{place.path}: {keys} is there and does not start `pynchy mcp`, so it is not ours and"
            " was left alone; rename it or take it out first"
        )


def _snippet(place: EntryLocation, entry: Mapping[str, object]) -> str:
    if place.format is Format.TOML:
        return write_table(place.keys, entry)
    value: object = entry
    for key in reversed(place.keys):
        value = {key: value}
    return to_json(value)


def _is_private(place: EntryLocation) -> bool:
    # What lies in a project is its people's; what lies at home is the person's.
    return not place.path.is_relative_to(place.folder) or place.program == CLAUDE


def denies_questions(environ: Mapping[str, str]) -> bool:
    """Say whether Claude Code's own questions are switched off. Raise ConfigError."""
    document = read_document(claude_settings(environ))
    denied = open_text(document, Format.JSON).find(_DENY)
    return isinstance(denied, list) and OWN_QUESTIONS in denied


def _denies(server: McpServerEntry) -> bool:
    """Say whether it is a connection for which we switched the program's own questions off."""
    return server.is_ours and _DENIED_BY_US in server.env


def hook_command(argv: Sequence[str]) -> str:
    """Return the command of the hook beside the server that is started so."""
    return shlex.join(hook_words(argv))


def hook_words(argv: Sequence[str], group: str = "") -> list[str]:
    """Return the words of that command."""
    program, _, *options = argv
    data = options[options.index("--data-dir") :][:2] if "--data-dir" in options else []
    return [program, "hook", CLAUDE, *(["--group", group] if group else []), *data]


def _edit_claude_settings(
    environ: Mapping[str, str], edit: Callable[[JsonText], JsonText]
) -> Change:
    """Return the change of the file that all connections of Claude Code share."""
    document = read_document(claude_settings(environ))
    open_text(document, Format.JSON)
    try:
        return Change(document, edit(JsonText(document.text)).text)
    except (BadText, Unwritable) as exc:
        raise ConfigError(f"{document.path}: {exc}; nothing was written") from exc


def _add_shared(text: JsonText, *, hook: str, deny: bool) -> JsonText:
    """Let our tools be called without a question in the terminal, and the calls wait.

    `hook` tells a session what it missed while it was closed. `deny` switches the program's own
    questions off.
    """
    text = text.add(_ALLOW, CLAUDE_RULE)
    text = text if text.find(_BACKGROUND) == _NEVER else text.put(_BACKGROUND, _NEVER)
    text = _with_hook(text, [hook])
    return text.add(_DENY, OWN_QUESTIONS) if deny else text


def _take_shared(text: JsonText, *, hooks: Sequence[str], allow: bool) -> JsonText:
    """Take out what no other connection wants. `hooks` are those of the other connections.

    `allow` switches the program's own questions on again.
    """
    if not hooks:
        text = text.take(_ALLOW, CLAUDE_RULE)
        text = text.drop(_BACKGROUND) if text.find(_BACKGROUND) == _NEVER else text
    text = _with_hook(text, hooks)
    return text.take(_DENY, OWN_QUESTIONS) if allow else text


def _with_hook(text: JsonText, hooks: Sequence[str]) -> JsonText:
    """Have one of those hooks called, if possible the one that is there, and no other of ours."""
    wanted = [{"hooks": [{"type": "command", "command": hook}]} for hook in hooks]
    for path in _HOOKS:
        found = text.find(path)
        ours = [item for item in found if _is_our_hook(item)] if isinstance(found, list) else []
        kept = next((item for item in (*ours, *wanted) if item in wanted), None)
        for item in ours:
            text = text.take(path, item) if item != kept else text
        text = text.add(path, kept) if kept else text
    return text


def _is_our_hook(item: object) -> bool:
    match item:
        case {"hooks": [{"command": str(command)}], **more} if not more:
            try:
                program, *words = shlex.split(command)
            except ValueError:
                return False
            ours = Path(program).name == "pynchy" and words[:2] == ["hook", CLAUDE]
            return ours and "--group" not in words
        case _:
            return False


def connected_groups(place: EntryLocation) -> list[str]:
    """Return the groups that Claude Code asks as, anywhere, by now. Raise ConfigError."""
    text = open_text(read_document(place.path), place.format)
    return [server.group for server in _claude_servers(text)]


def _claude_servers(text: Text) -> list[McpServerEntry]:
    """Return the servers of ours that Claude Code has: the one for all folders, and for each."""
    said = text.plain
    projects = said.get("projects", {})
    tables = [said, *(projects.values() if isinstance(projects, dict) else ())]
    servers = [table.get("mcpServers") for table in tables if isinstance(table, dict)]
    entries = [one.get(SERVER_NAME) for one in servers if isinstance(one, dict)]
    found = [read_entry(CLAUDE, entry) for entry in entries]
    return [server for server in found if server is not None and server.is_ours]


def _allow_in_opencode(text: JsonText) -> JsonText:
    """Let its tools be called without a question, where somebody has made rules at all."""
    rules = text.find(("permission",))
    if isinstance(rules, dict) and OPENCODE_RULE not in rules:
        return text.put(("permission", OPENCODE_RULE), "allow")
    return text


def plan_launcher(
    place: EntryLocation, group: str, settings: Path | None, environ: Mapping[str, str]
) -> tuple[list[Change], str]:
    """Return what has to change, and what to say of a launcher that is there already.

    Raise ConfigError.
    """
    path = settings or own_settings(environ)
    document = read_document(path)
    text = open_text(document, Format.TOML)
    keys = ("groups", group, "launcher")
    wanted = dict(zip(_SETTINGS, ("process", place.program, str(place.folder)), strict=True))
    found = text.find(keys)
    if found is not None:
        same = isinstance(found, dict) and wanted.items() <= found.items()
        return [], "" if same else f"[{'.'.join(keys)}] in {path} is there already and was kept"
    try:
        changed = TomlText(document.text).put(keys, wanted)
    except Unwritable as exc:
        snippet = write_table(keys, wanted)
        raise ConfigError(f"{path}: {exc}; put this there yourself:\n{snippet}") from exc
    return [Change(document, changed.text, is_private=False)], ""
