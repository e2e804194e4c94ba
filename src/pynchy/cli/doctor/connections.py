"""The agent programs that `pynchy connect` has connected: do their tools really come."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent_runner.agent_tools._tasks import EXTENSION as TASKS
from pynchy.cli.connect.permission_hooks import (
    find_url,
    has_hooks,
    hook_key,
    hook_url,
    why_no_key,
)
from pynchy.cli.connect.plan import find_hooks, find_server
from pynchy.cli.connect.programs import (
    CLAUDE,
    PROGRAMS,
    EntryLocation,
    McpServerEntry,
    Scope,
    claude_hooks_file,
    find_place,
    find_project,
)
from pynchy.cli.doctor.programs import GATE, check_claude_code
from pynchy.cli.mailbox import MAILBOX_FOLDERS
from pynchy.data_dir import DataFolder, data_dir
from pynchy.errors import ConfigError
from pynchy.findings import Finding, fine, problem, warning
from pynchy.http.hook_keys import HookKeys
from pynchy.own_program import find_own_program

_VERSION = "2025-11-25"
_INITIALIZE = {
    "protocolVersion": _VERSION,
    "capabilities": {},
    "clientInfo": {"name": "pynchy-doctor", "version": "1"},
}
# As Claude Code greets a server in its terminal, where it runs tasks in the background.
_DISCOVER = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
    }
}
_MAX_LINE = 4 * 1024 * 1024
_MAX_WORDS = 500
_GRACE_SECONDS = 2.0
_OTHERS = 0o077

SECONDS = 20.0
_TOOLS = {"ask_user", "check_answer", "request_approval", "withdraw_question"}
# The session of an agent that runs us is not the one that the server is to be started for.
_NOT_OURS = ("CLAUDE_CODE_SESSION_ID", "PYNCHY_SESSION_ID", "PYNCHY_CALLED")


class NoTools(Exception):
    """The server did not list its tools; the text says why."""


class AnsweredError(NoTools):
    """The server answers a call with an error."""


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What a server offers; `tasks` to a client that would run them in the background."""

    tools: tuple[str, ...]
    tasks: bool


