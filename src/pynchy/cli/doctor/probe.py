"""Start an MCP server as an agent program would, and ask it for its tools."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

_VERSION = "2025-11-25"
_INITIALIZE = {
    "protocolVersion": _VERSION,
    "capabilities": {},
    "clientInfo": {"name": "pynchy-doctor", "version": "1"},
}
_MAX_LINE = 4 * 1024 * 1024
_MAX_WORDS = 500
_GRACE_SECONDS = 2.0


class NoTools(Exception):
    """The server did not list its tools; the text says why."""


def list_tools(
    argv: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float
) -> list[str]:
    """Return the names of the tools. Raise NoTools if they do not come within that time."""
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
            return conversation.tools()
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

    def tools(self) -> list[str]:
        self._say({"id": 0, "method": "initialize", "params": _INITIALIZE})
        self._answer(0)
        self._say({"method": "notifications/initialized"})
        self._say({"id": 1, "method": "tools/list", "params": {}})
        tools = self._answer(1).get("tools")
        if not isinstance(tools, list):
            raise NoTools("it lists no tools")
        return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)]

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
                    raise NoTools("it answers with an error")
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
