"""The hooks of Claude Code that ask a person's phone for permissions, beside its own dialog.

By HTTP the file holds a key, so it is written for its owner alone, and never where a repository
could take it in: there, and where the host's address is not known, a command asks in its place.
While a card is out, a command tells the host which calls were made; else it costs a shell's look
at a file.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from pynchy.channels.loading import load_settings
from pynchy.cli.connect.json_text import JsonText
from pynchy.cli.connect.programs import CLAUDE, Scope
from pynchy.config import is_loopback
from pynchy.data_dir import DataFolder
from pynchy.errors import ConfigError, NoHost
from pynchy.http.hook_keys import (
    HOOK_PATH,
    PREFIX,
    STARTED_HEADER,
    STARTED_VARIABLE,
    HookKeys,
)
from pynchy.launchers.box_folders import leads_through, safe_search

_ASKED = ("hooks", "PermissionRequest")
_ENDED = (("hooks", "PostToolUse"), ("hooks", "PostToolUseFailure"))
_KEY = re.compile(rf"{PREFIX}[0-9a-f]{{64}}")
_BEARER = "Bearer "
# In place of a key that is made only when it is written.
NO_KEY_YET = PREFIX + "0" * 64
# As long as a call of our tools may wait: a day.
_SECONDS = 86_400
# What a repository has in its folder. What is ignored is asked of git, whose list jj heeds, too.
_IGNORING_AS_GIT = frozenset({".git", ".jj"})
_REPOSITORIES = (*_IGNORING_AS_GIT, ".hg", ".svn", ".sl", ".bzr", ".pijul", "_darcs", ".fslckout")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - where a host may listen


class Way(StrEnum):
    """How Claude Code asks for permissions here."""

    HTTP = "http"
    COMMAND = "command"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class PermissionHooks:
    """What is to be written. `url` and `key` are for HTTP alone."""

    way: Way
    command: tuple[str, ...]
    waiting: Path
    url: str = ""
    key: str = NO_KEY_YET

    def put(self, text: JsonText) -> JsonText:
        """Return the text with these hooks, and no others of ours. Raise BadText, Unwritable."""
        if self.way is Way.OFF:
            return without_hooks(text)
        guarded = f"[ ! -e {shlex.quote(str(self.waiting))} ] || exec {shlex.join(self.command)}"
        wanted = {_ASKED: _item(self._asking()), **dict.fromkeys(_ENDED, _item(_run(guarded)))}
        for path, item in wanted.items():
            text = _without(text, path, kept=item).add(path, item)
        return text

    def by_command(self) -> PermissionHooks:
        """Return hooks that do the same without a key."""
        return replace(self, way=Way.COMMAND)

    def _asking(self) -> dict[str, Any]:
        if self.way is Way.COMMAND:
            return {**_run(shlex.join(self.command)), "timeout": _SECONDS}
        return {
            "type": "http",
            "url": self.url,
            "headers": {
                "Authorization": f"{_BEARER}{self.key}",
                STARTED_HEADER: f"${STARTED_VARIABLE}",
            },
            "allowedEnvVars": [STARTED_VARIABLE],
            "timeout": _SECONDS,
        }


def plan_hooks(
    wanted: PermissionHooks, data: DataFolder, group: str, path: Path, boxes: Sequence[Path] = ()
) -> tuple[PermissionHooks, str]:
    """Return what to write into the file, and why it is not what was wanted, if it is not.

    `boxes` are the folders that agents may write in boxes.
    """
    if wanted.way is not Way.HTTP:
        return wanted, ""
    if not wanted.url:
        return wanted.by_command(), "the host's port is not known before it runs"
    if _is_proxied(wanted.url):
        why = "HTTP_PROXY is set, and NO_PROXY does not leave the host out"
        return wanted.by_command(), why
    if why := why_no_key(path, boxes):
        return wanted.by_command(), why
    return replace(wanted, key=HookKeys(data).find(group) or NO_KEY_YET), ""


def find_url(data: DataFolder, config: Path | None, text: JsonText, scope: Scope) -> str:
    """Return where the hook reaches the host: the one that runs, else as written, else as set.

    As written only where that is this machine, or where the host is set to listen, in a file that
    is the person's own: a project's may come from anybody, and the key must not go to them.
    """
    try:
        return _on_this_machine(data.host().url)
    except NoHost:
        pass
    try:
        http = load_settings(config).http
    except ConfigError:
        return ""  # serve will say what is wrong with them
    known = hook_url(text) if scope is Scope.USER else ""
    if known and _is_plain(known, http.host):
        return known
    host = f"[{http.host}]" if ":" in http.host else http.host
    return _on_this_machine(f"http://{host}:{http.port}") if http.port else ""


def _is_plain(url: str, host: str) -> bool:
    """True if it is such an address as is written here, of this machine or that host."""
    try:
        name = urlsplit(url).hostname or ""
        is_ours = url == _on_this_machine(url)
    except ValueError:
        return False
    return is_ours and (is_loopback(name) or name == host)


def find_way(text: JsonText) -> Way:
    """Return how it is asked there already; over HTTP if it is not."""
    return Way.COMMAND if has_hooks(text) and not hook_key(text) else Way.HTTP


def hook_url(text: JsonText) -> str:
    """Return where our HTTP hook in the text sends its events; empty if there is none."""
    asking = _ours(text, _ASKED)
    return next((str(one["url"]) for one in asking if one.get("type") == "http"), "")


def hook_key(text: JsonText) -> str:
    """Return the key of our HTTP hook in the text; empty if there is none."""
    found = [_KEY.search(str(one.get("headers"))) for one in _ours(text, _ASKED)]
    return next((one[0] for one in found if one), "")


def has_hooks(text: JsonText) -> bool:
    """True if Claude Code asks for permissions here, by whichever way."""
    return bool(_ours(text, _ASKED))


def without_hooks(text: JsonText) -> JsonText:
    """Return the text without our hooks. Raise BadText or Unwritable."""
    for path in (_ASKED, *_ENDED):
        text = _without(text, path)
    return text


def hide_keys(text: str) -> str:
    """Return the text as it may be shown."""
    return _KEY.sub(f"{PREFIX}…", text)


def why_no_key(path: Path, boxes: Sequence[Path] = ()) -> str:
    """Say why the file may hold no key: an agent, or a repository, could have it. Empty: it may."""
    real = path.resolve()
    if leads_through(real, boxes):
        return f"{path} lies where an agent in a box can read it"
    kinds = {kind for kind in _REPOSITORIES for folder in real.parents if (folder / kind).exists()}
    if not kinds or (kinds <= _IGNORING_AS_GIT and _is_ignored(real, boxes)):
        return ""
    return f"{path} lies in a repository that does not ignore it, and no key belongs there"


def _is_ignored(real: Path, boxes: Sequence[Path]) -> bool:
    git = shutil.which("git", path=safe_search("git", os.environ.get("PATH"), boxes))
    here = next((folder for folder in real.parents if folder.is_dir()), None)
    if git is None or here is None:
        return False
    # A repository may name programs of its own, which a look at it must not run.
    command = [git, "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"]
    command += ["-C", str(here), "check-ignore", "--quiet", "--", str(real)]
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - git itself
    return done.returncode == 0


def _is_proxied(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return bool(getproxies_environment().get("http")) and not proxy_bypass(host)


def _on_this_machine(url: str) -> str:
    address = urlsplit(url)
    host = address.hostname or ""
    named = _EVERYWHERE.get(host) or (f"[{host}]" if ":" in host else host)
    return f"http://{named}:{address.port}{HOOK_PATH}"


def _run(command: str) -> dict[str, Any]:
    return {"type": "command", "command": command}


def _item(hook: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": [hook]}


def _ours(text: JsonText, path: Sequence[str]) -> list[dict[str, Any]]:
    """Return our hooks for that event."""
    found = text.find(path)
    items = found if isinstance(found, list) else []
    return [item["hooks"][0] for item in items if _is_ours(item)]


def _without(text: JsonText, path: Sequence[str], kept: object = None) -> JsonText:
    found = text.find(path)
    for item in found if isinstance(found, list) else []:
        if item != kept and _is_ours(item):
            text = text.take(path, item)
    return text


def _is_ours(item: object) -> bool:
    match item:
        case {"hooks": [{"type": "http", "url": str(url), "headers": dict(headers)}]}:
            sent = str(headers.get("Authorization", ""))
            return url.endswith(HOOK_PATH) and sent.startswith(f"{_BEARER}{PREFIX}")
        case {"hooks": [{"type": "command", "command": str(command)}]}:
            return _starts_us(command)
        case _:
            return False


def _starts_us(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    words = words[words.index("exec") + 1 :] if "exec" in words else words
    return bool(words) and Path(words[0]).name == "pynchy" and words[1:3] == ["hook", CLAUDE]
