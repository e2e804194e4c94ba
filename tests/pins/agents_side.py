"""What the agent's side says and writes: its MCP server, with a host that is played by hand."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.support import PYNCHY
from tests.pins.rpc import HANDSHAKE, talking_to
from tests.pins.shapes import shape_of
from tests.waiting import until

Json = dict[str, Any]

_ASKED = {
    "title": "Release",
    "urgency": "high",
    "questions": [
        {
            "question": "Deploy?",
            "header": "Deploy",
            "options": [{"label": "Yes", "description": "now", "preview": "v2"}, {"label": "No"}],
            "multiSelect": False,
            "default": "No",
        },
        {"question": "Why?"},
    ],
}
_ANSWERS = [
    {"question": "Deploy?", "selected": ["Yes"], "text": None},
    {"question": "Why?", "selected": [], "text": "It is ready."},
]


async def see_agents_side(ipc: Path) -> Json:
    """Return what the server offers and answers, and the files that it leaves in a mailbox."""
    for name in ("tasks", "responses", "input"):
        (ipc / name).mkdir(parents=True)
    server = (sys.executable, "-m", "agent_runner.agent_tools")
    told = {"PYNCHY_IPC_DIR": str(ipc), "PYNCHY_SESSION_ID": "s1", "PYNCHY_AGENT": "claude"}
    environ = {**told, "PYNCHY_TASK": "the release", "PATH": os.environ["PATH"]}
    async with talking_to(*server, **environ) as line:
        greeting = await line.call("initialize", **HANDSHAKE)
        line.notify("notifications/initialized")
        offered = await line.call("tools/list")
        call = asyncio.create_task(line.call("tools/call", name="ask_user", arguments=_ASKED))
        files = await _answer(ipc)
        answered = await call
        request_id = files.pop("request_id")
        receipt = json.loads((ipc / "tasks" / f"{request_id}.received").read_bytes())
        about = {"request_id": request_id}
        checked = await line.call("tools/call", name="check_answer", arguments=about)
        withdrawn = await line.call("tools/call", name="withdraw_question", arguments=about)
        [withdraw] = (ipc / "tasks").glob("*.withdraw.json")
        return {
            "mcp": {"initialize": _without_version(greeting), "tools/list": offered},
            "results": {
                "ask_user answered": _without_id(answered, request_id),
                "check_answer of an answer that was received": _without_id(checked, request_id),
                "withdraw_question": _without_id(withdrawn, request_id),
            },
            "files": {
                **files,
                "tasks/<id>.received": shape_of(receipt) | {"by": receipt["by"]},
                "tasks/<id>.withdraw.json": shape_of(json.loads(withdraw.read_bytes())),
            },
        }


async def _answer(ipc: Path) -> Json:
    """Answer the question that comes, as the host does; return the shapes of what was asked."""
    path = (await until(lambda: list((ipc / "tasks").glob("*.json")), "the question"))[0]
    [lease] = (ipc / "tasks").glob("*.lease")
    request, held = json.loads(path.read_bytes()), json.loads(lease.read_bytes())
    assert path.stem == request["request_id"]
    assert lease.stem == request["lease"]
    path.unlink()
    ended = {"outcome": "answered", "answered_by": "Ana", "channel": "local"}
    ended |= {"answered_at": "2026-11-16T09:30:00Z", "answers": _ANSWERS}
    response = ipc / "responses" / f"{path.stem}.json"
    temporary = response.with_name(f".{response.name}")
    temporary.write_text(json.dumps({"v": 1, "request_id": path.stem, **ended}))
    temporary.rename(response)
    shapes = {"tasks/<id>.json": shape_of(request), "tasks/<lease>.lease": shape_of(held)}
    return {"request_id": path.stem, **shapes}


async def tools_of_pynchy_mcp(data: Path) -> Any:
    """Return what `pynchy mcp` offers."""
    command = (str(PYNCHY), "mcp", "--group", "team", "--data-dir", str(data))
    async with talking_to(*command, PATH=os.environ["PATH"], HOME=str(data)) as line:
        greeting = await line.call("initialize", **HANDSHAKE)
        return {
            "initialize": _without_version(greeting),
            "tools/list": await line.call("tools/list"),
        }


def _without_version(greeting: Json) -> Json:
    about = {name: value for name, value in greeting["serverInfo"].items() if name != "version"}
    return {**greeting, "serverInfo": about}


def _without_id(result: Json, request_id: str) -> Json:
    found: Json = json.loads(json.dumps(result).replace(request_id, "<id>"))
    return found
