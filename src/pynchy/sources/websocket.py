"""A small client for WebSockets (RFC 6455) on a stream that is open already.

Strict, and bounded: whatever breaks the protocol ends the connection. A message that is too large
is read to its end and left out, so that one such message does not end what comes after it. Every
frame is paid for, so that whoever reads can let others have their turn.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import struct
from collections.abc import Awaitable, Callable
from enum import IntEnum

MAX_MESSAGE_BYTES = 8 * 1024**2
# No program sends this; reading it to its end would only take our time.
_MAX_SKIPPED_BYTES = 1024**3
# Parts may be empty: bytes alone do not bound them.
_MAX_PARTS = 10_000
_MAX_CONTROL = 125
_CHUNK = 64 * 1024
_TWO_BYTES, _EIGHT_BYTES = 126, 127
_SEND_SECONDS = 10.0
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# We have offered neither.
_NOT_OFFERED = ("sec-websocket-extensions", "sec-websocket-protocol")


class WebSocketError(Exception):
    """The other side has broken the protocol, or has gone."""


class _Opcode(IntEnum):
    MORE = 0
    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10


# Takes the bytes of a frame, and may wait, or end the connection by a WebSocketError.
Pay = Callable[[int], Awaitable[None]]


async def _give_turn(_size: int) -> None:
    """Let others have their turn: what has come already is read without waiting for anything."""
    await asyncio.sleep(0)


class WebSocket:
    """One connection. One task receives; any may send. `pay` is told of each frame that comes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pay: Pay = _give_turn,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._pay = pay

    async def shake_hands(self) -> None:
        """Turn the stream into a WebSocket. Raise WebSocketError if it is not to be."""
        key = base64.b64encode(secrets.token_bytes(16))
        self._writer.write(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as exc:
            raise WebSocketError("it does not answer as a WebSocket") from exc
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        accepted = base64.b64encode(hashlib.sha1(key + _MAGIC, usedforsecurity=False).digest())
        is_accepted = (
            first.startswith("HTTP/1.1 101")
            and fields.get("upgrade", "").lower() == "websocket"
            and "upgrade" in fields.get("connection", "").lower()
            and fields.get("sec-websocket-accept") == accepted.decode()
            and not any(fields.get(name) for name in _NOT_OFFERED)
        )
        if not is_accepted:
            raise WebSocketError("it does not answer as a WebSocket")

    async def send(self, message: bytes) -> None:
        """Send a text. Raise WebSocketError if the other side is gone, or does not read."""
        await self._send(_Opcode.TEXT, message)

    async def receive(self) -> bytes:
        """Return the next text. Raise WebSocketError when there is none any more."""
        try:
            while (message := await self._receive()) is None:
                pass
        except (asyncio.IncompleteReadError, OSError) as exc:
            raise WebSocketError("it has closed the connection") from exc
        return message

    async def _receive(self) -> bytes | None:
        """Return the next message; None for one that is too large."""
        parts: list[bytes] = []
        size, count, is_first = 0, 0, True
        while True:
            is_last, opcode, length = await self._header()
            await self._pay(length)
            if opcode >= _Opcode.CLOSE:
                await self._control(opcode, await self._reader.readexactly(length))
                continue
            if (opcode is _Opcode.TEXT) != is_first:
                raise WebSocketError("it sends a message that does not follow the last one")
            is_first, size, count = False, size + length, count + 1
            if size > _MAX_SKIPPED_BYTES or count > _MAX_PARTS:
                raise WebSocketError("it sends a message without end")
            if size > MAX_MESSAGE_BYTES:
                parts.clear()
                await self._skip(length)
            else:
                parts.append(await self._reader.readexactly(length))
            if is_last:
                return b"".join(parts) if size <= MAX_MESSAGE_BYTES else None

    async def _header(self) -> tuple[bool, _Opcode, int]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == _TWO_BYTES:
            [length] = struct.unpack("!H", await self._reader.readexactly(2))
        elif length == _EIGHT_BYTES:
            [length] = struct.unpack("!Q", await self._reader.readexactly(8))
        try:
            opcode = _Opcode(first & 0x0F)
        except ValueError as exc:
            raise WebSocketError("it sends what is no text") from exc
        is_last = bool(first & 0x80)
        is_broken_control = opcode >= _Opcode.CLOSE and (length > _MAX_CONTROL or not is_last)
        if first & 0x70 or second & 0x80 or is_broken_control:
            raise WebSocketError("it sends a frame that no server may send")
        return is_last, opcode, length

    async def _control(self, opcode: _Opcode, payload: bytes) -> None:
        if opcode is _Opcode.CLOSE:
            await self._send(_Opcode.CLOSE, payload[:2])
            raise WebSocketError("it has closed the connection")
        if opcode is _Opcode.PING:
            await self._send(_Opcode.PONG, payload)

    async def _skip(self, length: int) -> None:
        while length:
            length -= len(await self._reader.readexactly(min(length, _CHUNK)))

    async def _send(self, opcode: _Opcode, payload: bytes) -> None:
        size = len(payload)
        if size < _TWO_BYTES:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | _TWO_BYTES, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | _EIGHT_BYTES, size)
        mask = os.urandom(4)
        pad = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        masked = (int.from_bytes(payload, "big") ^ pad).to_bytes(size, "big")
        try:
            self._writer.write(head + mask + masked)
            async with asyncio.timeout(_SEND_SECONDS):
                await self._writer.drain()
        except (OSError, TimeoutError) as exc:
            raise WebSocketError("it does not read what it is sent") from exc
