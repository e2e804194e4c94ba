"""Lines in and out over file descriptors, without ever blocking the event loop.

Each direction has a daemon thread of its own: a client that does not read stops the writer's
thread and nothing else, and neither thread keeps the process from ending.
"""

import asyncio
import json
import os
import queue
import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

CallId = str | int
Fields = Mapping[str, object]

MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_QUEUED_EXTRAS = 32

_CHUNK_BYTES = 64 * 1024


class RpcError(Exception):
    """A message that is answered with an error."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        data: Fields | None = None,
        call_id: CallId | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.call_id = call_id


@dataclass(frozen=True, slots=True)
class Call:
    """A request: it wants exactly one response."""

    id: CallId
    method: str
    params: Fields

    @property
    def meta(self) -> Fields:
        """The request's `_meta`, empty where there is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification: it wants no response, whatever happens."""

    method: str
    params: Fields


@dataclass(frozen=True, slots=True)
class Response:
    """What the client says to a call of ours; `result` is empty where it refused."""

    id: CallId | None
    result: Fields


def parse(line: bytes) -> Call | Notice | Response:
    """Return the message. Raise RpcError."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise RpcError(PARSE_ERROR, f"not JSON: {exc}") from exc
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "batches are not supported: send one message per line")
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "a message is a JSON object")
    if "method" not in message and ("result" in message or "error" in message):
        result = message.get("result")
        return Response(as_call_id(message.get("id")), result if isinstance(result, dict) else {})
    return _parse_object(message)


def as_call_id(value: object) -> CallId | None:
    """Return the value if a call may be named so; to Python True is a number, to JSON it is not."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _parse_object(message: dict[str, object]) -> Call | Notice:
    call_id, method = as_call_id(message.get("id")), message.get("method")
    params = {} if message.get("params") is None else message["params"]
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        problem = 'a message has "jsonrpc": "2.0" and a method'
        raise RpcError(INVALID_REQUEST, problem, call_id=call_id)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", call_id=call_id)
    if "id" not in message:
        return Notice(method, params)
    if call_id is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer")
    return Call(call_id, method, params)


def encode_call(call_id: CallId, method: str, params: Fields) -> bytes:
    """Return the line of a call that the client is to answer."""
    return _encode({"id": call_id, "method": method, "params": params})


def encode_result(call_id: CallId, result: Fields) -> bytes:
    """Return the line that answers a call."""
    return _encode({"id": call_id, "result": result})


def encode_error(error: RpcError) -> bytes:
    """Return the line that refuses a call, or a line in which no call could be read."""
    fields: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        fields["data"] = error.data
    return _encode({"id": error.call_id, "error": fields})


def encode_notice(method: str, params: Fields) -> bytes:
    """Return the line of a notification."""
    return _encode({"method": method, "params": params})


def _encode(fields: Fields) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode("ascii") + b"\n"


class Framer:
    """Cuts bytes into lines. A line past the limit comes out as None, once."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that these bytes complete, without their line breaks."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            yield from self._flush()
        self._add(rest)

    def finish(self) -> Iterator[bytes | None]:
        """Yield what is left when the input ends."""
        yield from self._flush()

    def _add(self, piece: bytes) -> None:
        self._skipping = self._skipping or len(self._buffer) + len(piece) > self._limit
        if self._skipping:
            self._buffer.clear()
        else:
            self._buffer += piece

    def _flush(self) -> Iterator[bytes | None]:
        line, skipped = bytes(self._buffer).strip(), self._skipping
        self._buffer.clear()
        self._skipping = False
        if skipped:
            yield None
        elif line:
            yield line


def start_reader(
    handle: int, on_line: Callable[[bytes | None], None], on_end: Callable[[], None]
) -> None:
    """Call `on_line` in this loop for each line, then `on_end`. None stands for one too long."""
    loop = asyncio.get_running_loop()

    def cross_threads(function: Callable[..., None], *args: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(function, *args)

    def run() -> None:
        framer = Framer()
        while data := _read(handle):
            for line in framer.feed(data):
                cross_threads(on_line, line)
        for line in framer.finish():
            cross_threads(on_line, line)
        cross_threads(on_end)

    threading.Thread(target=run, name="stdin", daemon=True).start()


_Line = tuple[bytes, Callable[[], None] | None]


class Writer:
    """Writes lines in order, in a thread. `on_broken` is called in this loop if nobody can read."""

    def __init__(self, handle: int, on_broken: Callable[[], None]) -> None:
        self._handle = handle
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Send a line, however long the client takes; `then` is called in our thread after it."""
        self._lines.put((line, then))

    def write_extra(self, line: bytes) -> None:
        """Send a line that may be dropped when the client does not keep up."""
        if self._lines.qsize() < MAX_QUEUED_EXTRAS:
            self._lines.put((line, None))

    def close(self, seconds: float) -> None:
        """Give the client that long to read what is left."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (queued := self._lines.get()) is not None:
            line, then = queued
            try:
                _write(self._handle, line)
                if then is not None:
                    then()
            except OSError:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._on_broken)
                return


def is_read(handle: int) -> bool:
    """Say whether anybody can still read what is written there."""
    poll = select.poll()
    poll.register(handle, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _read(handle: int) -> bytes:
    while True:
        try:
            return os.read(handle, _CHUNK_BYTES)
        except BlockingIOError:  # a parent made our stdin non-blocking
            select.select([handle], [], [])
        except OSError:
            return b""


def _write(handle: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:
            select.select([], [handle], [])
