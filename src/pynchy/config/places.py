"""Find where in a TOML text each key and value stands.

The text has been parsed by tomli or is about to be refused by it, so this scanner checks nothing:
it walks as far as it understands and keeps what it found. It never raises.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field

import tomli

Loc = tuple[str | int, ...]

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
