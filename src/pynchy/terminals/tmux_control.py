"""tmux's control mode: commands go in as lines, and what tmux says comes out as lines.

    %begin TIME NUMBER FLAGS      what a command prints, up to the %end (or %error) with the
    …                             same three numbers
    %end TIME NUMBER FLAGS
    %subscription-changed NAME …  notifications, between two such blocks

Much of what is printed was written by strangers: a block ends with its own guard and nothing else,
and of a line or a block that is too long nothing piles up. Words go in as octal numbers wherever
they could mean something.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from pynchy.errors import PynchyError

MAX_LINE = 64 * 1024
MAX_BLOCK = 8 * 2**20

_CHUNK = 65_536
_GUARD = re.compile(rb"%(begin|end|error) (\d{1,20}) (\d{1,20}) (\d{1,10})\Z")
_NOTIFICATION = re.compile(rb"%([a-z][a-z-]{0,60})(?: (.*))?\Z", re.DOTALL)
_OURS = b"1"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:/@%=")
_ATTACH_SECONDS = 30.0
_END_SECONDS = 2.0


class ControlBroken(PynchyError):
    """What was read is not what tmux says in control mode."""


class TmuxGone(PynchyError):
    """tmux has ended the connection: its server, or the session, is gone."""


class TmuxRefused(PynchyError):
    """tmux did not do what it was told; the text is its own."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one command has printed. `is_ours`: the command came from this client's input."""

    lines: tuple[str, ...]
    is_error: bool = False
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Notification:
    """What tmux tells by itself: at most as much of it as a line may have."""

    name: str
    text: str = ""


def quote(text: str) -> str:
    """Return the text as one word of a tmux command, whatever it holds but NUL."""
    data = text.encode("utf-8", "replace")
    return '"' + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data) + '"'


class ControlReader:
    """Reads what tmux says, in whatever pieces."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._is_cut = False
        self._guard: tuple[bytes, ...] | None = None
        self._block: list[str] = []
        self._block_bytes = 0

    def feed(self, data: bytes) -> Iterator[Block | Notification]:
        """Yield what is whole with these bytes. Raise ControlBroken."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._keep(piece)
            line, is_cut = bytes(self._line), self._is_cut
            self._line.clear()
            self._is_cut = False
            if (said := self._take(line, is_cut=is_cut)) is not None:
                yield said
        self._keep(rest)

    def end(self) -> None:
        """Raise ControlBroken if something was begun and not ended."""
        if self._guard is not None or self._line:
            raise ControlBroken("tmux stopped in the midst of what it said")

    def _keep(self, piece: bytes) -> None:
        room = MAX_LINE - len(self._line)
        self._is_cut = self._is_cut or len(piece) > room
        self._line += piece[:room]

    def _take(self, line: bytes, *, is_cut: bool) -> Block | Notification | None:
        guard = _GUARD.match(line)
        if self._guard is not None:
            if guard and guard[1] != b"begin" and guard.groups()[1:] == self._guard:
                return self._end_block(is_error=guard[1] == b"error")
            self._add(line, is_cut=is_cut)
            return None
        if guard:
            if guard[1] != b"begin":
                raise ControlBroken("tmux ends what it has not begun")
            self._guard = guard.groups()[1:]
            return None
        found = _NOTIFICATION.match(line)
        if found is None:
            raise ControlBroken(f"tmux says {line[:60]!r}, which is no word of control mode")
        return Notification(found[1].decode(), (found[2] or b"").decode("utf-8", "replace"))

    def _add(self, line: bytes, *, is_cut: bool) -> None:
        self._block_bytes += len(line) + 1
        if is_cut or self._block_bytes > MAX_BLOCK:
            raise ControlBroken("tmux printed more than can be read at once")
        self._block.append(line.decode("utf-8", "replace"))

    def _end_block(self, *, is_error: bool) -> Block:
        is_ours = self._guard is not None and self._guard[2] == _OURS
        block = Block(tuple(self._block), is_error, is_ours)
        self._guard = None
        self._block.clear()
        self._block_bytes = 0
        return block


@dataclass(slots=True)
class _Request:
    last_line: str
    done: asyncio.Future[list[Block]]
    blocks: list[Block] = field(default_factory=list)


class ControlClient:
    """One client of a tmux server, as an async context manager.

    `changed` is set when what was subscribed to has changed, and when tmux is gone.
    """

    def __init__(self, words: Sequence[str], env: dict[str, str]) -> None:
        self.changed = asyncio.Event()
        self._words, self._env = words, env
        self._attached = asyncio.Event()
        self._requests: deque[_Request] = deque()
        self._count = 0
        self._is_gone = False
        self._broken: ControlBroken | None = None

    async def __aenter__(self) -> Self:
        # A group of its own: the Ctrl-C that ends us is not for it.
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            env=self._env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read())
        # What is said before tmux has attached us is said by nobody.
        with suppress(TimeoutError):
            async with asyncio.timeout(_ATTACH_SECONDS):
                await self._attached.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await self._reading

    async def do(self, command: str) -> list[str]:
        """Run a line of commands, and return what they print.

        Raise TmuxRefused if one fails (those behind it are not run), TmuxGone, ControlBroken.
        """
        self._check()
        self._count += 1
        # One command can print several blocks, or none: what follows it says where they end.
        request = _Request(f"pynchy-{self._count}", asyncio.get_running_loop().create_future())
        self._requests.append(request)
        written = f"{command}\ndisplay-message -p {request.last_line}\n".encode()
        if self._process.stdin is not None:
            with suppress(ConnectionError):
                self._process.stdin.write(written)
                await self._process.stdin.drain()
        blocks = await request.done
        for block in blocks:
            if block.is_error:
                raise TmuxRefused(" ".join(block.lines) or "tmux refused a command")
        return [line for block in blocks for line in block.lines]

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._is_gone:
            raise TmuxGone("tmux has ended the connection")

    async def _read(self) -> None:
        reader = ControlReader()
        try:
            while not self._is_gone and (data := await self._next()):
                for said in reader.feed(data):
                    self._hear(said)
        except ControlBroken as exc:
            self._broken = exc
            self._process.kill()
        self._is_gone = True
        self.changed.set()
        self._attached.set()
        for request in self._requests:
            if not request.done.done():
                request.done.set_exception(self._broken or TmuxGone("tmux has gone meanwhile"))
                request.done.exception()  # whoever asked may have been cancelled

    async def _next(self) -> bytes:
        return await self._process.stdout.read(_CHUNK) if self._process.stdout else b""

    def _hear(self, said: Block | Notification) -> None:
        if isinstance(said, Notification):
            if said.name == "subscription-changed":
                self.changed.set()
            self._is_gone = self._is_gone or said.name == "exit"
        elif not said.is_ours:
            self._attached.set()  # the command that we were started with has been run
        elif self._requests:
            request = self._requests[0]
            if said.lines != (request.last_line,):
                request.blocks.append(said)
                return
            self._requests.popleft()
            if not request.done.done():
                request.done.set_result(request.blocks)
