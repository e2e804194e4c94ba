"""What a program tells its terminal, read off a copy of its output.

Of all that passes only this is looked at: titles (OSC 0 and 2, and the stack that programs keep
them on), notifications (OSC 9 and 777), and which modes are on. The output may be cut anywhere, and
may be anything: of a string that is too long nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_STRING = 16 * 1024

_MAX_PARAMETERS = 64
_MAX_NUMBER = 4
_MAX_TITLES = 10
_ESC = 0x1B
_STRING_ENDS = re.compile(rb"[\x07\x18\x1a\x1b]")
_BEL = 0x07
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
# What ConEmu's OSC 9 says by number (progress and the like) is no notification.
_NUMBERED = re.compile(r"\d{1,2}(;|\Z)")
_FINAL = range(0x40, 0x7F)
_IN_SEQUENCE = range(0x20, 0x40)
_MODE = re.compile(rb"\?([0-9;]{1,60})([hl])\Z")
_TITLE_STACK = re.compile(rb"(22|23)(?:;([0-9]{0,2})(?:;[0-9]*)?)?t\Z")
_ICON_ALONE = b"1"
_NOTIFY = "notify"
PASTE, ALTERNATE_SCREEN = 2004, 1049
# The cursor keys, the mouse in its forms, what is told of the focus, and the two above.
_MODES = frozenset({1, 25, 47, 1000, 1002, 1003, 1004, 1006, 1047, PASTE, ALTERNATE_SCREEN})


@dataclass(frozen=True, slots=True)
class Title:
    """The program has given its terminal a title."""

    text: str


@dataclass(frozen=True, slots=True)
class TerminalNotice:
    """The program wants a person to be notified."""

    title: str
    text: str = ""


class OutputReader:
    """Reads what a program writes to its terminal, in whatever pieces."""

    def __init__(self) -> None:
        self.modes: set[int] = set()
        self._string = bytearray()
        self._state: Callable[[bytes, int], int] = self._text
        self._titles: list[str] = []
        self._title = ""
        self._is_too_long = False
        self._found: list[Title | TerminalNotice] = []

    @property
    def pastes(self) -> bool:
        """True while the program wants to know where pasted text begins and ends."""
        return PASTE in self.modes

    def feed(self, data: bytes) -> Iterator[Title | TerminalNotice]:
        """Yield what is told in these bytes."""
        at = 0
        while at < len(data):
            at = self._state(data, at)
            if self._found:
                yield from self._found
                self._found.clear()

    def _text(self, data: bytes, at: int) -> int:
        at = data.find(_ESC, at)
        if at < 0:
            return len(data)
        self._state = self._escape
        return at + 1

    def _escape(self, data: bytes, at: int) -> int:
        """Read what follows an escape character."""
        match data[at]:
            case 0x5D:  # ]
                self._begin(self._osc)
            case 0x5B:  # [
                self._begin(self._sequence)
            case 0x50 | 0x58 | 0x5E | 0x5F | 0x6B:  # P X ^ _ k
                self._begin(self._other_string)
            case 0x63:  # c, which resets everything
                self.modes.clear()
                self._state = self._text
            case 0x1B:
                pass
            case _:
                self._state = self._text
        return at + 1

    def _begin(self, state: Callable[[bytes, int], int]) -> None:
        self._string.clear()
        self._is_too_long = False
        self._state = state

    def _osc(self, data: bytes, at: int) -> int:
        end = _STRING_ENDS.search(data, at)
        self._keep(data[at : end.start() if end else len(data)])
        if end is None:
            return len(data)
        if data[end.start()] == _ESC:
            self._state = self._osc_escape
        else:
            self._end_osc(is_whole=data[end.start()] == _BEL)
        return end.end()

    def _osc_escape(self, data: bytes, at: int) -> int:
        self._end_osc(is_whole=data[at] == ord("\\"))
        if data[at] == ord("\\"):
            return at + 1
        # The string is given up, and another sequence has begun.
        self._state = self._escape
        return at

    def _other_string(self, data: bytes, at: int) -> int:
        """Pass over a string that is none of ours."""
        end = _STRING_ENDS.search(data, at)
        if end is None:
            return len(data)
        if data[end.start()] == _ESC:
            self._state = self._other_escape
        elif data[end.start()] != _BEL:
            self._state = self._text
        return end.end()

    def _other_escape(self, data: bytes, at: int) -> int:
        # Within such a string a doubled escape character stands for itself.
        if data[at] == _ESC:
            self._state = self._other_string
            return at + 1
        if data[at] == ord("\\"):
            self._state = self._text
            return at + 1
        # The string is given up, and another sequence has begun.
        self._state = self._escape
        return at

    def _sequence(self, data: bytes, at: int) -> int:
        """Read a control sequence, a byte at a time: they are short."""
        byte = data[at]
        if byte == _ESC:
            self._state = self._escape
        elif byte in _FINAL:
            self._string.append(byte)
            self._state = self._text
            self._end_sequence(bytes(self._string))
        elif byte in _IN_SEQUENCE and len(self._string) < _MAX_PARAMETERS:
            self._string.append(byte)
        elif byte in _IN_SEQUENCE or byte in b"\x18\x1a":
            self._state = self._text
        return at + 1

    def _end_sequence(self, sequence: bytes) -> None:
        if found := _MODE.match(sequence):
            numbers = {int(n) for n in found[1].split(b";") if n and len(n) < _MAX_TITLES}
            ours = numbers & _MODES
            self.modes = self.modes | ours if found[2] == b"h" else self.modes - ours
        elif sequence == b"!p":
            self.modes -= {PASTE, 1}
        elif found := _TITLE_STACK.match(sequence):
            if found[2] == _ICON_ALONE:
                return
            if found[1] == b"22":
                self._titles = [*self._titles, self._title][-_MAX_TITLES:]
            elif self._titles:
                self._set_title(self._titles.pop())

    def _keep(self, data: bytes) -> None:
        if len(self._string) + len(data) > MAX_STRING:
            # So much that it is known what it was.
            del self._string[_MAX_NUMBER:]
            self._is_too_long = True
        if not self._is_too_long:
            self._string += data

    def _end_osc(self, *, is_whole: bool) -> None:
        self._state = self._text
        if not is_whole:
            return
        if self._is_too_long:
            if self._string.startswith((b"0;", b"2;")):
                self._set_title("")  # another one, whatever it says
            return
        text = _CONTROL.sub(b"", bytes(self._string)).decode("utf-8", "replace")
        self._string.clear()
        number, _, rest = text.partition(";")
        match number:
            case "0" | "2":
                self._set_title(rest)
            case "9" if rest and not _NUMBERED.match(rest):
                self._found.append(TerminalNotice(rest))
            case "777":
                kind, _, told = rest.partition(";")
                title, _, body = told.partition(";")
                if kind == _NOTIFY and (title or body):
                    self._found.append(TerminalNotice(title or body, body if title else ""))
            case _:
                pass  # colours, links, the clipboard

    def _set_title(self, title: str) -> None:
        self._title = title
        self._found.append(Title(title))
