"""Change one table of a TOML text and leave every other sign of it as it was.

The text is cut by lines, which no TOML can fool for long: the result is read again, and where it
does not say exactly what was meant, the change is refused.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pynchy.cli.connect.json_text import BadText, Unwritable, reread

Path = Sequence[str]

_HEADER = re.compile(r"^[ \t]*\[")
_QUOTES = re.compile(r"\"\"\"|'''|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#[^\n]*|[\[\]{}]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_PLACE = re.compile(r"\(at line (\d+)")


@dataclass(frozen=True, slots=True)
class TomlText:
    """A text of TOML."""

    text: str

    @property
    def plain(self) -> dict[str, Any]:
        """What the text says. Raise BadText."""
        try:
            return tomllib.loads(self.text)
        except RecursionError as exc:
            raise BadText("it is nested too deep", "", 0) from exc
        except ValueError as exc:  # also of a number that is too long, which has no place
            found = _PLACE.search(str(exc))
            error = BadText(str(exc), "", 0)
            error.line = int(found.group(1)) if found else self.text.count("\n") + 1
            raise error from exc

    def find(self, path: Path) -> Any:  # noqa: ANN401 - TOML is anything
        """Return the value at the path, None where there is none. Raise BadText."""
        value: Any = self.plain
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def put(self, path: Path, table: Mapping[str, object]) -> TomlText:
        """Return the text with that table at the path. Raise BadText or Unwritable."""
        wanted = copy.deepcopy(self.plain)
        parent = wanted
        for key in path[:-1]:
            parent = parent.setdefault(key, {})
            if not isinstance(parent, dict):
                raise Unwritable(f"{'.'.join(path)} cannot be there")
        parent[path[-1]] = dict(table)
        written = write_table(path, table)
        spans = self._spans(path)
        if not spans:
            text = self.text.rstrip() + "\n\n" if self.text.strip() else self.text
            return reread(TomlText(text + written), wanted)
        start, end = spans[0]
        return reread(TomlText(self._without(spans[1:], (start, end, written))), wanted)

    def drop(self, path: Path) -> TomlText:
        """Return the text without the table at the path. Raise BadText or Unwritable."""
        if self.find(path) is None:
            return self
        wanted = copy.deepcopy(self.plain)
        parents = [wanted]
        for key in path[:-1]:
            parents.append(parents[-1][key])
        del parents[-1][path[-1]]
        for depth in range(len(path) - 1, 0, -1):
            if not parents[depth] and not self._has_header(path[:depth]):
                del parents[depth - 1][path[depth - 1]]
        return reread(TomlText(self._without(self._spans(path), None)), wanted)

    def _has_header(self, path: Path) -> bool:
        return any(keys == tuple(path) for _, keys in _headers(self.text))

    def _spans(self, path: Path) -> list[tuple[int, int]]:
        """Return where the table and the tables in it are, each up to its last line of content."""
        headers = list(_headers(self.text))
        found = []
        for number, (start, keys) in enumerate(headers):
            if keys[: len(path)] == tuple(path):
                rest = headers[number + 1 :]
                found.append((start, _content_end(self.text, start, rest[0][0] if rest else None)))
        return found

    def _without(self, spans: list[tuple[int, int]], replaced: tuple[int, int, str] | None) -> str:
        cuts = [(start, end, "") for start, end in spans] + ([replaced] if replaced else [])
        text = self.text
        for start, end, new in sorted(cuts, reverse=True):
            before = text[:start] if new else _without_blank_line(text[:start])
            text = before + new + text[end:]
        return text


def write_table(path: Path, table: Mapping[str, object]) -> str:
    """Return the table as TOML, each setting on its line."""
    lines = [f"{_key(key)} = {write_value(value)}" for key, value in table.items()]
    return "\n".join([f"[{'.'.join(map(_key, path))}]", *lines, ""])


def write_value(value: object) -> str:
    """Return the value as TOML has it inline."""
    match value:
        case Mapping():
            inner = ", ".join(f"{_key(str(k))} = {write_value(v)}" for k, v in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(write_value(item) for item in value)}]"
        case str():
            # JSON leaves DEL as it is, TOML does not.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _key(key: str) -> str:
    return key if _BARE.match(key) else write_value(key)


def _headers(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield where each line with a table's name begins, and the name; not in texts and lists."""
    for start, line in _top_lines(text):
        if _HEADER.match(line):
            yield start, _keys_of(line)


def _top_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that do not begin inside a list or a text of several lines."""
    at, depth, open_quotes = 0, 0, ""
    for line in _LINES.findall(text):
        if not depth and not open_quotes:
            yield at, line
        depth, open_quotes = _after(line, depth, open_quotes)
        at += len(line)


def _after(line: str, depth: int, quotes: str) -> tuple[int, str]:
    """Return how many brackets and which quotes are open at the line's end."""
    at = 0
    while at < len(line):
        if quotes:
            end = line.find(quotes, at)
            if end < 0:
                return depth, quotes
            at, quotes = end + len(quotes), ""
            continue
        found = _QUOTES.search(line, at)
        if found is None:
            break
        sign, at = found.group(), found.end()
        quotes = sign if sign in {'"""', "'''"} else ""
        depth += (sign in {"[", "{"}) - (sign in {"]", "}"})
    return depth, quotes


def _keys_of(line: str) -> tuple[str, ...]:
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while value:
        if isinstance(value, list):  # a table of a list: nobody's we look for
            return (*keys, "[]")
        [(key, value)] = value.items()
        keys.append(key)
    return tuple(keys)


def _content_end(text: str, start: int, following: int | None) -> int:
    """Return the end of the last line before the next table that is no comment and not blank."""
    end = len(text) if following is None else following
    lines = _LINES.findall(text[start:end])
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        end -= len(lines.pop())
    return end


def _without_blank_line(text: str) -> str:
    kept = text.rstrip()
    return text[: len(kept) + len(text[len(kept) :].split("\n", 1)[0]) + 1] if kept else ""
