"""Talk to the running host. Standard library only: completion and scripts want it fast.

Every refusal becomes one of pynchy's own errors; a host that is gone is NoHost.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from pynchy.data_dir import DataFolder, HostAddress
from pynchy.errors import (
    GroupKept,
    HostError,
    InvalidReply,
    NoHost,
    NotAllowed,
    NotStarted,
    PynchyError,
    QuestionOver,
    ReplyRejected,
    RuleRefused,
    SessionOver,
    UnknownGroup,
    UnknownQuestion,
    UnknownRule,
    UnknownSession,
)
from pynchy.own_program import own_call

TIMEOUT_SECONDS = 15.0
# The host says something at least every 15 seconds, be it only a comment.
_STREAM_SECONDS = 40.0
_OK = 300
_SESSIONS = "/api/sessions"
_GROUPS = "/api/groups"
_RULES = "/api/rules"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """One event of the live stream."""

    sequence: int
    data: Json


class HostClient:
    """The host's HTTP interface as functions."""

    def __init__(self, address: HostAddress, timeout: float = TIMEOUT_SECONDS) -> None:
        self._address = address
        self._timeout = timeout

    @classmethod
    def of(cls, data: DataFolder, timeout: float = TIMEOUT_SECONDS) -> Self:
        """Return a client of the folder's host. Raise NoHost if none is running."""
        return cls(data.host(), timeout)

    def health(self) -> Json:
        """Return how the host is."""
        return self._object("GET", "/healthz")

    def pending(self) -> list[Json]:
        """Return everything that is not over and delivered, oldest first."""
        listed = self._list("GET", "/api/pending")
        return sorted(listed, key=lambda view: str(view.get("timestamp", "")))

    def history(self, limit: int, group: str | None, outcome: str | None) -> list[Json]:
        """Return what is over, newest first."""
        query = {"limit": str(limit), "group": group or "", "outcome": outcome or ""}
        return self._list("GET", "/api/history?" + urlencode(query))

    def question(self, target: str) -> Json:
        """Return the question that a person means by that id, open or over.

        Raise UnknownQuestion if there is none, ReplyRejected if several have the id.
        """
        return self._object("GET", _path(target))

    def question_of(self, group: str, request_id: str) -> Json:
        """Return one question of that group. Raise UnknownQuestion if there is none."""
        return self._object("GET", _path(request_id) + "?" + urlencode({"group": group}))

    def reply(self, group: str, request_id: str, verb: str, body: Json) -> Json:
        """Answer, decline, retry or dismiss a question of that group. Return it as it is now."""
        return self._object("POST", _path(request_id, verb), {"group": group, **body})

    def problems(self) -> list[str]:
        """Return what is wrong with the host just now, in words for a person."""
        return [str(problem) for problem in self._object("GET", "/api/status").get("problems", ())]

    def agents(self) -> list[Json]:
        """Return every agent that lives or has something open."""
        return self._list("GET", "/api/agents")

    def inbox_settings(self) -> Json:
        """Return what a screen of the inbox must know."""
        return self._object("GET", "/api/inbox/settings")

    def sessions(self) -> list[Json]:
        """Return every session, those that began last first."""
        return self._list("GET", _SESSIONS)

    def run(self, group: str, prompt: str, agent: str | None, by: str) -> Json:
        """Start a session. Raise UnknownSession for the group, or NotStarted with the reason."""
        body = {"group": group, "prompt": prompt, "by": by} | ({"agent": agent} if agent else {})
        return self._object("POST", _SESSIONS, body)

    def stop(self, target: str, by: str) -> Json:
        """End the session's runner, and return how it ended once it has."""
        return self._object("POST", f"{_SESSIONS}/{quote(target, safe='')}/stop", {"by": by})

    def session(self, target: str) -> Json:
        """Return one session, by its id or enough of it. Raise UnknownSession if there is none."""
        return self._object("GET", f"{_SESSIONS}/{quote(target, safe='')}")

    def output(self, target: str, after: int) -> Json:
        """Return what the session's runners have printed after so many bytes, and its state."""
        return self._object("GET", f"{_SESSIONS}/{quote(target, safe='')}/log?after={after}")

    def groups(self) -> list[Json]:
        """Return every group, by name."""
        return self._list("GET", _GROUPS)

    def remove_group(self, name: str, by: str, *, force: bool) -> Json:
        """Remove the group and return what was done. Raise UnknownGroup, or GroupKept with why."""
        body = {"by": by, "force": force}
        return self._object("POST", f"{_GROUPS}/{quote(name, safe='')}/remove", body)

    def rules(self, group: str | None = None) -> list[Json]:
        """Return every rule that counts, of that group or of all."""
        query = "?" + urlencode({"group": group}) if group else ""
        return self._list("GET", f"{_RULES}{query}")

    def rule_problems(self) -> Json:
        """Return why no rule allows anything just now, if so, and what may be wrong in some."""
        return self._object("GET", f"{_RULES}/problems")

    def test_rules(self, group: str, tool: str, given: Json, cwd: str) -> Json:
        """Return what the rules would say of a call. Raise UnknownRule for no such group."""
        body = {"group": group, "tool": tool, "input": given, "cwd": cwd}
        return self._object("POST", f"{_RULES}/test", body)

    def revoke_rule(self, target: str, by: str) -> Json:
        """Let the rule count no more, and return it. Raise UnknownRule, or RuleRefused."""
        return self._object("POST", f"{_RULES}/{quote(target, safe='')}/revoke", {"by": by})

    def sweep(self, *, dry_run: bool) -> list[Json]:
        """End what is stale, or only return what would be ended."""
        return self._list("POST", "/api/sweep", {"dry_run": dry_run})

    def make_link(self) -> str:
        """Return a new link that signs one browser in."""
        return str(self._object("POST", "/api/inbox/link", {})["url"])

    def sign_out_all(self) -> int:
        """Sign every browser out. Return how many there were."""
        return int(self._object("POST", "/api/inbox/sign-out-all", {})["signed_out"])

    def events(self, after: int | None = None) -> EventStream:
        """Open the live stream, after that event or from now on. Raise NoHost."""
        headers = self._headers()
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        connection = self._connection(_STREAM_SECONDS)
        try:
            connection.request("GET", "/api/events", headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise _no_reply(exc) from exc
        if response.status != http.client.OK:
            body = _parse(response.read())
            connection.close()
            raise _refusal(response.status, body, "")
        return EventStream(connection, response)

    def _object(self, method: str, path: str, body: Json | None = None) -> Json:
        _, value = self._call(method, path, body)
        return value if isinstance(value, dict) else {}

    def _list(self, method: str, path: str, body: Json | None = None) -> list[Json]:
        _, value = self._call(method, path, body)
        return value if isinstance(value, list) else []

    def _call(self, method: str, path: str, body: Json | None = None) -> tuple[int, Any]:
        connection = self._connection(self._timeout)
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, self._headers())
            response = connection.getresponse()
            value = _parse(response.read())
        except (OSError, http.client.HTTPException) as exc:
            raise _no_reply(exc) from exc
        finally:
            connection.close()
        if response.status >= _OK:
            raise _refusal(response.status, value, path)
        return response.status, value

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        url = urlsplit(self._address.url)
        return http.client.HTTPConnection(url.hostname or "127.0.0.1", url.port, timeout=timeout)

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._address.token}",
            "Content-Type": "application/json",
        }


