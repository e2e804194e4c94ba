"""Anthropic's Messages API, streamed: what Claude Code talks to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tests.standins.models.dialect import Json, Request, bare_name, event, unanswered
from tests.standins.models.script import CallTool, Part, Say

_USAGE = {"input_tokens": 10, "output_tokens": 10}


class Messages:
    """See Dialect."""

    def problem(self, request: Request) -> str | None:
        """See Dialect."""
        headers, body = request.headers, request.body
        if "x-api-key" not in headers and "authorization" not in headers:
            return "x-api-key header is required"
        if "anthropic-version" not in headers:
            return "anthropic-version: header is required"
        missing = [name for name in ("model", "max_tokens", "messages") if not body.get(name)]
        if missing:
            return f"{missing[0]}: Field required"
        return _unpaired([m for m in body["messages"] if m["role"] != "system"])

    def tools(self, body: Json) -> Mapping[str, str]:
        """See Dialect."""
        names = [str(tool.get("name", "")) for tool in body.get("tools", [])]
        return {bare_name(name): name for name in names}

    def answer(self, turn: Sequence[Part], names: Mapping[str, str], number: int) -> Iterator[str]:
        """See Dialect."""
        message: Json = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _USAGE,
        }
        yield _event("message_start", message=message)
        for index, part in enumerate(turn):
            block, delta = _block(part, names, f"toolu_{number}_{index}")
            yield _event("content_block_start", index=index, content_block=block)
            yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        calls = any(isinstance(part, CallTool) for part in turn)
        stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        yield _event("message_delta", delta=stop, usage=_USAGE)
        yield _event("message_stop")

    def refusal(self, status: int, message: str) -> Json:
        """See Dialect."""
        kind = "invalid_request_error" if status == 400 else "api_error"
        return {"type": "error", "error": {"type": kind, "message": message}}


def _event(type_: str, **fields: object) -> str:
    return event({"type": type_, **fields}, type_)


def _block(part: Part, names: Mapping[str, str], call_id: str) -> tuple[Json, Json]:
    match part:
        case Say(text):
            return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        case CallTool(tool, arguments):
            block = {"type": "tool_use", "id": call_id, "name": names[tool], "input": {}}
            given = json.dumps(dict(arguments))
            return block, {"type": "input_json_delta", "partial_json": given}


def _unpaired(messages: list[Json]) -> str | None:
    """Say what the API says when a tool_use is not followed at once by its tool_result."""
    if messages[0]["role"] != "user":
        return "messages: first message must use the user role"
    open_calls: list[str] = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        if problem := unanswered(open_calls, results):
            return f"messages: {problem}"
        open_calls = [b["id"] for b in blocks if b.get("type") == "tool_use"]
    return f"messages: {problem}" if (problem := unanswered(open_calls, [])) else None
