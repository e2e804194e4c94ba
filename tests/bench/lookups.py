"""How long it takes to find an open question by its id, its short id and its session.

The same lookups among 100 and among 10,000 open questions, in turn; a session has ten of them at
either size. What is looked up is chosen for each batch, as text that has just come in. A
lookup is too short for the clock, so each value is the mean of a batch.

Two lines for each way: any question of all, where most of the index is out of the processor's
caches at 10,000, and one of the same hundred each time, which shows the search alone.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.figures import Line, Sample, Unit, line
from tests.bench.questions import open_question

from pynchy.model import GroupName, PendingQuestion, RequestId, SessionId, ShortId
from pynchy.pending.index import PendingIndex

GROUP = GroupName("g1")
FEW, MANY = 100, 10_000
PER_SESSION = 10
BATCHES = 400
QUICK_BATCHES = 5
BATCH = 100

LookUp = Callable[[PendingIndex, str], object]

WAYS: dict[str, tuple[Callable[[PendingQuestion], str], LookUp]] = {
    "id": (lambda p: p.request_id, lambda index, target: index.with_request_id(RequestId(target))),
    "short id": (lambda p: p.short_id, lambda index, target: index.with_short_id(ShortId(target))),
    "session": (
        lambda p: p.session_id,
        lambda index, target: index.in_session(GROUP, SessionId(target)),
    ),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """An index and what is in it."""

    index: PendingIndex
    questions: Sequence[PendingQuestion]

    def batch(self, way: str, among: Sequence[PendingQuestion]) -> float:
        """Return the microseconds of one lookup."""
        name_of, look_up = WAYS[way]
        wanted = random.choices(among, k=BATCH)  # noqa: S311 - nothing secret
        targets = [_fresh(name_of(pending)) for pending in wanted]
        started = time.perf_counter_ns()
        for target in targets:
            look_up(self.index, target)
        return (time.perf_counter_ns() - started) / BATCH / 1_000


def measure(_folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    batches = QUICK_BATCHES if quick else BATCHES
    few, many = _fill(FEW), _fill(MANY)
    lines = []
    for number, way in enumerate(WAYS, start=1):
        rounds = [_round(way, few, many) for _ in range(batches)]
        at_few, at_many, at_same = (Sample(values) for values in zip(*rounds, strict=True))
        what = f"lookup by {way}, {MANY:,} open (limit: {FEW} open)"
        unit = Unit.MICROSECONDS
        lines += [
            line(f"c{number}.1", what, unit, at_many, at_most=50),
            line(f"c{number}.2", what, unit, at_many, at_few, at_most_times=2),
            line(f"c{number}.3", f"{what}, the same {FEW} each time", unit, at_same, at_few),
        ]
    return lines


def _round(way: str, few: Filled, many: Filled) -> tuple[float, float, float]:
    return (
        few.batch(way, few.questions),
        many.batch(way, many.questions),
        many.batch(way, many.questions[:: MANY // FEW]),
    )


def _fill(size: int) -> Filled:
    index = PendingIndex()
    questions = [_in_session(open_question(number), number) for number in range(size)]
    for pending in questions:
        index.put(pending)
    return Filled(index, questions)


def _in_session(pending: PendingQuestion, number: int) -> PendingQuestion:
    return replace(pending, group=GROUP, session_id=SessionId(f"s{number // PER_SESSION:06}"))


def _fresh(text: str) -> str:
    return text.encode().decode()
