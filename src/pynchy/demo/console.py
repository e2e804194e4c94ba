"""Who speaks, on the screen: one name in the margin, and a bar.

Colours are for terminals; what is piped is plain text with the same layout.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from pynchy.demo.script import DemoFailed

_MARGIN = 8


class Screen(Console):
    """The console. Where nobody reads any more, the demo fails in order and is cleaned up."""

    def on_broken_pipe(self) -> None:
        """Turn rich's way out of the program into an error."""
        try:
            super().on_broken_pipe()
        except SystemExit as exc:
            raise DemoFailed("nobody reads the output any more") from exc


class Voices:
    """Prints the story."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = "│" if console.encoding.lower().startswith("utf") else "|"

    def headline(self, text: str) -> None:
        """Begin a part of the story."""
        self._print(Text(f"\n{text}", style="bold"))

    def narrate(self, *lines: str) -> None:
        """Tell what nobody says."""
        for line in lines:
            self._print(Text(line))

    def agent(self, text: str) -> None:
        """Let the agent speak."""
        self._speak("agent", "cyan", text.splitlines())

    def pynchy(self, text: str) -> None:
        """Let the host speak."""
        self._speak("pynchy", "magenta", text.splitlines())

    def you(self, text: str) -> None:
        """Let the person speak."""
        self._speak("you", "green", text.splitlines())

    def prompt(self) -> None:
        """Leave the cursor where the person types."""
        self._console.print(self._margin("you", "green"), end="")

    def new_line(self) -> None:
        """Leave a prompt that was not used."""
        self._console.print()

    def _speak(self, name: str, style: str, lines: Iterable[str]) -> None:
        for line in lines:
            text = self._margin(name, style).append(line)
            text.rstrip()
            self._print(text)
            name = ""

    def _margin(self, name: str, style: str) -> Text:
        return Text.assemble((f"{name:>{_MARGIN}} ", f"bold {style}"), (f"{self._bar} ", style))

    def _print(self, text: Text) -> None:
        # No wrapping: a command that is copied from the screen must be one line.
        self._console.print(text, soft_wrap=True)
