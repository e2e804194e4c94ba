"""Read JSON with the place of every value in the text; comments and trailing commas where allowed.

Nothing is thrown away: whoever edits cuts and pastes in the text itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
_MAX_DEEP = 200


class BadText(Exception):
    """The text is not what its name says."""

    def __init__(self, reason: str, text: str, at: int) -> None:
        self.line = text.count("\n", 0, at) + 1
        super().__init__(reason)


@dataclass(slots=True)
class Value:
    """One value, from `start` up to `end` in the text.

    Of an object `members` are the values by their keys, of a list the items in their order; `keys`
    says where the key of each member begins.
    """

    start: int
    end: int = 0
    plain: Any = None
    members: dict[str, Value] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    items: list[Value] = field(default_factory=list)


def read(text: str, *, comments: bool) -> Value:
    """Return the one value of the text. Raise BadText."""
    reader = _Reader(text, comments=comments)
    value = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise BadText("there is more after the end of the value", text, reader.at)
    return value


class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.at = 0
        self._text = text
        self._comments = comments

    def value(self, depth: int) -> Value:
        self.skip()
        if depth > _MAX_DEEP:
            raise self._wrong("it is nested too deep")
        value = Value(self.at)
        match self._text[self.at : self.at + 1]:
            case "{":
                self._object(value, depth)
            case "[":
                self._list(value, depth)
            case '"':
                value.plain = self._string()
            case _:
                value.plain = self._word()
        value.end = self.at
        return value

    def skip(self) -> None:
        """Go on to what is neither blank nor a comment."""
        while found := _BLANK.match(self._text, self.at) or self._comment():
            self.at = found.end()

    def _comment(self) -> re.Match[str] | None:
        return _COMMENT.match(self._text, self.at) if self._comments else None

    def _object(self, value: Value, depth: int) -> None:
        value.plain = {}
        self.at += 1
        while not self._closes("}", first=not value.plain):
            key_at = self.at
            if self._text[key_at : key_at + 1] != '"':
                raise self._wrong("a key in quotes was expected")
            key = self._string()
            self.skip()
            self._take(":")
            member = self.value(depth + 1)
            if key in value.members:
                raise self._wrong(f"the key {key!r} is there twice")
            value.members[key], value.keys[key] = member, key_at
            value.plain[key] = member.plain

    def _list(self, value: Value, depth: int) -> None:
        value.plain = []
        self.at += 1
        while not self._closes("]", first=not value.plain):
            value.items.append(self.value(depth + 1))
            value.plain.append(value.items[-1].plain)

    def _closes(self, bracket: str, *, first: bool) -> bool:
        """Pass the comma before the next member; True, and past the bracket, if there is none."""
        self.skip()
        if not first and self._text.startswith(",", self.at):
            self.at += 1
            self.skip()
            if self._text.startswith(bracket, self.at) and not self._comments:
                raise self._wrong(f"a comma right before {bracket}")
        elif not first and not self._text.startswith(bracket, self.at):
            raise self._wrong(f"a comma or {bracket} was expected")
        if not self._text.startswith(bracket, self.at):
            return False
        self.at += 1
        return True

    def _take(self, sign: str) -> None:
        if not self._text.startswith(sign, self.at):
            raise self._wrong(f"{sign} was expected")
        self.at += len(sign)

    def _string(self) -> str:
        found = _STRING.match(self._text, self.at)
        try:
            text = json.loads(found.group()) if found else None
        except ValueError:
            text = None
        if found is None or not isinstance(text, str):
            raise self._wrong("a text that does not end, or with a sign that may not be in it")
        self.at = found.end()
        return text

    def _word(self) -> object:
        found = _WORD.match(self._text, self.at)
        try:
            word: object = json.loads(found.group()) if found else None
        except ValueError:
            found = None
        if found is None:
            raise self._wrong("a value was expected")
        self.at = found.end()
        return word

    def _wrong(self, reason: str) -> BadText:
        return BadText(reason, self._text, self.at)
