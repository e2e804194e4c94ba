"""The program `phux`: what it lists, tells and types.

Each call is a process of its own, without a shell, in a process group that is killed at the end of
the call. Before `phux` types an answer it checks that the very ask still stands, and says how that
went by its exit code and the code of its error. What it does not say clearly counts as "may have
been typed".
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pynchy import wire
from pynchy.errors import MalformedRequest, PynchyError
from pynchy.typed_line import Typed, TypingResult
from pynchy.unicode_safety import clip, name_all

# Of `phux watch --json`; a title or a question is not longer.
MAX_LINE = 64 * 1024

_MAX_OUTPUT = 4 * 1024 * 1024
_MAX_WHY = 200
_CHUNK = 16 * 1024
_CALL_SECONDS = 10.0
_TYPE_SECONDS = 20.0
_LOCAL_TERMINAL = re.compile(r"@[0-9]{1,10}")
_UNKNOWN_COMMAND = re.compile(rb"unrecognized subcommand '(?:agent|answer)'")
_NO_SERVER = "no_server"
_REFUSED = 2
_UNKNOWN_DELIVERY = 3
# The codes that leave open whether the answer was typed; any other one says that it was not.
_UNSURE = ("delivery_unknown", "transport", "server_disconnected")
_OF_AN_OLD_SERVER = "server_too_old"
_IN_WORDS = {
    "no_active_ask": "the program asks it no more",
    "ask_stale": "the program asks something else",
    "ask_unidentified": "the program asks something else",
    "no_such_target": "its terminal is gone",
    _NO_SERVER: "phux's server has ended",
}


class PhuxFailed(PynchyError):
    """phux could not be used: it says why, for a person."""


class PhuxMissing(PhuxFailed):
    """There is no such program."""


class PhuxNotRunning(PhuxFailed):
    """The program is there, and no server of it runs."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a call ended."""

    exit_code: int
    out: bytes
    err: bytes

    @property
    def error(self) -> str:
        """The code that phux gives its error; empty if there is none."""
        for told in (self.err, self.out):
            with suppress(MalformedRequest):
                return wire.read_phux(wire.PhuxError, told).error.code
        # Not every command of phux writes JSON.
        return _NO_SERVER if self.exit_code and b"no server" in self.err else ""

    @property
    def why(self) -> str:
        """Why it failed, in one short line."""
        for told in (self.err, self.out):
            with suppress(MalformedRequest):
                return _shown(wire.read_phux(wire.PhuxError, told).error.message)
        said = self.err.decode(errors="replace").strip().partition("\n")[0]
        return _shown(said) or f"exit code {self.exit_code}"


