"""The line between the host and its child: one JSON object in each line of a socket.

The end of the line is the end of the other side.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any, Self

log = logging.getLogger(__name__)

# A message of 65,536 characters, each written as an escape, and room.
_MAX_LENGTH = 1_000_000
Body = dict[str, Any]


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
            log.error("the other side said something that is no JSON object")

    def close(self) -> None:
        """End the line."""
        self._writer.close()


def _read(raw: bytes) -> Body | None:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None
