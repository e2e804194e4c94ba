"""Change one value in a JSON text and leave every other sign of it as it was.

Comments and trailing commas are read where allowed. An edited text is read again before anybody
writes it: it says what was meant, or it is refused.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

_BLANK = re.compile(r"[ \t\r\n]+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
_MAX_DEEP = 200

Path = Sequence[str]

# Atomic: a comment that was passed is never looked into for the comma.
_COMMA = re.compile(r"(?>\s|//[^\n]*|/\*.*?\*/)*+,", re.DOTALL)
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


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


class Unwritable(Exception):
    """The text says it in a way that is not ours to rewrite."""


class Readable(Protocol):
    """A text that can be read."""

    @property
    def plain(self) -> Any:  # noqa: ANN401 - JSON and TOML are anything
        """What the text says. Raise BadText."""


T = TypeVar("T", bound=Readable)


def reread(new: T, wanted: object) -> T:
    """Return the new text. Raise Unwritable if it does not say what is wanted."""
    try:
        said = new.plain
    except BadText:
        said = None
    if said != wanted:
        raise Unwritable("it is written there in a way that is not rewritten")
    return new


@dataclass(frozen=True, slots=True)
class JsonText:
    """A text of JSON; `comments`: the program that reads it takes them."""

    text: str
    comments: bool = False

    @property
    def plain(self) -> Any:  # noqa: ANN401 - JSON is anything
        """What the text says; an empty one says an empty object. Raise BadText."""
        return self._root().plain

    def find(self, path: Path) -> Any:  # noqa: ANN401 - JSON is anything
        """Return the value at the path, None where there is none. Raise BadText."""
        value: Any = self.plain
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def put(self, path: Path, value: object) -> JsonText:
        """Return the text with that value at the path.

        Raise BadText where none can be there, Unwritable where the text cannot be edited.
        """
        text, root = self._with_root()
        parent, missing = _walk(text, root, path)
        wanted = copy.deepcopy(root.plain)
        _holder(wanted, path)[path[-1]] = value
        if not missing:
            old, new = parent.members[path[-1]], self._written(text, value, len(path))
            return self._of(_paste(text, old.start, old.end, new), wanted)
        for key in reversed(missing[1:]):
            value = {key: value}
        depth = len(path) - len(missing) + 1
        member = f"{json.dumps(missing[0], ensure_ascii=False)}: "
        written = self._written(text, value, depth)
        return self._of(_append(text, parent, member + written, _indent(text) * depth), wanted)

    def drop(self, path: Path) -> JsonText:
        """Return the text without the value, and without what held nothing else.

        Raise BadText or Unwritable.
        """
        if self.find(path) is None:
            return self
        text, root = self._with_root()
        parent, _ = _walk(text, root, path)
        key = path[-1]
        wanted = copy.deepcopy(root.plain)
        del _holder(wanted, path)[key]
        without = self._of(_cut(text, parent, parent.keys[key], parent.members[key].end), wanted)
        if len(path) > 1 and len(parent.members) == 1 and _is_bare(without, path[:-1]):
            return without.drop(path[:-1])
        return without

    def add(self, path: Path, item: object) -> JsonText:
        """Return the text with that item in the list at the path. Raise BadText or Unwritable."""
        found = self.find(path)
        if found is None:
            return self.put(path, [item])
        if not isinstance(found, list):
            raise BadText(f"{'.'.join(path)} is no list", self.text, 0)
        if item in found:
            return self
        root = self._root()
        wanted = copy.deepcopy(root.plain)
        _holder(wanted, path)[path[-1]].append(item)
        indent = _indent(self.text) * (len(path) + 1)
        return self._of(_append(self.text, _at(root, path), json.dumps(item), indent), wanted)

    def take(self, path: Path, item: object) -> JsonText:
        """Return the text without that item in the list. Raise BadText or Unwritable."""
        found = self.find(path)
        if not isinstance(found, list) or item not in found:
            return self
        if found == [item]:
            return self.drop(path)
        root = self._root()
        wanted = copy.deepcopy(root.plain)
        _holder(wanted, path)[path[-1]].remove(item)
        items = _at(root, path)
        old = items.items[found.index(item)]
        return self._of(_cut(self.text, items, old.start, old.end), wanted)

    def _of(self, text: str, wanted: object) -> JsonText:
        return reread(JsonText(text, self.comments), wanted)

    def _root(self) -> Value:
        return self._with_root()[1]

    def _with_root(self) -> tuple[str, Value]:
        text = self.text if self.text.strip() else "{}\n"
        root = read(text, comments=self.comments)
        if not isinstance(root.plain, dict):
            raise BadText("an object was expected", text, root.start)
        return text, root

    def _written(self, text: str, value: object, depth: int) -> str:
        unit = _indent(text)
        lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
        return f"\n{unit * depth}".join(lines)


def _walk(text: str, root: Value, path: Path) -> tuple[Value, Sequence[str]]:
    """Return the innermost object of the path that is there, and the keys that are missing."""
    parent = root
    for number, key in enumerate(path):
        if not isinstance(parent.plain, dict):
            raise BadText(f"{'.'.join(path[:number])} is no object", text, parent.start)
        if key not in parent.members:
            return parent, path[number:]
        if number < len(path) - 1:
            parent = parent.members[key]
    return parent, ()


def _at(root: Value, path: Path) -> Value:
    for key in path:
        root = root.members[key]
    return root


def _holder(plain: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the object that holds, or is to hold, the value at the path."""
    for key in path[:-1]:
        plain = plain.setdefault(key, {})
    return plain


