"""OpenAI's Responses API, streamed: what Codex talks to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tests.standins.models.dialect import Json, Request, event, unanswered
from tests.standins.models.script import CallTool, Part, Say

_SPACE = "."
_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 20,
}


class Responses:
    """See Dialect. A tool of a server sits in a namespace: `<namespace>.<tool>` here."""

    def problem(self, request: Request) -> str | None:
        """See Dialect."""
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return "Missing bearer authentication in header"
        missing = [name for name in ("model", "input") if not request.body.get(name)]
        if missing:
            return f"Missing required parameter: '{missing[0]}'."
        items = [item for item in request.body["input"] if "call_id" in item]
        calls = [item["call_id"] for item in items if not item["type"].endswith("_output")]
        results = [item["call_id"] for item in items if item["type"].endswith("_output")]
        return unanswered(calls, results)

    def tools(self, body: Json) -> Mapping[str, str]:
        """See Dialect."""
        offered: dict[str, str] = {}
        for tool in body.get("tools", []):
            if tool["type"] == "namespace":
                inner = [str(one["name"]) for one in tool["tools"]]
                offered |= {name: f"{tool['name']}{_SPACE}{name}" for name in inner}
            elif "name" in tool:
                offered[str(tool["name"])] = str(tool["name"])
        return offered

    def answer(self, turn: Sequence[Part], names: Mapping[str, str], number: int) -> Iterator[str]:
        """See Dialect."""
        response: Json = {"id": f"resp_{number}", "object": "response", "output": []}
        yield _event("response.created", response={**response, "status": "in_progress"})
        for index, part in enumerate(turn):
            item = _item(part, names, f"{number}_{index}")
            yield _event("response.output_item.added", output_index=index, item=item)
            yield _event("response.output_item.done", output_index=index, item=item)
        done = {**response, "status": "completed", "usage": _USAGE}
        yield _event("response.completed", response=done)

    def refusal(self, status: int, message: str) -> Json:
        """See Dialect."""
        return {"error": {"message": message, "type": "invalid_request_error", "code": str(status)}}


def _event(type_: str, **fields: object) -> str:
    return event({"type": type_, **fields}, type_)


def _item(part: Part, names: Mapping[str, str], id_: str) -> Json:
    match part:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "id": f"msg_{id_}", "role": "assistant", "content": content}
        case CallTool(tool, arguments):
            namespace, _, name = names[tool].rpartition(_SPACE)
            call = {
                "type": "function_call",
                "id": f"fc_{id_}",
                "call_id": f"call_{id_}",
                "name": name,
                "arguments": json.dumps(dict(arguments)),
            }
            return call | ({"namespace": namespace} if namespace else {})
