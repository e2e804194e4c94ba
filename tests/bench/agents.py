"""How soon a late answer is with the model, beside how soon the bare program calls its model.

For each real agent program that `make test-agents` has installed: it asks, is killed, and is
answered; the clock runs from the accepted answer to the model's request that has it. The limit is
the program alone, on the same session's folders and in the same round, with the same prompt and
without pynchy: from its spawn to its first request.
"""

import asyncio
import sys
import time
from pathlib import Path

from tests.agents.programs import PROGRAMS, Program
from tests.agents.support import Stage
from tests.bench.figures import Line, Sample, Unit, line
from tests.standins.models import AskUser, Say

ROUNDS = 5
QUICK_ROUNDS = 1
WAIT_SECONDS = 120.0
GOAL_TIMES = 1.3

_BARE = {
    "claude": ("claude", "-p", "--output-format", "stream-json", "--verbose"),
    "codex": ("codex", "exec", "--json", "--skip-git-repo-check", "-"),
    "opencode": ("opencode", "run", "--format", "json"),
}


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    programs = [program for program in PROGRAMS if program.is_installed]
    for program in set(PROGRAMS) - set(programs):
        print(f"skipped: {program.id} is not installed (make test-agents)", file=sys.stderr)  # noqa: T201 - progress
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return [_line(program, folder, rounds) for program in programs]


def _line(program: Program, folder: Path, rounds: int) -> Line:
    readings = []
    for number in range(rounds):
        place = folder / f"{program.id}-{number}"
        place.mkdir()
        readings.append(asyncio.run(_read_once(program, place)))
    ours, bare = (Sample(values) for values in zip(*readings, strict=True))
    what = f"{program.id}: late answer accepted → in the model's request"
    ms = Unit.MILLISECONDS
    return line(f"h1.{program.id}", what, ms, ours, bare, at_most_times=GOAL_TIMES)


async def _read_once(program: Program, folder: Path) -> tuple[float, float]:
    """Return the milliseconds of a resumption and of a bare start."""
    stage = Stage(program, folder)
    stage.model.start()
    try:
        await stage.open([AskUser("Deploy?", "Yes", "No")], [Say("Fine.")], [Say("Bare.")])
        runner = stage.begin("Deploy it.")
        [question] = await stage.asked()
        runner.kill()
        stage.host.answer(question["short_id"], "1")
        accepted = time.monotonic()
        resumed = (await stage.requests(2))[1].at - accepted
        await stage.host.closed(question["request_id"])
        stage.kill_agents()
        return resumed * 1_000, await _bare_start(stage) * 1_000
    finally:
        stage.close()


async def _bare_start(stage: Stage) -> float:
    program, *arguments = _BARE[stage.program.agent]
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        str(stage.program.bin / program),
        *arguments,
        env=stage.env,
        cwd=stage.work,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(b"Deploy it.")
    process.stdin.close()
    called = (await stage.requests(3))[2].at
    process.kill()
    await process.wait()
    return called - started