class PhuxProgram:
    """phux by its name or path, at one server."""

    def __init__(self, command: str, socket: Path | None, environ: Mapping[str, str]) -> None:
        self._command = command
        self._at = () if socket is None else (f"--socket={socket}",)
        self._environ = dict(environ)

    async def terminals(self) -> list[str]:
        """Return the terminals of this machine's server. Raise PhuxFailed."""
        ended = await self._call(_CALL_SECONDS, "ls", "--json", *self._at)
        if ended.error == _NO_SERVER:
            raise PhuxNotRunning(ended.why)
        if ended.exit_code:
            raise PhuxFailed(f"phux ls fails: {ended.why}")
        try:
            named = wire.read_phux(wire.PhuxList, ended.out).terminals
        except MalformedRequest as exc:
            raise PhuxFailed(f"phux ls --json cannot be read: {exc.reason}") from exc
        if named is None:
            raise PhuxFailed("this phux does not list its terminals: a newer one is needed")
        # Those of other machines are for the host there: phux types answers at home only.
        return [one for one in named if _LOCAL_TERMINAL.fullmatch(one)]

    async def title(self, terminal: str) -> str | None:
        """Return the terminal's title; None if phux does not tell. Raise PhuxFailed."""
        ended = await self._call(_CALL_SECONDS, "snapshot", "--json", *self._at, terminal)
        try:
            return wire.read_phux(wire.PhuxScreen, ended.out).title
        except MalformedRequest:
            return None

    @asynccontextmanager
    async def watching(self, terminal: str) -> AsyncIterator[AsyncIterator[bytes | None]]:
        """Give the lines that phux tells of the terminal; None for one that is too long.

        They end when phux does. Raise PhuxFailed.
        """
        args = ("watch", "--json", *self._at, terminal)
        async with self._running(*args, err=asyncio.subprocess.DEVNULL) as process:
            yield _lines(cast("asyncio.StreamReader", process.stdout))

    async def answer(
        self, terminal: str, ask_id: str, text: str, *, is_offered: bool
    ) -> TypingResult | None:
        """Let phux type the answer to that very ask; None if this phux cannot, and did nothing.

        Text and not the number of a suggestion: that would be counted in what is offered then.
        """
        unlisted = () if is_offered else ("--allow-unlisted",)
        args = (f"--id={ask_id}", f"--text={text}", *unlisted, "--json", *self._at, terminal)
        try:
            ended = await self._call(_TYPE_SECONDS, "agent", "answer", *args)
        except PhuxMissing as exc:
            return TypingResult(Typed.NO, str(exc))
        except PhuxFailed as exc:
            return TypingResult(Typed.MAYBE, str(exc))
        is_unknown = ended.exit_code == _REFUSED and _UNKNOWN_COMMAND.search(ended.err)
        return None if is_unknown or ended.error == _OF_AN_OLD_SERVER else _verdict(ended)

    async def paste(self, terminal: str, text: str) -> TypingResult:
        """Put the text where the program reads; Enter is another matter."""
        return await self._type("paste", *self._at, "--", terminal, text)

    async def enter(self, terminal: str) -> TypingResult:
        """Press Enter."""
        return await self._type("send-keys", *self._at, terminal, "Enter")

    async def _type(self, *args: str) -> TypingResult:
        try:
            ended = await self._call(_TYPE_SECONDS, *args)
        except PhuxMissing as exc:
            return TypingResult(Typed.NO, str(exc))
        except PhuxFailed as exc:
            return TypingResult(Typed.MAYBE, str(exc))
        return _verdict(ended)

    async def _call(self, seconds: float, *args: str) -> _Ended:
        """Return how the call ended. Raise PhuxMissing if it did not begin, else PhuxFailed."""
        what = f"phux {args[0]}"
        try:
            async with self._running(*args) as process, asyncio.timeout(seconds):
                out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                return _Ended(await process.wait(), out, err)
        except TimeoutError as exc:
            raise PhuxFailed(f"{what} does not end") from exc
        except ValueError as exc:
            raise PhuxFailed(f"{what} tells too much") from exc

    @asynccontextmanager
    async def _running(
        self, *args: str, err: int = asyncio.subprocess.PIPE
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        path = shutil.which(self._command, path=self._environ.get("PATH"))
        if path is None:
            raise PhuxMissing(f"there is no program {self._command} here")
        try:
            process = await asyncio.create_subprocess_exec(
                path,
                *args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=err,
                env=self._environ,
                start_new_session=True,
            )
        except OSError as exc:
            raise PhuxMissing(f"{path} cannot be started: {exc.strerror}") from exc
        try:
            yield process
        finally:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs of it, and wait until it is gone."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # Its pipes may be full, and somebody else may have them: nothing else lets go of our ends.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    await process.wait()


def _verdict(ended: _Ended) -> TypingResult:
    """Return whether something was typed, as far as phux says it."""
    if not ended.exit_code:
        return TypingResult(Typed.YES)
    code = ended.error
    why = _IN_WORDS.get(code) or f"phux says: {ended.why}"
    is_sure = bool(code) and not code.endswith(_UNSURE)
    if ended.exit_code == _UNKNOWN_DELIVERY:
        is_sure = code == "partial_view"
    is_refused = ended.exit_code == _REFUSED
    return TypingResult(Typed.NO if is_sure or is_refused else Typed.MAYBE, why)


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Return all of it. Raise ValueError if that is too much."""
    read = bytearray()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        read += chunk
        if len(read) > _MAX_OUTPUT:
            raise ValueError("too much")
    return bytes(read)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Give each line, None for one that is too long. At most one line is kept."""
    rest, is_cut = b"", False
    while chunk := await stream.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield None if is_cut or len(line) > MAX_LINE else line
            is_cut = False
        if len(rest) > MAX_LINE:
            rest, is_cut = b"", True


def _shown(text: str) -> str:
    return clip(name_all(text).strip().rstrip("."), _MAX_WHY)
