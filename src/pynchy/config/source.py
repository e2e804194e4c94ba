"""A settings file as text: where each key and value stands, and how to show what is wrong there."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from textwrap import fill
from unicodedata import combining, east_asian_width

import tomli

from pynchy.config.errors import Loc, SettingProblem

# Far deeper than any setting. Each key keeps its whole path, so the deepest cost the most.
_MAX_DEPTH = 32

_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*[^,\]}#\s]")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?!"")(?:\\.|[^"\\\n])*"'
    r"|'(?!'')[^'\n]*'",
    re.DOTALL,
)

# An agent's environment is where its keys are.
_SECRET = re.compile(
    r"token|secret|passw|credential|(?:api|private|access)[_ -]?key|\benv", re.IGNORECASE
)
_SECRET_WORDS = ("token", "tokens", "secret", "secrets", "password", "credential", "credentials")
# A secret's name and what follows it in a line that is not TOML: "bot token: x".
_LOOSE_SECRET = re.compile(rf"(?:{_SECRET.pattern})[\w.-]*[\"']?\s*[=:]?\s*", re.IGNORECASE)
_HIDDEN = "***"
_BEFORE, _WINDOW = 40, 100


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text, by offsets."""

    start: int
    end: int


@dataclass(slots=True)
class Places:
    """Where keys and values stand, by their path from the top."""

    keys: dict[Loc, Span] = field(default_factory=dict)
    values: dict[Loc, Span] = field(default_factory=dict)
    # Values without an end, from the outside in; each is taken to reach to the end of the text.
    unfinished: list[Loc] = field(default_factory=list)

    def key(self, loc: Loc) -> Span:
        """Return where the key stands, or else the nearest table or value around it."""
        return self.keys.get(loc) or self.values.get(loc) or self._around(loc)

    def value(self, loc: Loc) -> Span:
        """Return where the value stands, or else the nearest thing around it."""
        return self.values.get(loc) or self.keys.get(loc) or self._around(loc)

    def _around(self, loc: Loc) -> Span:
        return self.key(loc[:-1]) if loc else Span(0, 0)


def find_places(text: str) -> Places:
    """Return the places of all keys and values that could be found."""
    scanner = _Scanner(text)
    with suppress(_Lost, RecursionError):  # What was found until then still helps.
        scanner.document()
    return scanner.places


class _Lost(Exception):
    """The scanner cannot make sense of what follows."""


class _Scanner:
    """Walks the text once from start to end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places = Places()
        self.arrays: dict[Loc, int] = {}

    def document(self) -> None:
        table: Loc = ()
        self._blank()
        while self.at < len(self.text):
            if self._take("[["):
                table = self._array_header()
            elif self._take("["):
                table = self._key(())
                self._expect("]")
            else:
                self._pair(table)
            self._blank()

    def _array_header(self) -> Loc:
        array = self._key(())
        if isinstance(array[-1], int):
            array = array[:-1]
        self._expect("]]")
        self.arrays[array] = self.arrays.get(array, -1) + 1
        element = (*array, self.arrays[array])
        self.places.keys[element] = self.places.keys[array]
        return element

    def _pair(self, table: Loc) -> None:
        loc = self._key(table)
        self._expect("=")
        self._blank()
        self._value(loc)

    def _key(self, table: Loc) -> Loc:
        loc = table
        while True:
            self._blank()
            start = self.at
            if len(loc) > _MAX_DEPTH:
                raise _Lost
            loc = (*loc, self._key_part())
            self.places.keys.setdefault(loc, Span(start, self.at))
            if loc in self.arrays:
                loc = (*loc, self.arrays[loc])
            self._blank()
            if not self._take("."):
                return loc

    def _key_part(self) -> str:
        if self.text.startswith(('"', "'"), self.at):
            return _unquoted(self._match(_STRING))
        return self._match(_BARE)

    def _value(self, loc: Loc) -> None:
        start = self.at
        self.places.values[loc] = Span(start, len(self.text))
        self.places.unfinished.append(loc)
        if self._take("["):
            self._array(loc)
        elif self._take("{"):
            self._inline_table(loc)
        elif self.text.startswith(('"', "'"), self.at):
            self._match(_STRING)
        else:
            self._match(_SCALAR)
        self.places.values[loc] = Span(start, self.at)
        self.places.unfinished.pop()

    def _array(self, loc: Loc) -> None:
        index = 0
        self._blank()
        while not self._take("]"):
            self._value((*loc, index))
            index += 1
            self._separator()

    def _inline_table(self, loc: Loc) -> None:
        self._blank()
        while not self._take("}"):
            self._pair(loc)
            self._separator()

    def _separator(self) -> None:
        self._blank()
        self._take(",")
        self._blank()

    def _blank(self) -> None:
        self._match(_BLANK)

    def _take(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _Lost

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _Lost
        self.at = match.end()
        return match.group()


def _unquoted(written: str) -> str:
    try:
        return str(tomli.loads(f"key = {written}")["key"])
    except tomli.TOMLDecodeError:
        return written[1:-1]


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
