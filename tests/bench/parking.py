"""What a waiting Claude Code costs, parked beside blocked, and how soon either has its answer.

For each version that `make test-agents` has installed. The limit is always the agent that blocks;
for the hook's own start it is the bare interpreter.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.agents.programs import PROGRAMS, Program
from tests.agents.support import GROUP, Stage, marked
from tests.bench.figures import Line, Sample, Unit, line
from tests.standins.models import AskUser, Say

ROUNDS = 5
QUICK_ROUNDS = 1
HOOK_ROUNDS = 21
_PARKS = f'[groups.{GROUP}]\nwait = "park"\npark_after = "100ms"\n'
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_HOOK = [sys.executable, "-P", "-m", "agent_runner.hooks.claude"]
_BARE = [sys.executable, "-P", "-c", "pass"]


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    rounds = QUICK_ROUNDS if quick else ROUNDS
    claudes = [p for p in PROGRAMS if p.agent == "claude" and p.is_installed]
    if not claudes:
        print("skipped: no Claude Code is installed (make test-agents)", file=sys.stderr)  # noqa: T201 - progress
    return [_hook(folder), *(one for claude in claudes for one in _lines(claude, folder, rounds))]


def _hook(folder: Path) -> Line:
    for name in ("tasks", "responses"):
        (folder / "ipc" / name).mkdir(parents=True)
    times = [(_spawn(_HOOK, folder), _spawn(_BARE, folder)) for _ in range(HOOK_ROUNDS)]
    ours, bare = (Sample(values) for values in zip(*times, strict=True))
    what = "the hook, spawn → end, nothing to ask (limit: python -c pass)"
    return line("i1", what, Unit.MILLISECONDS, ours, bare, at_most=100)


def _spawn(command: list[str], folder: Path) -> float:
    """Return the milliseconds that the command takes for an event that is none of its business."""
    event = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {}}
    env = {**os.environ, "PYNCHY_IPC_DIR": str(folder / "ipc")}
    started = time.perf_counter()
    subprocess.run(command, input=json.dumps(event).encode(), env=env, check=True)
    return (time.perf_counter() - started) * 1_000


def _lines(program: Program, folder: Path, rounds: int) -> list[Line]:
    readings = []
    for number in range(rounds):
        for settings, how in ((_PARKS, "parked"), ("", "blocked")):
            place = folder / f"{program.id}-{number}-{how}"
            place.mkdir()
            readings.append(asyncio.run(_read_once(program, place, settings)))
    parked, blocked = readings[::2], readings[1::2]
    held, took = "memory of a waiting agent", "answer accepted → in the model's request"
    (mem, sec), (mem_b, sec_b) = (
        [Sample(v) for v in zip(*r, strict=True)] for r in (parked, blocked)
    )
    return [
        line(f"i2.{program.id}", f"{program.id}, parked: {held}", Unit.MEGABYTES, mem, mem_b),
        line(f"i3.{program.id}", f"{program.id}, parked: {took}", Unit.MILLISECONDS, sec, sec_b),
    ]


async def _read_once(program: Program, folder: Path, settings: str) -> tuple[float, float]:
    """Return the megabytes of a waiting agent, and the milliseconds until it has its answer."""
    stage = Stage(program, folder)
    stage.model.start()
    try:
        await stage.open([AskUser("Deploy?", "Yes", "No")], [Say("Fine.")], settings=settings)
        _, out, _ = await stage.host.cli("run", GROUP, "Deploy it.", "--json")
        [question] = await stage.asked()
        await stage.session(json.loads(out)["session_id"], "parked" if settings else "waiting")
        megabytes = sum(map(_memory, marked(stage.mark))) / 1_000
        stage.host.answer(question["short_id"], "1")
        accepted = time.monotonic()
        answered = (await stage.requests(2))[1].at - accepted
        return megabytes, answered * 1_000
    finally:
        stage.close()


def _memory(pid: int) -> float:
    """Return the kilobytes of a process; what it shares with others is counted in part."""
    found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return float(found[1]) if found else 0.0
