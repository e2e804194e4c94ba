"""JSON-RPC 2.0 messages, one per line.

Any line becomes a Call, a Notice or nothing, or raises RpcError with the id to answer under.
What is encoded is ASCII and holds no line break, so a line is always one message.
"""

import json
from collections.abc import Mapping
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


def parse(line: bytes) -> Call | Notice | None:
    """Return the message; None for a response, as we ask the client nothing. Raise RpcError."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise RpcError(PARSE_ERROR, f"not JSON: {exc}") from exc
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "batches are not supported: send one message per line")
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "a message is a JSON object")
    if "method" not in message and ("result" in message or "error" in message):
        return None
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
