"""How soon a permission of Claude Code's terminal is with a person elsewhere, and their yes back.

In one session of the newest Claude Code that is installed, one call after another. The limit is the
program's own dialog: when it is on the screen, and Enter in it. Whose turn it is to say yes changes
with every call.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tests.acceptance.support import Json
from tests.agents.programs import PROGRAMS, Program
from tests.agents.support import GROUP
from tests.agents.test_gate import go_through_first_start
from tests.agents.test_terminal_permissions import DIALOG, AskingDesk
from tests.bench.figures import Line, Sample, Unit, line
from tests.standins.models import CallTool, Say

ROUNDS = 20
QUICK_ROUNDS = 2
AT_MOST_MORE = 50
_WAIT_SECONDS = 60.0
_CALM_SECONDS = 0.3


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    claudes = [p for p in PROGRAMS if p.agent == "claude" and p.is_installed]
    if not claudes:
        print("skipped: no Claude Code is installed (make test-agents)", file=sys.stderr)  # noqa: T201 - progress
        return []
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return asyncio.run(_measure(claudes[-1], folder, rounds))


async def _measure(program: Program, folder: Path, rounds: int) -> list[Line]:
    desk = AskingDesk(program, folder)
    desk.model.start()
    try:
        desk.prepare()
        await desk.host.start()
        desk.connect()
        go_through_first_start(desk)
        desk.sit_down("--permission-mode", "default")
        # The first of each kind is not counted.
        files = [desk.home / f"made-{number}" for number in range(2 * rounds + 2)]
        desk.model.add(*([CallTool("Bash", {"command": f"touch {one}"})] for one in files))
        desk.model.add([Say("All made.")])
        await desk.say("Make the files.", 1)
        readings = [await _read_once(desk, one, number) for number, one in enumerate(files)]
    finally:
        desk.close()
    return _lines(readings[2:])


def _lines(readings: list[tuple[float, float, float]]) -> list[Line]:
    asked, dialogs = ([reading[n] for reading in readings] for n in (0, 1))
    there, here = ([reading[2] for reading in readings[kind::2]] for kind in (0, 1))
    ms, goal = Unit.MILLISECONDS, AT_MOST_MORE
    what = "permission wanted → card shown (limit: dialog on the screen)"
    taps = "tap elsewhere → tool runs (limit: Enter in the dialog)"
    more = [card - dialog for card, dialog in zip(asked, dialogs, strict=True)]
    more_taps = [ours - limit for ours, limit in zip(sorted(there), sorted(here), strict=True)]
    return [
        line("k1.1", what, ms, Sample(asked), Sample(dialogs)),
        line("k1.2", "how much later than the dialog", ms, Sample(more), at_most=goal),
        line("k2.1", taps, ms, Sample(there), Sample(here)),
        line("k2.2", "how much later than Enter", ms, Sample(more_taps), at_most=goal),
    ]


async def _read_once(desk: AskingDesk, made: Path, number: int) -> tuple[float, float, float]:
    """Return milliseconds: until the card, until the dialog, and from a yes until the tool runs.

    All of the first two from the model's word that it wants the tool.
    """
    wanted = (await desk.requests(number + 1))[number].at + _since_the_epoch()
    dialog = _until(lambda: DIALOG in desk.tmux.screen and made.name in desk.tmux.screen)
    asked = _until_asked(desk, made)
    shown = _moment_of(desk, asked["request_id"], "shown")
    await asyncio.sleep(_CALM_SECONDS)
    said = time.time()
    if number % 2:
        desk.tmux.press("Enter")
    else:
        desk.host.answer(asked["short_id"], "approve")
    _until(made.exists)
    ran = made.stat().st_mtime
    return (shown - wanted) * 1_000, (dialog - wanted) * 1_000, (ran - said) * 1_000


def _since_the_epoch() -> float:
    return time.time() - time.monotonic()


def _until(look: Callable[[], bool]) -> float:
    """Return when it was so."""
    ends = time.time() + _WAIT_SECONDS
    while not look():
        if time.time() > ends:
            raise RuntimeError("waited in vain")
        time.sleep(0.001)
    return time.time()


def _until_asked(desk: AskingDesk, made: Path) -> Json:
    found: list[Json] = []

    def look() -> bool:
        open_ones = [p for p in desk.host.pending() if p["group"] == GROUP and p["state"] == "open"]
        found[:] = [p for p in open_ones if made.name in p["questions"][0]["question"]]
        return bool(found)

    _until(look)
    return found[0]


def _moment_of(desk: AskingDesk, request_id: str, kind: str) -> float:
    [at, *_] = [e["at"] for e in desk.host.events(request_id) if e["type"] == kind]
    return datetime.fromisoformat(at).timestamp()