def ask_server(
    argv: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float
) -> ServerOffer:
    """Return what the server offers. Raise NoTools if that does not come within that time."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - the very command that the program would run
                argv,
                env=dict(env),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            raise NoTools(f"{argv[0]} cannot be started: {exc}") from exc
        conversation = _Conversation(process, seconds)
        try:
            return ServerOffer(conversation.tools(), conversation.offers_tasks())
        except NoTools as exc:
            conversation.end()
            raise NoTools(f"{exc}{_last_words(errors)}") from None
        finally:
            conversation.end()


class _Conversation:
    """What is said to the server and what it answers, up to a moment."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self._process = process
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self) -> None:
        """End the server in order, by force if it does not; ending twice is harmless."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(_GRACE_SECONDS)
        # What it left behind may hold the pipe open for long: then it is not ours to close.
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def tools(self) -> tuple[str, ...]:
        self._say({"id": 0, "method": "initialize", "params": _INITIALIZE})
        self._answer(0)
        self._say({"method": "notifications/initialized"})
        self._say({"id": 1, "method": "tools/list", "params": {}})
        tools = self._answer(1).get("tools")
        if not isinstance(tools, list):
            raise NoTools("it lists no tools")
        return tuple(str(tool.get("name")) for tool in tools if isinstance(tool, dict))

    def offers_tasks(self) -> bool:
        self._say({"id": 2, "method": "server/discover", "params": _DISCOVER})
        try:
            capabilities = self._answer(2).get("capabilities")
        except AnsweredError:  # it knows the handshake alone, which has no tasks
            return False
        extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
        return isinstance(extensions, dict) and TASKS in extensions

    def _say(self, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        with suppress(OSError):  # it has ended, which reading tells
            if stdin is not None:
                stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                stdin.flush()

    def _answer(self, number: int) -> dict[str, Any]:
        while True:
            message = self._next()
            if isinstance(message, dict) and message.get("id") == number:
                result = message.get("result")
                if not isinstance(result, dict):
                    raise AnsweredError("it answers with an error")
                return result

    def _next(self) -> object:
        left = self._until - time.monotonic()
        try:
            line = self._lines.get(timeout=max(left, 0))
        except queue.Empty:
            raise NoTools(f"it did not answer within {self._seconds:g} s") from None
        if not line:
            raise NoTools("it ended before it answered")
        try:
            return json.loads(line)
        except ValueError:
            raise NoTools("it prints something that is no MCP") from None

    def _read(self) -> None:
        stdout = self._process.stdout
        with suppress(OSError, ValueError):
            while stdout is not None and (line := stdout.readline(_MAX_LINE)):
                self._lines.put(line)
        self._lines.put(b"")


def _last_words(errors: IO[bytes]) -> str:
    with suppress(OSError):
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - _MAX_WORDS))
        words = errors.read().decode(errors="replace").strip()
        return f":\n{words}" if words else ""
    return ""


def check_connections(  # noqa: PLR0913 - what is looked at, and what may be run
    data: DataFolder,
    environ: Mapping[str, str],
    folder: Path,
    seconds: float = SECONDS,
    boxes: Sequence[Path] = (),
    *,
    try_gate: bool = False,
) -> Iterator[Finding]:
    """Look at every program's settings, for all folders and for this one.

    `boxes` are the folders that agents may write in boxes: nothing of theirs is run. With
    `try_gate` a connected Claude Code is run, to see whether its calls wait.
    """
    for program in PROGRAMS:
        is_connected = False
        for scope in Scope:
            place = find_place(program, scope, environ, folder)
            is_connected |= yield from _check(place, data, environ, seconds, boxes)
        if is_connected and program == CLAUDE:
            project = find_project(folder)
            yield from check_claude_code(environ, project, boxes, try_gate=try_gate)
        elif try_gate and program == CLAUDE:
            yield warning(GATE, "not tried: Claude Code is not connected", "pynchy connect claude")


def _check(
    place: EntryLocation,
    data: DataFolder,
    environ: Mapping[str, str],
    seconds: float,
    boxes: Sequence[Path],
) -> Generator[Finding, None, bool]:
    """Find what is wrong with an entry. Return whether there is one that asks in this folder."""
    check = f"{place.program} ({place.scope})"
    try:
        server = find_server(place)
    except ConfigError as exc:
        yield warning(check, str(exc), "correct the file: the program cannot read it either")
        return False
    if server is None:
        return False
    if not server.is_ours:
        detail = f"{place.path}: {'.'.join(place.keys)} does not start `pynchy mcp`"
        yield warning(check, detail, "take it out, then pynchy connect")
    elif stranger := _stranger(place, server):
        yield warning(check, f"{place.path}: {stranger}, so it was not started", _fix(place))
    elif (asked := _data_of(server, environ)) != data.path:
        detail = f"{place.path}: it asks in {asked}, and this is about {data.path}"
        yield warning(check, detail, f"{_fix(place)}, with the --data-dir of your host")
    else:
        with _without_traces(server, data) as argv:
            yield _try(check, place, McpServerEntry(argv, server.env), environ, seconds)
        if place.program == CLAUDE:
            yield from _check_permissions(place, server.group, data, environ, boxes)
        return True
    return False


def _check_permissions(
    place: EntryLocation,
    group: str,
    data: DataFolder,
    environ: Mapping[str, str],
    boxes: Sequence[Path],
) -> Iterator[Finding]:
    """What its permission dialog asks is asked elsewhere as well, if the hook is in order."""
    check = f"{place.program} permissions ({place.scope})"
    path = claude_hooks_file(place, environ)
    try:
        text = find_hooks(place, environ)
    except ConfigError as exc:
        yield warning(check, str(exc), "correct the file: the program cannot read it either")
        return
    key, url = hook_key(text), hook_url(text)
    try:
        known = HookKeys(data).find(group)
    except ConfigError as exc:
        yield problem(check, str(exc), _fix(place))
        return
    if not has_hooks(text):
        detail = f"{path}: no hook of ours, so only the terminal is asked for permissions"
        yield fine(check, detail)
    elif key and key != known:
        detail = f"{path}: the key of the hook is not one of group {group}, so nobody is asked"
        yield problem(check, detail, _fix(place))
    elif key and (why := why_no_key(path, boxes)):
        yield problem(check, f"{path}: it holds the hook's key, and {why}", _fix(place))
    elif key and path.stat().st_mode & _OTHERS:
        yield warning(check, f"{path}: others can read the hook's key", f"run: chmod go= {path}")
    elif key and url != (own := find_url(data, None, text, place.scope)):
        detail = f"{path}: the hook asks at {url}, and the host is at {own}"
        yield problem(check, detail, _fix(place))
    else:
        way = "over HTTP" if key else "by a command"
        detail = (
            f"a hook is set up to ask elsewhere what its dialog asks, {way}; auto mode asks nobody"
        )
        yield fine(check, detail)


@contextmanager
def _without_traces(server: McpServerEntry, data: DataFolder) -> Iterator[tuple[str, ...]]:
    """Give the command with which the server starts and leaves nothing behind.

    It would make a mailbox that is not there, so then it makes it in a folder that goes again;
    where it cannot be made, the server says so.
    """
    mailbox = data.ipc / server.group
    is_there = all((mailbox / name).is_dir() for name in MAILBOX_FOLDERS)
    if is_there or not _can_be_made(mailbox):
        yield server.argv
        return
    with tempfile.TemporaryDirectory(prefix="pynchy-doctor-") as scratch:
        yield (*server.argv, "--data-dir", scratch)


def _can_be_made(folder: Path) -> bool:
    above = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    return above.is_dir() and os.access(above, os.W_OK)


def _data_of(server: McpServerEntry, environ: Mapping[str, str]) -> Path:
    """Return the data folder of the server as a program starts it that hands on HOME alone."""
    given = server.option("--data-dir")
    home = {name: value for name, value in environ.items() if name == "HOME"}
    return data_dir(Path(given) if given else None, home | dict(server.env)).absolute()


def _stranger(place: EntryLocation, server: McpServerEntry) -> str:
    """Return why a server that somebody else may have written is not to be started."""
    if place.scope is Scope.USER or place.program == CLAUDE:  # both lie in the person's own files
        return ""
    if server.argv[0] != find_own_program():
        return f"{server.argv[0]} is not the pynchy that runs now"
    foreign = [name for name in server.env if not name.startswith("PYNCHY_")]
    return f"it sets {', '.join(foreign)}" if foreign else ""


def _try(
    check: str,
    place: EntryLocation,
    server: McpServerEntry,
    environ: Mapping[str, str],
    seconds: float,
) -> Finding:
    inherited = {name: value for name, value in environ.items() if name not in _NOT_OURS}
    started = time.monotonic()
    try:
        offer = ask_server(server.argv, {**inherited, **server.env}, place.folder, seconds)
    except NoTools as exc:
        return problem(check, f"{place.path}: {exc}", _fix(place))
    if missing := _TOOLS - set(offer.tools):
        detail = f"{place.path}: the server lacks {', '.join(sorted(missing))}"
        return problem(check, detail, _fix(place))
    if offer.tasks and place.program == CLAUDE:
        detail = f"{place.path}: the server offers tasks, so Claude Code goes on without an answer"
        return problem(check, detail, _fix(place))
    took = f"{time.monotonic() - started:.1f} s"
    return fine(check, f"connected as group {server.group}: {', '.join(offer.tools)} (in {took})")


def _fix(place: EntryLocation) -> str:
    scope = "" if place.scope is Scope.USER else f" --scope {place.scope}"
    return f"run pynchy connect {place.program}{scope} again"
