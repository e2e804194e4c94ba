"""What scripts see of the commands: exit codes, and the shapes of `--json`."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from tests.acceptance.support import PYNCHY, Host, Json
from tests.pins.shapes import merged, shape_of
from tests.waiting import until

AGENT_RUNNER = PYNCHY.with_name("agent_runner")
# Three at once: each is a process of its own.
_AT_ONCE = 3


async def see_commands(host: Host) -> Json:
    """Return how commands end and what they print, on a host whose life is in `world`."""
    ended = next(s for s in host.http("GET", "/api/sessions").body if s["launched"])
    looking = {
        "pending": ("pending", "--json"),
        "show": ("show", "single", "--json"),
        "history": ("history", "--json"),
        "sessions": ("sessions", "--json"),
        "events": ("events", "--json"),
    }
    saying = {
        "answer, part": ("answer", "slack-batch", "1", "--question", "1", "--json"),
        "answer, over": ("answer", "single", "1", "--json"),
        "answer, unknown": ("answer", "zzzz", "1"),
        "stop, over": ("stop", ended["session_id"]),
        "ask, too short": ("ask", "Why?", "--timeout", "0.2", "--json"),
        "ask, wrong use": ("ask",),
        "no such command": ("nothing",),
    }
    seen = await _several({name: _run(host.data, *words) for name, words in looking.items()})
    said = await _several({name: _run(host.data, *words) for name, words in saying.items()})
    ends = {
        "ask, answered": _ask_and(host, "answer", "Now?"),
        "ask, declined": _ask_and(host, "decline", "Later?"),
        "no host": _run(host.data.parent / "nobody", "pending"),
    }
    return seen | said | await _several(ends)


async def _several(calls: dict[str, Awaitable[Json]]) -> Json:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Awaitable[Json]) -> Json:
        async with room:
            return await call

    return dict(zip(calls, await asyncio.gather(*map(one, calls.values())), strict=True))


async def _ask_and(host: Host, verb: str, question: str) -> Json:
    """Let `pynchy ask` ask, and a person end it."""
    call = asyncio.create_task(_run(host.data, "ask", question, "-o", "Yes", "--json"))

    def look() -> list[str]:
        asked = [p for p in host.pending() if p["state"] == "open"]
        return [p["request_id"] for p in asked if p["questions"][0]["question"] == question]

    [request_id] = await until(look, "the question")
    body = {"by": "ana", **({"values": ["1"]} if verb == "answer" else {})}
    host.http("POST", f"/api/questions/{request_id}/{verb}", body)
    return await call


async def _run(data: Path, *words: str) -> Json:
    """Return the exit code, and the shape of what was printed if it is JSON."""
    before = () if words[0] == "nothing" else ("--data-dir", str(data))
    code, out = await run_program(str(PYNCHY), *words, *before)
    return {"exit": code, "prints": _printed(out)}


async def run_program(*command: str) -> tuple[int | None, str]:
    """Return the exit code of a program and what it printed."""
    nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=nothing, stdout=pipe, stderr=nothing
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


def _printed(out: str) -> Any:
    if not out:
        return "nothing"
    try:
        return shape_of(json.loads(out))
    except ValueError:
        pass
    try:
        return {"lines": merged(shape_of(json.loads(line)) for line in out.splitlines())}
    except ValueError:
        return "text"


async def see_agent_runner(folder: Path) -> Json:
    """Return how `agent_runner` and the modules of the agent's side end."""
    initial = folder / "ipc" / "input" / "q1" / "initial.json"
    initial.parent.mkdir(parents=True)
    initial.write_text('{"v": 1, "session_id": "s1", "prompt": "Go"}')
    module = (sys.executable, "-m")
    calls = {
        "agent_runner, wrong use": (str(AGENT_RUNNER),),
        "agent_runner, no such agent": (*_runner(initial), "--agent", "nobody"),
        "agent_runner, no initial.json": _runner(folder / "none.json"),
        "agent_runner, no mailbox": _runner(initial),
        "python -m agent_runner": (*module, "agent_runner", "--help"),
        "python -m agent_runner.boxed": (*module, "agent_runner.boxed", "--help"),
        "python -m agent_runner.hooks.claude": (*module, "agent_runner.hooks.claude"),
        "python -m agent_runner.agent_tools": (*module, "agent_runner.agent_tools"),
    }
    ends = {name: (await run_program(*command))[0] for name, command in calls.items()}
    _, usage = await run_program(str(AGENT_RUNNER), "--help")
    _, boxed = await run_program(*module, "agent_runner.boxed", "--help")
    return {"exits": ends, "agent_runner": _options(usage), "boxed": _options(boxed)}


def _runner(initial: Path) -> tuple[str, ...]:
    return (str(AGENT_RUNNER), "--initial", str(initial))


def _options(help_text: str) -> list[str]:
    """Return the options with what they take, as the usage says them: in brackets if optional."""
    usage = " ".join(help_text.partition("\n\n")[0].split())
    return re.findall(r"\[--?[a-z]+(?: [A-Z]+)?\]|(?<=\s)--?[a-z]+(?: [A-Z]+)?", usage)
