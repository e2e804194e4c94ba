"""phux's words for "an agent waits for a person": frames on the wire, and a terminal's title.

    frame       u32 length | u8 type | body           the length counts type and body
    body        fields: varint id | 0x04 | varint length | value
    EVENT       1 terminal (none: all of the server), 2 event: u8 tag | u32 length | body
    Asked       1 id, 2 question, 3 suggestion (any number), 4 elapsed seconds (u64)
    title       phux-ask[ID]:QUESTION?s=A|B           without ID, without suggestions too

Numbers are big-endian. What a reader does not know is skipped by its length, so that newer
writers break no older reader. Whatever else is wrong raises BadFrame, and nothing is kept of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pynchy.errors import PynchyError

EVENT = 0xB3
COMMAND = 0x31
REPORT_ASKED = 0x12
ASKED = 0x09
MAX_FRAME = 16 * 2**20

_MARK = "phux-ask"
_SUGGESTIONS = "?s="
_ELLIPSIS = "…"
_WIRE_TYPE = 0x04
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")
_EVENT_HEAD = struct.Struct(">BI")
_HEAD_BYTES = 5
_LOCAL, _SATELLITE = 0, 1
# Of an unsigned number of 64 bits, seven to a byte.
_VARINT_BYTES = 10
_VARINT_MAX = 2**64 - 1
_SEVEN_BITS = 0x7F
_MORE = 0x80
# More than anybody can choose from; a frame has room for millions.
_MAX_READ = 1_000
_MAX_FIELDS = 10_000
_MAX_QUESTION, _MAX_ID, _MAX_SUGGESTION, _MAX_SUGGESTIONS = 4_096, 128, 512, 16

Terminal = int | tuple[str, int] | None


class BadFrame(PynchyError, ValueError):
    """These bytes are none that phux would write."""


class CannotEncode(PynchyError, ValueError):
    """phux takes no such thing: it says what is too much, or missing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent waits for a person."""

    id: str
    question: str
    suggestions: tuple[str, ...] = ()
    elapsed_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event of a kind that is not known here."""

    tag: int


AgentEvent = Asked | Unknown


def encode_event(asked: Asked, terminal: Terminal = None) -> bytes:
    """Return the frame that tells of it: of a terminal, a satellite's (host, id), or of none.

    Raise CannotEncode.
    """
    body = _asked_body(asked)
    event = _field(2, _EVENT_HEAD.pack(ASKED, len(body)) + body)
    place = b"" if terminal is None else _field(1, _terminal(terminal))
    return _frame(EVENT, place + event)


def encode_report(request_id: int, asked: Asked, terminal: int | tuple[str, int]) -> bytes:
    """Return the command that tells phux's server of it. Raise CannotEncode."""
    _check_report(asked)
    command = bytes([REPORT_ASKED]) + _terminal(terminal) + _asked_body(asked)
    return _frame(COMMAND, _field(1, _packed(_U32, request_id)) + _field(2, command))


def shorten(asked: Asked) -> Asked:
    """Return as much of it as phux takes: what is too long ends in an ellipsis."""
    return Asked(
        _cut(asked.id, _MAX_ID),
        _cut(asked.question, _MAX_QUESTION),
        tuple(_cut(one, _MAX_SUGGESTION) for one in asked.suggestions[:_MAX_SUGGESTIONS]),
        asked.elapsed_seconds,
    )


def decode_events(data: bytes) -> list[tuple[Terminal, AgentEvent]]:
    """Return the events of whole frames; other frames are passed over. Raise BadFrame."""
    decoder = EventDecoder()
    found = list(decoder.feed(data))
    decoder.end()
    return found


