"""A model on this machine that asks a person one question, and tells what it heard of it.

It speaks as much of Anthropic's Messages API as Claude Code needs for that. Until the program
offers our tool, which may take a moment, the model reads a file.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]

_ASK = "ask_user"
_CALL = "toolu_gate"
_USAGE = {"input_tokens": 1, "output_tokens": 1}
_PAUSE_SECONDS = 0.5


class ScriptedModel:
    """Serves on loopback while it is entered. `heard` is set when it knows what became of its call.

    `answer` is what the person may choose.
    """

    def __init__(self, answer: str) -> None:
        self.heard = asyncio.Event()
        self.result = ""
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._pause = threading.Event()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self.reply_to))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pause.set()
        self._server.shutdown()
        self._server.server_close()

    def reply_to(self, body: Json) -> Json:
        """Return the block that the model says next."""
        names = [str(tool.get("name", "")) for tool in body.get("tools") or ()]
        ask = next((n for n in names if n.startswith("mcp__") and n.endswith(f"__{_ASK}")), None)
        result = _result(body)
        if result is not None:
            self._hear(result)
            return {"type": "text", "text": "Thank you."}
        if ask is not None:
            question = {"question": "Go on?", "options": [self._answer, "No"]}
            return _call(_CALL, ask, {"questions": [question]})
        if "Read" in names:
            self._pause.wait(_PAUSE_SECONDS)
            return _call(f"toolu_{len(body['messages'])}", "Read", {"file_path": "README"})
        return {"type": "text", "text": "Well."}

    def _hear(self, result: str) -> None:
        if not self.result:
            self.result = result or "(nothing)"
            self._loop.call_soon_threadsafe(self.heard.set)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of a program that was ended in the middle of a request."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, reply_to: Callable[[Json], Json], *args: Any) -> None:  # noqa: ANN401 - passed on
        self._reply_to = reply_to
        super().__init__(*args)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._send(json.dumps({"input_tokens": 1}).encode(), "application/json")
        elif path == "/v1/messages":
            events = b"".join(_events(self._reply_to(json.loads(data))))
            self._send(events, "text/event-stream")
        else:
            self.do_GET()

    def do_GET(self) -> None:
        self._send(b"{}", "application/json", HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: it is not the person's concern."""


def _result(body: Json) -> str | None:
    """Return what the program says of our call; None if it says nothing of it."""
    for message in body.get("messages") or ():
        blocks = message.get("content")
        for block in blocks if isinstance(blocks, list) else ():
            if block.get("type") == "tool_result" and block.get("tool_use_id") == _CALL:
                return json.dumps(block.get("content"), ensure_ascii=False)
    return None


def _call(call_id: str, tool: str, arguments: Json) -> Json:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def _events(block: Json) -> Iterator[bytes]:
    """Write the block as a streamed message."""
    message: Json = {
        "id": "msg_gate",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield _event("message_start", message=message)
    begun, delta = dict(block), {"type": "text_delta", "text": block.get("text", "")}
    if block["type"] == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        begun["input"] = {}
    else:
        begun["text"] = ""
    yield _event("content_block_start", index=0, content_block=begun)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    yield _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=_USAGE)
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