def _is_bare(json_text: JsonText, path: Path) -> bool:
    """Say whether there is nothing at all in the object, no comment either."""
    value = _at(read(json_text.text, comments=json_text.comments), path)
    return not json_text.text[value.start + 1 : value.end - 1].strip()


def _indent(text: str) -> str:
    found = _INDENT.search(text)
    return found.group(1) if found else "  "


def _paste(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _append(text: str, parent: Value, new: str, indent: str) -> str:
    """Put a member or an item after the last one, on a line of its own unless all is on one."""
    inner = list(parent.members.values()) or parent.items
    body_end = len(text[: parent.end - 1].rstrip())
    if not inner:
        outer = indent.removesuffix(_indent(text))
        return _paste(text, body_end, parent.end - 1, f"\n{indent}{new}\n{outer}")
    gap = f"\n{indent}" if "\n" in text[parent.start : parent.end] else " "
    last = inner[-1].end
    if _comma_after(text, last):  # then ours has one too
        return _paste(text, body_end, body_end, f"{gap}{new},")
    # Right behind the last value, so that a comment beside it stays beside it.
    return f"{text[:last]},{text[last:body_end]}{gap}{new}{text[body_end:]}"


def _cut(text: str, parent: Value, start: int, end: int) -> str:
    """Take a member or an item out, with its comma and its line."""
    inner = list(parent.members.values()) or parent.items
    after = _comma_after(text, end)
    if after is None and len(inner) > 1:
        # It is the last one: the comma before it goes instead.
        comma = _comma_after(text, inner[-2].end)
        if comma is not None:
            text, start, end = _paste(text, comma - 1, comma, ""), start - 1, end - 1
    return _without_line(text, start, after or end)


def _without_line(text: str, start: int, end: int) -> str:
    """Cut, and the blank before it as well where the line is empty then."""
    rest = text[end:]
    if rest.lstrip(" \t\r")[:1] in {"\n", ""}:
        return text[:start].rstrip() + rest
    if rest.lstrip(" \t")[:1] in {"}", "]"}:
        return text[:start].rstrip(" \t") + rest
    return text[:start] + rest.lstrip(" \t")


def _comma_after(text: str, at: int) -> int | None:
    """Return the place behind the comma that follows, past comments; None if none does."""
    found = _COMMA.match(text, at)
    return found.end() if found else None
