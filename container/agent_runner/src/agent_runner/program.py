"""The agent program as a process: fed with the prompt, read line by line, ended when asked to.

Threads instead of asyncio, which would take longer to load than all the rest: a resumed agent
starts only after we have.
"""

import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TypeVar

from agent_runner.cores.base import Command
from agent_runner.errors import ProgramMissing

_T = TypeVar("_T")

_MAX_LINE_BYTES = 64 * 1024 * 1024
# Less than what a host gives us (10 s unless set): whoever stops us may kill us after that.
_KILL_AFTER_SECONDS = 5.0
# What a dead program has left in its pipes; a process that it left behind may hold them open.
_DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line that the program has printed, as its output or as an error."""

    text: str
    is_error: bool


class Program:
    """One run of the program. Raise ProgramMissing if it cannot be started."""

    def __init__(self, command: Command, environ: Mapping[str, str]) -> None:
        env = {**environ, **command.env}
        for name in command.unset:
            env.pop(name, None)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the core's own program
                command.argv,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as exc:
            what = f"{command.argv[0]} cannot be started: {exc.strerror}"
            raise ProgramMissing(what) from exc
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()

    def lines(self, prompt: str) -> Iterator[Line]:
        """Give the program its prompt, and yield what it prints until it has ended."""
        streams = (self._process.stdout, self._process.stderr)
        readers = [_start(self._read, stream) for stream in streams]
        _start(self._feed, prompt)
        _start(self._watch, readers)
        while (line := self._lines.get()) is not None:
            yield line

    def exit_code(self) -> int:
        """Return its exit code, negative for a signal, once it has ended."""
        return self._process.wait()

    def ask_to_end(self) -> None:
        """Ask it to end, and make it end if it does not."""
        self._process.terminate()
        insist = threading.Timer(_KILL_AFTER_SECONDS, self._process.kill)
        insist.daemon = True
        insist.start()

    def end(self) -> None:
        """Make it end, and return when it has. An ended program is left as it is."""
        if self._process.poll() is None:
            self.ask_to_end()
            self._process.wait()

    def _feed(self, prompt: str) -> None:
        if self._process.stdin is not None:
            # A program that ends early does not read it all.
            with suppress(OSError), self._process.stdin as stdin:
                stdin.write(prompt.encode())

    def _read(self, stream: IO[bytes] | None) -> None:
        while stream is not None and (line := stream.readline(_MAX_LINE_BYTES)):
            if text := line.decode(errors="replace").strip():
                self._lines.put(Line(text, is_error=stream is self._process.stderr))

    def _watch(self, readers: list[threading.Thread]) -> None:
        self._process.wait()
        for reader in readers:
            reader.join(_DRAIN_SECONDS)
        self._lines.put(None)


def _start(target: Callable[[_T], None], argument: _T) -> threading.Thread:
    thread = threading.Thread(target=target, args=(argument,), daemon=True)
    thread.start()
    return thread
