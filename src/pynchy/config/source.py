"""Show a person where in the settings file something is wrong.

The line is shown as it stands, with two exceptions: a secret is hidden, and a character that a
terminal would act on is replaced.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from textwrap import fill
from unicodedata import combining, east_asian_width

from pynchy.config.errors import SettingProblem
from pynchy.config.places import Loc, Places, Span, find_places

# An agent's environment is where its keys are.
_SECRET = re.compile(
    r"token|secret|passw|credential|(?:api|private|access)[_ -]?key|\benv", re.IGNORECASE
)
_SECRET_WORDS = ("token", "tokens", "secret", "secrets", "password", "credential", "credentials")
# A secret's name and what follows it in a line that is not TOML: "bot token: x".
_LOOSE_SECRET = re.compile(rf"(?:{_SECRET.pattern})[\w.-]*[\"']?\s*[=:]?\s*", re.IGNORECASE)
_HIDDEN = "***"
_BEFORE, _WINDOW = 40, 100


@dataclass(frozen=True)
class SettingsText:
    """A settings file that was read: its name and its text, with line ends made equal."""

    name: str
    text: str

    @cached_property
    def places(self) -> Places:
        """Where keys and values stand."""
        return find_places(self.text)

    def place(self, finding: SettingProblem) -> Span:
        """Return where the finding is to be shown."""
        return (self.places.key if finding.at_key else self.places.value)(finding.loc)

    def show(self, finding: SettingProblem) -> str:
        """Return the finding with its place and its line."""
        return self._show(self.place(finding), finding.message, finding.notes, self._secrets)

    def show_broken(self, span: Span, message: str, notes: tuple[str, ...] = ()) -> str:
        """Return the message with that place and its line, in a text that is not TOML."""
        tails = [*self._secret_tail(span.start), *self._loose_secret(span.start)]
        hidden = [*self._secrets, *tails]
        return self._show(span, message, notes, hidden)

    def _show(self, span: Span, message: str, notes: tuple[str, ...], hidden: list[Span]) -> str:
        start = self._line_around(span.start).start
        number = str(self.text.count("\n", 0, start) + 1)
        margin = " " * len(f"  {number}")
        line, carets = self._line_and_carets(start, span, hidden)
        return "\n".join(
            [
                f"{self.name}:{number}:{span.start - start + 1}: {message}",
                f"  {number} | {line}".rstrip(),
                f"{margin} | {carets}",
                *(_note(note, margin) for note in notes),
            ]
        )

    def _line_and_carets(self, start: int, span: Span, hidden: list[Span]) -> tuple[str, str]:
        line = self.text[start : self._line_around(start).end]
        cells = [_cell(char) for char in line]
        for secret in hidden:
            _hide(cells, secret.start - start, secret.end - start)
        first = span.start - start
        last = max(first + 1, min(span.end - start, len(line)))
        return _cut(cells, first, last)

    @cached_property
    def _secrets(self) -> list[Span]:
        """Return what to hide: whole values, and lists or tables that were left open."""
        values, unfinished = self.places.values, set(self.places.unfinished)
        holders = {loc[:-1] for loc in values} - unfinished
        return [span for loc, span in values.items() if _is_secret(loc) and loc not in holders]

    def _secret_tail(self, offset: int) -> list[Span]:
        """Return the rest of the line after a secret, which a forgotten quote may have cut."""
        before = [item for item in self.places.values.items() if item[1].start <= offset]
        loc, span = max(before, key=lambda item: item[1].start, default=((), Span(0, 0)))
        return [Span(span.end, self._line_around(span.end).end)] if _is_secret(loc) else []

    def _loose_secret(self, offset: int) -> list[Span]:
        """Return what follows a secret's name on the line, however it is written."""
        line = self._line_around(offset)
        match = _LOOSE_SECRET.search(self.text, line.start, line.end)
        return [Span(match.end(), line.end)] if match else []

    def _line_around(self, offset: int) -> Span:
        end = self.text.find("\n", offset)
        start = self.text.rfind("\n", 0, offset) + 1
        return Span(start, end if end >= 0 else len(self.text))


def _is_secret(loc: Loc) -> bool:
    return any(_names_secret(part) for part in loc if isinstance(part, str))


@lru_cache
def _names_secret(name: str) -> bool:
    if _SECRET.search(name):
        return True
    # A misspelt name is the very reason why its line is shown.
    words = re.split(r"[^a-z]+", name[:_WINDOW].lower())
    return any(get_close_matches(word, _SECRET_WORDS, n=1, cutoff=0.75) for word in words)


def _note(note: str, margin: str) -> str:
    indent = f"{margin}   "
    return fill(note, _WINDOW, initial_indent=f"{margin} = ", subsequent_indent=indent)


def _cell(char: str) -> str:
    if char == "\t":
        return " "
    return char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _hide(cells: list[str], first: int, end: int) -> None:
    first, end = max(first, 0), min(end, len(cells))
    if first < end:
        goes_on = first > 0 and cells[first - 1] in {_HIDDEN, ""}
        cells[first:end] = ["" if goes_on else _HIDDEN, *[""] * (end - first - 1)]


def _cut(cells: list[str], first: int, last: int) -> tuple[str, str]:
    """Return the stretch of a line around the place, and the carets that go under it."""
    start = max(0, first - _BEFORE) if len(cells) > _WINDOW else 0
    end = start + _WINDOW
    left, right = "…" if start else "", "…" if len(cells) > end else ""
    padding = _width(left) + _width("".join(cells[start:first]))
    carets = max(1, _width("".join(cells[first : min(last, end)])))
    return left + "".join(cells[start:end]) + right, " " * padding + "^" * carets


def _width(text: str) -> int:
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
