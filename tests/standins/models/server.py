"""The stand-in itself: an HTTP server on loopback, in threads of its own.

Each request that offers tools takes the next turn; one that offers none (a program makes up a
title, say) is answered with a word and takes nothing. A script that is over, a tool that is not
offered and a request that the API would refuse all get an error, never a made-up turn.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.standins.models.chat import Chat
from tests.standins.models.dialect import Dialect, Json, Request
from tests.standins.models.messages import Messages
from tests.standins.models.responses import Responses
from tests.standins.models.script import BreakOff, CallTool, Part, Refuse, Say, Turn

DIALECTS: Mapping[str, Dialect] = {
    "/v1/messages": Messages(),
    "/v1/responses": Responses(),
    "/v1/chat/completions": Chat(),
}

_BAD_REQUEST = 400
_OK = 200
_LAST = "last"
_TOLD_ID = re.compile(r"request_id (\w+)")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and how it was answered. `at` is a reading of the monotonic clock."""

    at: float
    path: str
    headers: Mapping[str, str]
    body: Json
    status: int
    problem: str = ""
    is_side: bool = False

    @property
    def text(self) -> str:
        """All that the program sent, for looking whether something is in it."""
        return json.dumps(self.body, ensure_ascii=False)


class ModelStandIn:
    """A model on loopback that follows a script and keeps what it was sent."""

    def __init__(self, script: Iterable[Turn] = ()) -> None:
        self._turns = list(script)
        self._exchanges: list[Exchange] = []
        self._changed = threading.Condition()
        self._server = _Server(self._respond)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The address for a base URL without a version, as Anthropic's clients want it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[Exchange]:
        """Every request that took a turn, in the order of arrival."""
        with self._changed:
            return [one for one in self._exchanges if one.status == _OK and not one.is_side]

    @property
    def refused(self) -> list[Exchange]:
        """Every request that got an error which the script did not ask for."""
        with self._changed:
            return [one for one in self._exchanges if one.problem]

    @property
    def exchanges(self) -> list[Exchange]:
        """Everything that was sent, side requests and scripted failures too."""
        with self._changed:
            return list(self._exchanges)

    def add(self, *turns: Turn) -> None:
        """Let the script go on."""
        with self._changed:
            self._turns += turns

    def wait_for(self, count: int, seconds: float) -> list[Exchange]:
        """Return the requests once there are so many. Raise TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, seconds):
                raise TimeoutError(f"{len(self.requests)} of {count} requests: {self.refused}")
            return self.requests

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End for good."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _respond(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, str]:
        """Return the status and the body, and remember all of it."""
        at, path = time.monotonic(), urlsplit(path).path
        dialect = DIALECTS.get(path)
        if dialect is None:
            return 404, "{}"
        try:
            body = json.loads(raw)
            problem = dialect.problem(Request(headers, body))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            body, problem = {}, f"not a request of this API: {exc!r}"
        seen = Exchange(at, path, dict(headers), body, _BAD_REQUEST, problem or "")
        with self._changed:
            seen, reply = self._reply(dialect, seen)
            self._exchanges.append(seen)
            self._changed.notify_all()
        return seen.status, reply

    def _reply(self, dialect: Dialect, seen: Exchange) -> tuple[Exchange, str]:
        if seen.problem:
            return seen, json.dumps(dialect.refusal(_BAD_REQUEST, seen.problem))
        names = dialect.tools(seen.body)
        number = len(self._exchanges) + 1
        if not names:
            reply = "".join(dialect.answer([Say("ok")], names, number))
            return replace(seen, status=_OK, is_side=True), reply
        turn: Turn = self._turns.pop(0) if self._turns else ()
        if isinstance(turn, Refuse):
            reply = json.dumps(dialect.refusal(turn.status, turn.message))
            return replace(seen, status=turn.status), reply
        if isinstance(turn, BreakOff):
            return replace(seen, status=_OK), ""
        if problem := _impossible(turn, names):
            return replace(seen, problem=problem), json.dumps(
                dialect.refusal(_BAD_REQUEST, problem)
            )
        parts = [_filled_in(part, seen) for part in turn]
        return replace(seen, status=_OK), "".join(dialect.answer(parts, names, number))


def _impossible(turn: Sequence[Part], names: Mapping[str, str]) -> str:
    if not turn:
        return "the script is over"
    called = [part.tool for part in turn if isinstance(part, CallTool)]
    missing = [tool for tool in called if tool not in names]
    return f"the program does not offer {', '.join(missing)}" if missing else ""


def _filled_in(part: Part, seen: Exchange) -> Part:
    """Put the id that the program's tool told last where the script says `last`."""
    if not isinstance(part, CallTool) or part.arguments.get("request_id") != _LAST:
        return part
    told = _TOLD_ID.findall(seen.text)
    return replace(part, arguments={**part.arguments, "request_id": told[-1] if told else _LAST})


class _Server(ThreadingHTTPServer):
    """Hands every POST to one function."""

    daemon_threads = True

    def __init__(self, respond: Callable[[str, Mapping[str, str], bytes], tuple[int, str]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond

    def handle_error(self, request: object, client_address: object) -> None:
        """Pass over a connection that broke: programs are killed while they talk to us."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        """Programs look whether anybody is there."""
        self._send(404, "")

    do_GET = do_HEAD  # noqa: N815 - http.server's name

    def do_POST(self) -> None:
        """Answer one request."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(*self.server.respond(self.path, headers, raw))

    def log_message(self, *_: Any) -> None:
        """Say nothing: the stand-in keeps what it was sent."""

    def _send(self, status: int, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        kind = "text/event-stream" if status == _OK else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