class EventDecoder:
    """Reads events from frames that come in pieces. At most one frame of an event is kept.

    A frame whose content is wrong costs itself alone: `feed` can be called again, also without
    further bytes, and goes on behind it with what came in the same piece. After a length that
    cannot be, there is no telling where the next frame begins.
    """

    def __init__(self) -> None:
        self._head = bytearray()
        self._body = bytearray()
        self._missing = 0
        self._is_lost = False
        self._unread = memoryview(b"")

    def feed(self, data: bytes = b"") -> Iterator[tuple[Terminal, AgentEvent]]:
        """Yield what is whole with these bytes. Raise BadFrame."""
        # Joined only where there are both: a piece of many bad frames is not copied for each.
        both = self._unread and data
        self._unread = memoryview(bytes(self._unread) + data if both else data or self._unread)
        while self._unread or self._is_whole:
            if self._is_lost:
                self._unread = memoryview(b"")
                raise BadFrame("the length of an earlier frame could not be: nothing can be read")
            self._unread = self._take(self._unread)
            if self._is_whole:
                is_event, body = self._head[4] == EVENT, bytes(self._body)
                self._head.clear()
                self._body.clear()
                if is_event:
                    yield _event(body)

    def end(self) -> None:
        """Raise BadFrame if a frame was begun and not ended."""
        if self._head or self._unread:
            raise BadFrame("the last frame is cut short")

    @property
    def _is_whole(self) -> bool:
        return len(self._head) == _HEAD_BYTES and not self._missing

    def _take(self, data: memoryview) -> memoryview:
        """Take what belongs to the frame that is being read. Return the rest."""
        if len(self._head) < _HEAD_BYTES:
            wanted = _HEAD_BYTES - len(self._head)
            self._head += data[:wanted]
            if len(self._head) == _HEAD_BYTES:
                self._missing = self._body_length()
            return data[wanted:]
        taken = data[: self._missing]
        self._missing -= len(taken)
        if self._head[4] == EVENT:
            self._body += taken
        return data[len(taken) :]

    def _body_length(self) -> int:
        (length,) = _U32.unpack_from(self._head)
        if not 0 < length <= MAX_FRAME:
            self._is_lost = True
            raise BadFrame(f"a frame of {length} bytes cannot be")
        return int(length) - 1


def parse_title(text: str) -> Asked | None:
    """Return what a terminal's title asks; None for a title that asks nothing."""
    if not text.startswith(_MARK):
        return None
    rest, name = text.removeprefix(_MARK), ""
    if rest.startswith("["):
        name, closed, rest = rest[1:].partition("]")
        if not closed:
            return None
    question, _, suggestions = rest[1:].partition(_SUGGESTIONS)
    if not rest.startswith(":") or not question.strip():
        return None
    return Asked(name, question, tuple(one for one in suggestions.split("|") if one))


def format_title(asked: Asked) -> str | None:
    """Return the title that asks so; None where a title cannot carry it. It carries no time."""
    name = f"[{asked.id}]" if asked.id else ""
    suggestions = _SUGGESTIONS + "|".join(asked.suggestions) if asked.suggestions else ""
    title = f"{_MARK}{name}:{asked.question}{suggestions}"
    # What ends a title early, what cannot be written, and what would be read otherwise than meant.
    if _CONTROL.search(title) or parse_title(title) != replace(asked, elapsed_seconds=None):
        return None
    return title


def _check_report(asked: Asked) -> None:
    sizes = [len(_bytes(one)) for one in asked.suggestions]
    if not asked.question.strip():
        raise CannotEncode("a question is needed")
    if len(_bytes(asked.question)) > _MAX_QUESTION or len(_bytes(asked.id)) > _MAX_ID:
        raise CannotEncode(f"at most {_MAX_QUESTION} bytes of question and {_MAX_ID} of id")
    if len(sizes) > _MAX_SUGGESTIONS or max(sizes, default=0) > _MAX_SUGGESTION:
        raise CannotEncode(f"at most {_MAX_SUGGESTIONS} suggestions of {_MAX_SUGGESTION} bytes")


