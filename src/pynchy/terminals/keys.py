"""Whether the person in front of a terminal has begun a line, read off a copy of what they type.

What a terminal says by itself (where the cursor is, its colours, the mouse) comes the same way, and
is no typing.
"""

from __future__ import annotations

from collections.abc import Callable

_ENTER_OR_GIVEN_UP = frozenset(b"\r\n\x03\x04\x15")
_ERASES = frozenset(b"\x08\x7f")
_ESCAPE, _BELL = 0x1B, 0x07
_FINAL = range(0x40, 0x7F)
_VISIBLE = 0x20
_OLD_MOUSE_BYTES = 3
_MAX_SEQUENCE = 32
# Of a character in UTF-8, all bytes but the first.
_CONTINUES = range(0x80, 0xC0)


class KeyReader:
    """Counts what can be seen of the line that is being typed."""

    def __init__(self) -> None:
        self._length = 0
        self._state: Callable[[int], None] = self._key
        self._sequence = bytearray()
        self._is_paste = False
        self._left = 0

    @property
    def has_begun_line(self) -> bool:
        """True if something was typed and neither sent nor taken back."""
        return self._length > 0

    def feed(self, data: bytes) -> None:
        """Take what was typed."""
        for byte in data:
            self._state(byte)

    def _key(self, byte: int) -> None:
        if byte == _ESCAPE:
            self._state = self._escape
        elif byte in _ENTER_OR_GIVEN_UP and not self._is_paste:
            self._length = 0
        elif byte in _ERASES:
            self._length = max(0, self._length - 1)
        elif byte >= _VISIBLE and byte not in _CONTINUES:
            self._length += 1

    def _escape(self, byte: int) -> None:
        self._sequence.clear()
        match byte:
            case 0x5B | 0x4F:  # [ O
                self._state = self._control
            case 0x5D | 0x50 | 0x5F | 0x5E | 0x58:  # ] P _ ^ X
                self._state = self._string
            case 0x1B:
                pass
            case _:
                self._state = self._key

    def _control(self, byte: int) -> None:
        if len(self._sequence) < _MAX_SEQUENCE:
            self._sequence.append(byte)
        if byte in _FINAL:
            is_old_mouse = self._sequence == b"M"
            self._left = _OLD_MOUSE_BYTES
            if bytes(self._sequence) in {b"200~", b"201~"}:
                self._is_paste = self._sequence == b"200~"
            self._state = self._mouse if is_old_mouse else self._key

    def _mouse(self, _: int) -> None:
        self._left -= 1
        if not self._left:
            self._state = self._key

    def _string(self, byte: int) -> None:
        if byte == _BELL:
            self._state = self._key
        elif byte == _ESCAPE:
            self._state = self._string_end
        elif byte in _ENTER_OR_GIVEN_UP:
            # No terminal says that: somebody has pressed Alt with a letter, and then typed.
            self._state = self._key
            self._key(byte)

    def _string_end(self, byte: int) -> None:
        self._state = self._string_end if byte == _ESCAPE else self._key
