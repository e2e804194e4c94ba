"""JSON-RPC 2.0 over lines: what a core asks its program, and what the program asks us.

Whatever a line holds, reading it raises nothing: what is not JSON-RPC is nobody's, and a request of
a method that we do not know is refused, so that no program waits for us.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_runner.cores.base import AgentEvent, Fields, Said, Send, as_event, fields_of, text_of

METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """Why the program could not do what it was asked."""

    code: int
    message: str
    data: Fields

    @property
    def told(self) -> str:
        """What is worth a line in the log."""
        detail = text_of(self.data, "details") or text_of(self.data, "message")
        return f"{self.message} ({detail})" if detail else self.message


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """What the program asks us. `key` tells it from others of this run, and `id` is its own.

    `run` tells it from those of other runs too: what a person said to one is no answer to another.
    """

    id: int | str
    method: str
    params: Fields
    run: str = ""

    @property
    def key(self) -> str:
        """The id as a text, where 1 and "1" are two."""
        return json.dumps(self.id)

    @property
    def unique_key(self) -> str:
        """A text that no other request has, of whichever run."""
        return f"{self.run}/{self.key}"


Result = Fields | ErrorReply
OnResult = Callable[[Result], Iterable[AgentEvent]]
OnRequest = Callable[[RpcRequest], Iterable[AgentEvent]]
OnNotification = Callable[[Fields], Iterable[AgentEvent]]


class JsonRpc:
    """One connection. `requests` and `notifications` are what we heed of the program, by method."""

    def __init__(
        self,
        requests: Mapping[str, OnRequest],
        notifications: Mapping[str, OnNotification],
        *,
        says_version: bool = True,
    ) -> None:
        self._requests = requests
        self._notifications = notifications
        self._head: Fields = {"jsonrpc": "2.0"} if says_version else {}
        self._waiting: dict[int, OnResult] = {}
        self._run = os.urandom(8).hex()
        # Whoever replies to the program may ask it something too, in another thread.
        self._numbers = itertools.count(1)

    def request(self, method: str, params: Fields, then: OnResult) -> str:
        """Return the line that asks the program; `then` gets what it answers."""
        number = next(self._numbers)
        self._waiting[number] = then
        return self._line({"id": number, "method": method, "params": params})

    def notify(self, method: str, params: Fields | None = None) -> str:
        """Return the line that tells the program something, and wants no answer."""
        return self._line({"method": method, **({} if params is None else {"params": params})})

    def respond(self, request: RpcRequest, result: Fields) -> str:
        """Return the line that answers what the program asked."""
        return self._line({"id": request.id, "result": result})

    def refuse(self, request: RpcRequest, code: int, message: str) -> str:
        """Return the line that says why we do not do what the program asked."""
        error = {"code": code, "message": message}
        return self._line({"id": request.id, "error": error})

    def read(self, line: str) -> Iterator[AgentEvent]:
        """Yield what a line of the program leads to."""
        message = as_event(line)
        if message is None:
            yield Said(line)
        elif isinstance(message.get("method"), str):
            yield from self._read_call(message)
        else:
            yield from self._read_answer(message)

    def _read_call(self, message: Fields) -> Iterator[AgentEvent]:
        method, params = text_of(message, "method"), fields_of(message, "params")
        if "id" not in message:
            yield from self._notifications.get(method, _nothing)(params)
            return
        if not _is_id(message["id"]):
            return
        request = RpcRequest(message["id"], method, params, self._run)
        if method in self._requests:
            yield from self._requests[method](request)
        else:
            yield Send(self.refuse(request, METHOD_NOT_FOUND, f"there is no method {method}"))

    def _read_answer(self, message: Fields) -> Iterable[AgentEvent]:
        asked = message.get("id")
        # An id of another kind could pass for one of ours: True is 1.
        then = self._waiting.pop(asked, None) if type(asked) is int else None
        if then is None:
            return ()
        if message.get("error") is None:
            return then(fields_of(message, "result"))
        return then(_error(fields_of(message, "error")))

    def _line(self, message: Fields) -> str:
        return json.dumps({**self._head, **message}) + "\n"


def _nothing(_: Fields) -> Iterable[AgentEvent]:
    return ()


def _is_id(value: Any) -> bool:  # noqa: ANN401 - whatever the program sent
    return isinstance(value, int | str) and not isinstance(value, bool)


def _error(error: Fields) -> ErrorReply:
    code, message = error.get("code"), text_of(error, "message")
    told = message or "an error without a word"
    return ErrorReply(code if isinstance(code, int) else 0, told, fields_of(error, "data"))
