"""One child process, and the socket to it: one JSON object in each line."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

log = logging.getLogger(__name__)

# A message of 65,536 characters, each written as an escape, and room.
_MAX_LENGTH = 1_000_000
Body = dict[str, Any]

CHILD_MODULE = "pynchy.channels.whatsapp.child"
_END_SECONDS = 4.0
LOG = "child.log"
# What Python, its libraries and a connection to the internet may need. All else stays here: the
# tokens of other channels and the agents' keys are no business of the library's.
_PASSED = frozenset(
    {
        *("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    }
)
_PASSED_PREFIXES = ("LC_", "PYTHON")


class JsonLines:
    """One end of the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def on(cls, sock: socket.socket) -> Self:
        """Return the end that the socket is."""
        return cls(*await asyncio.open_unix_connection(sock=sock, limit=_MAX_LENGTH))

    def say(self, **body: object) -> None:
        """Send; nothing is said of a line that has ended, which the reader notices."""
        if not self._writer.is_closing():
            self._writer.write(json.dumps(body).encode() + b"\n")

    async def hear(self) -> Body | None:
        """Return the next object; None when the line has ended."""
        while True:
            try:
                raw = await self._reader.readline()
            except (OSError, ValueError):
                return None
            if not raw.endswith(b"\n"):
                return None
            if (body := _read(raw)) is not None:
                return body
            log.error("whatsapp.line_malformed")

    def close(self) -> None:
        """End the line."""
        self._writer.close()


def _read(raw: bytes) -> Body | None:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


class Process:
    """A child that runs; it ends when its line is closed."""

    def __init__(self, process: asyncio.subprocess.Process, line: JsonLines) -> None:
        self._process = process
        self.line = line

    @classmethod
    async def start(cls, home: Path, store: Path, **order: object) -> Self:
        """Start a child with its order. What it and the library print goes into a file."""
        ours, theirs = socket.socketpair()
        with theirs, _log_of(home) as log_file:
            # Without the present folder among the places for modules (-P), and in a session of
            # its own: the terminal's Ctrl-C is for the host.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                CHILD_MODULE,
                str(theirs.fileno()),
                str(home),
                str(store),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                env=environment(os.environ),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        line = await JsonLines.on(ours)
        line.say(**order)
        return cls(process, line)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    async def hear(self) -> Body | None:
        """Return what it says next; None when it has ended."""
        return await self.line.hear()

    async def end(self) -> int:
        """Let it end, by force if it does not. Return its exit code."""
        self.line.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                return await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            return await self._process.wait()


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the child may see of our environment: nobody's secrets."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _PASSED or name.startswith(_PASSED_PREFIXES)
    }


def _log_of(home: Path) -> BinaryIO:
    """Return a new file for what is printed; the one before it stays."""
    path = home / LOG
    with suppress(FileNotFoundError):
        path.replace(home / f"{LOG}.1")
    # Appending: the child may cut it short while it writes.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    return os.fdopen(fd, "wb")