def _cut(text: str, most: int) -> str:
    """Return at most so many bytes of the text, in whole characters."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    return data[: most - len(_ELLIPSIS.encode())].decode("utf-8", "ignore") + _ELLIPSIS


def _asked_body(asked: Asked) -> bytes:
    elapsed = asked.elapsed_seconds
    return b"".join(
        [
            _field(1, _bytes(asked.id)),
            _field(2, _bytes(asked.question)),
            *(_field(3, _bytes(one)) for one in asked.suggestions),
            b"" if elapsed is None else _field(4, _packed(_U64, elapsed)),
        ]
    )


def _terminal(terminal: int | tuple[str, int]) -> bytes:
    if isinstance(terminal, int):
        return bytes([_LOCAL]) + _packed(_U32, terminal)
    host, number = _bytes(terminal[0]), terminal[1]
    return bytes([_SATELLITE]) + _U32.pack(len(host)) + host + _packed(_U32, number)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise CannotEncode("half a character cannot be sent") from exc


def _packed(kind: struct.Struct, number: int) -> bytes:
    try:
        return kind.pack(number)
    except struct.error as exc:
        raise CannotEncode(f"{number} is no number of {8 * kind.size} bits") from exc


def _field(number: int, value: bytes) -> bytes:
    return _varint(number) + bytes([_WIRE_TYPE]) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > _SEVEN_BITS:
        written.append(number & _SEVEN_BITS | _MORE)
        number >>= 7
    written.append(number)
    return bytes(written)


def _frame(kind: int, body: bytes) -> bytes:
    length = len(body) + 1
    if length > MAX_FRAME:
        raise CannotEncode(f"a frame has at most {MAX_FRAME} bytes")
    return _U32.pack(length) + bytes([kind]) + body


def _event(body: bytes) -> tuple[Terminal, AgentEvent]:
    """Read the body of an EVENT frame."""
    terminal: Terminal = None
    event = memoryview(b"")
    for number, value in _fields(memoryview(body)):
        match number:
            case 1:
                terminal = _read_terminal(value)
            case 2:
                event = value
            case _:
                pass  # of a newer phux
    return terminal, _read_event(event)


def _read_event(event: memoryview) -> AgentEvent:
    if len(event) < _EVENT_HEAD.size:
        raise BadFrame("an event that is cut short, or none at all")
    tag, length = _EVENT_HEAD.unpack_from(event)
    told = event[_EVENT_HEAD.size :]
    if length > len(told):
        raise BadFrame("an event that is cut short")
    return _read_asked(told[:length]) if tag == ASKED else Unknown(tag)


def _read_asked(body: memoryview) -> Asked:
    texts = {1: "", 2: ""}
    suggestions: list[str] = []
    elapsed = None
    for number, value in _fields(body):
        match number:
            case 1 | 2:
                texts[number] = _text(value)
            case 3 if len(suggestions) == _MAX_READ:
                raise BadFrame(f"more than {_MAX_READ} suggestions")
            case 3:
                suggestions.append(_text(value))
            case 4:
                elapsed = _number(_U64, value)
            case _:
                pass  # of a newer phux
    return Asked(texts[1], texts[2], tuple(suggestions), elapsed)


def _read_terminal(value: memoryview) -> int | tuple[str, int]:
    kind, rest = bytes(value[:1]), value[1:]
    if kind == bytes([_LOCAL]):
        return _number(_U32, rest)
    if kind != bytes([_SATELLITE]) or len(rest) < _U32.size:
        raise BadFrame("a terminal of a kind that is not known")
    (length,) = _U32.unpack_from(rest)
    host, number = rest[_U32.size : _U32.size + length], rest[_U32.size + length :]
    return _text(host), _number(_U32, number)


def _number(kind: struct.Struct, value: memoryview) -> int:
    if len(value) != kind.size:
        raise BadFrame(f"a number of {len(value)} bytes")
    (number,) = kind.unpack(value)
    return int(number)


def _text(value: memoryview) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as exc:
        raise BadFrame("a text that is not UTF-8") from exc


def _fields(body: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and value of each field."""
    for _ in range(_MAX_FIELDS):
        if not body:
            return
        number, body = _read_varint(body)
        if not body or body[0] != _WIRE_TYPE:
            raise BadFrame("a field of a type that is not known")
        length, body = _read_varint(body[1:])
        if length > len(body):
            raise BadFrame("a field that is cut short")
        yield number, body[:length]
        body = body[length:]
    if body:
        raise BadFrame(f"more than {_MAX_FIELDS} fields")


def _read_varint(data: memoryview) -> tuple[int, memoryview]:
    number = 0
    for at, byte in enumerate(data[:_VARINT_BYTES]):
        number |= (byte & _SEVEN_BITS) << (7 * at)
        if not byte & _MORE:
            if number > _VARINT_MAX:
                break
            return number, data[at + 1 :]
    raise BadFrame("a number that is too long, or cut short")
