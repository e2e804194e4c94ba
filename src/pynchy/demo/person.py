"""Who answers: somebody at the keyboard, or the script.

Both answer with the real `pynchy answer`, `approve` or `deny`, as anybody could from another
terminal.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pynchy.demo.agent import PYNCHY
from pynchy.demo.console import Voices
from pynchy.demo.script import DemoFailed, Scene
from pynchy.errors import EXIT_OVER
from pynchy.own_program import own_command

_CHUNK_BYTES = 64 * 1024
# The commands that decide, each with its option for words beside it.
_DECISIONS = {"approve": "--note", "deny": "--reason"}


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that waits for the person."""

    scene: Scene
    short_id: str
    data_dir: Path

    def command(self, values: tuple[str, ...]) -> str:
        """Return what answers it from another terminal, ready to be pasted."""
        verb, *words = values if self.scene.call is not None else ("answer", *values)
        return shlex.join(
            [*own_command(), verb, self.short_id, *words, "--data-dir", str(self.data_dir)]
        )


class Person(Protocol):
    """Whoever answers."""

    async def reply(self, shown: WaitingQuestion) -> tuple[str, ...]:
        """Return what is to be answered. Cancelled when somebody else has answered."""

    def refused(self, why: str) -> None:
        """Hear that it was not taken. Raise DemoFailed where there is no second try."""


class ScriptedPerson:
    """Answers as the script says."""

    def __init__(self, voices: Voices) -> None:
        self._voices = voices

    async def reply(self, shown: WaitingQuestion) -> tuple[str, ...]:
        """See Person."""
        self._voices.you(f"$ {shown.command(shown.scene.answer)}")
        return shown.scene.answer

    def refused(self, why: str) -> None:
        """See Person."""
        raise DemoFailed(f"the answer was not taken: {why}")


class TypingPerson:
    """Answers at the keyboard, as often as it takes."""

    def __init__(self, voices: Voices) -> None:
        self._voices = voices
        self._told: WaitingQuestion | None = None

    async def reply(self, shown: WaitingQuestion) -> tuple[str, ...]:
        """See Person."""
        if shown != self._told:
            self._tell_how(shown)
        with _typed_lines() as lines:
            line = ""
            while not line:
                self._voices.prompt()
                line = await self._next(lines)
        return _values(shown.scene, line)

    def refused(self, why: str) -> None:
        """See Person."""
        self._voices.pynchy(why)

    def _tell_how(self, shown: WaitingQuestion) -> None:
        self._told = shown
        self._voices.pynchy(
            f"Type {shown.scene.hint}. Or, in another terminal:\n"
            f"  {shown.command(shown.scene.answer)}"
        )

    async def _next(self, lines: asyncio.Queue[str | None]) -> str:
        try:
            line = await lines.get()
        except asyncio.CancelledError:
            self._voices.new_line()
            raise
        if line is None:
            self._voices.new_line()
            raise DemoFailed("the demo was left before its end")
        return line.strip()


async def submit(shown: WaitingQuestion, values: tuple[str, ...]) -> str | None:
    """Run `pynchy answer`. Return why it was refused; None if the question has an answer now."""
    folder = ("--data-dir", str(shown.data_dir))
    if shown.scene.call is None:
        call = ("answer", *folder, "--", shown.short_id, *values)
    elif values[0] in _DECISIONS:
        call = (*values, *folder, "--", shown.short_id)
    else:
        return f"Nothing else is a yes or a no: type {shown.scene.hint}."
    process = await asyncio.create_subprocess_exec(
        *PYNCHY,
        *call,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode in {0, EXIT_OVER}:
        return None
    why = output.decode(errors="replace").removeprefix("pynchy: ").strip()
    return why or f"exit code {process.returncode}"


@contextmanager
def _typed_lines() -> Iterator[asyncio.Queue[str | None]]:
    """Yield what is typed, line by line; None when the input has ended."""
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    keyboard = sys.stdin.fileno()

    def read() -> None:
        # A terminal hands over whole lines.
        data = os.read(keyboard, _CHUNK_BYTES)
        for line in data.decode(errors="replace").splitlines():
            lines.put_nowait(line)
        if not data:
            lines.put_nowait(None)

    loop.add_reader(keyboard, read)
    try:
        yield lines
    finally:
        loop.remove_reader(keyboard)


def _values(scene: Scene, line: str) -> tuple[str, ...]:
    """Split what was typed where several options may be meant, or a decision has a reason."""
    if scene.call is not None:
        verb, _, words = line.partition(" ")
        option = _DECISIONS.get(verb.lower(), "")
        return (verb.lower(), option, words.strip()) if words and option else (verb.lower(),)
    if not scene.question.get("multiSelect"):
        return (line,)
    if re.fullmatch(r"[\d\s,;]+", line):
        return tuple(re.findall(r"\d+", line))
    return tuple(part.strip() for part in re.split(r"[,;]", line))
