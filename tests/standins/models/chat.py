"""OpenAI's chat completions, streamed: what OpenCode talks to through a compatible provider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tests.standins.models.dialect import Json, Request, bare_name, event, unanswered
from tests.standins.models.script import CallTool, Part, Say

_USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


class Chat:
    """See Dialect."""

    def problem(self, request: Request) -> str | None:
        """See Dialect."""
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return "You didn't provide an API key."
        missing = [name for name in ("model", "messages") if not request.body.get(name)]
        if missing:
            return f"Missing required parameter: '{missing[0]}'."
        return _unpaired(request.body["messages"])

    def tools(self, body: Json) -> Mapping[str, str]:
        """See Dialect."""
        names = [str(tool["function"]["name"]) for tool in body.get("tools", [])]
        return {bare_name(name): name for name in names}

    def answer(self, turn: Sequence[Part], names: Mapping[str, str], number: int) -> Iterator[str]:
        """See Dialect."""
        yield _chunk(number, {"role": "assistant", "content": ""})
        calls = 0
        for part in turn:
            match part:
                case Say(text):
                    yield _chunk(number, {"content": text})
                case CallTool(tool, arguments):
                    call = _call(calls, f"call_{number}_{calls}", names[tool], dict(arguments))
                    yield _chunk(number, {"tool_calls": [call]})
                    calls += 1
        yield _chunk(number, {}, "tool_calls" if calls else "stop")
        yield "data: [DONE]\n\n"

    def refusal(self, status: int, message: str) -> Json:
        """See Dialect."""
        return {"error": {"message": message, "type": "invalid_request_error", "code": str(status)}}


def _chunk(number: int, delta: Json, finish: str | None = None) -> str:
    fields: Json = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return event(fields | ({"usage": _USAGE} if finish else {}))


def _call(index: int, call_id: str, name: str, arguments: Json) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"index": index, "id": call_id, "type": "function", "function": function}


def _unpaired(messages: list[Json]) -> str | None:
    """Say what is wrong where tool calls are not followed at once by all their results."""
    open_calls: list[str] = []
    results: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(message["tool_call_id"])
            continue
        if problem := unanswered(open_calls, results):
            return problem
        open_calls = [call["id"] for call in message.get("tool_calls") or []]
        results = []
    return unanswered(open_calls, results)