class EventStream:
    """The host's events as they happen. Ends when the host goes or `stop` is called."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        # The connection forgets its socket when the response is to end with it.
        self._socket = connection.sock
        self._response = response
        self.heard_at = time.monotonic()

    def __iter__(self) -> Iterator[StreamMessage]:
        sequence, data = "", b""
        with suppress(OSError, ValueError, http.client.HTTPException):
            while raw := self._response.readline():
                self.heard_at = time.monotonic()
                name, _, value = raw.rstrip(b"\r\n").partition(b":")
                match name:
                    case b"id":
                        sequence = value.decode().strip()
                    case b"data":
                        data = value.removeprefix(b" ")
                    case b"" if not value and data:
                        yield StreamMessage(int(sequence or 0), json.loads(data))
                        data = b""

    def stop(self) -> None:
        """End the stream for the thread that reads it; any thread may call this."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection; for the thread that has read it."""
        self._connection.close()


_SESSION_ERRORS: dict[int, type[PynchyError]] = {
    http.client.NOT_FOUND: UnknownSession,
    http.client.CONFLICT: SessionOver,
    http.client.UNPROCESSABLE_ENTITY: NotStarted,
}


_GROUP_ERRORS: dict[int, type[PynchyError]] = {
    http.client.NOT_FOUND: UnknownGroup,
    http.client.CONFLICT: GroupKept,
}


_RULE_ERRORS: dict[int, type[PynchyError]] = {
    http.client.NOT_FOUND: UnknownRule,
    http.client.CONFLICT: RuleRefused,
}


def _path(target: str, action: str = "") -> str:
    return f"/api/questions/{quote(target, safe='')}" + (f"/{action}" if action else "")


def _parse(data: bytes) -> Any:  # noqa: ANN401 - JSON is anything
    try:
        return json.loads(data)
    except ValueError:
        return {}


def _no_reply(exc: Exception) -> HostError:
    if isinstance(exc, ConnectionRefusedError):
        return NoHost(f"the pynchy host is gone; start it again with: {own_call()} serve")
    return HostError(f"the pynchy host does not answer ({exc or type(exc).__name__}); see its log")


def _refusal(status: int, body: object, path: str) -> PynchyError:
    fields = body if isinstance(body, dict) else {}
    error = str(fields.get("error") or f"the host answered with HTTP status {status}")
    if path.startswith(_SESSIONS) and (kind := _SESSION_ERRORS.get(status)) and fields:
        return kind(error)
    if path.startswith(f"{_GROUPS}/") and (kind := _GROUP_ERRORS.get(status)) and "error" in fields:
        return kind(error)
    if path.startswith(f"{_RULES}/") and (kind := _RULE_ERRORS.get(status)) and "error" in fields:
        return kind(error)
    if status == http.client.CONFLICT and "outcome" in fields:
        return QuestionOver(error)
    if status == http.client.NOT_FOUND and not path.startswith("/api/questions/"):
        return HostError(f"the host does not know {path}: is it of another version?")
    kinds: dict[int, type[PynchyError]] = {
        http.client.NOT_FOUND: UnknownQuestion,
        http.client.UNPROCESSABLE_ENTITY: InvalidReply,
        http.client.FORBIDDEN: NotAllowed,
        http.client.CONFLICT: ReplyRejected,
    }
    return kinds.get(status, HostError)(error)
