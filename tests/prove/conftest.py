"""How much is proved: what fits into `make prove`; all with PROVE=all; little with PROVE=sample.

Every sweep picks its points from all that there are, seeded and stratified, and reports how many
it tried: the report is printed at the end and, with PROVE_REPORT=FILE, written as JSON. The seed is
printed first; PROVE_SEED=N repeats it.
"""

import json
import os
import random
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
_PROVE = os.environ.get("PROVE", "sample")
IS_SAMPLE = _PROVE == "sample"
# What is repeated for every change tries the same; a proof tries something new each time.
_SEED = secrets.randbits(32) if _PROVE in {"1", "all"} else 20260115
SEED = int(os.environ.get("PROVE_SEED") or _SEED)


@dataclass
class Proof:
    """The scale of this run, and what it has found out so far."""

    scale: str
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    def choose(self, *, sample: T, prove: T, everything: T) -> T:
        """Return the value for this scale."""
        return {"sample": sample, "prove": prove, "all": everything}[self.scale]

    def pick(
        self, name: str, points: Sequence[T], most: int, stratum: Callable[[T], Hashable]
    ) -> list[T]:
        """Return at most so many points, from every stratum in turn, and report the coverage."""
        chance = random.Random(SEED)  # noqa: S311 - a repeatable choice, not a secret
        strata: dict[Hashable, list[T]] = defaultdict(list)
        for point in points:
            strata[stratum(point)].append(point)
        turns = list(strata.values())
        chance.shuffle(turns)
        for members in turns:
            chance.shuffle(members)
        picked: list[T] = []
        while len(picked) < min(most, len(points)):
            for members in turns:
                if members and len(picked) < most:
                    picked.append(members.pop())
        self.report(name, tried=len(picked), of=len(points), strata=len(strata), seed=SEED)
        return picked

    def report(self, name: str, **figures: Any) -> None:
        """Keep figures for the report at the end."""
        self.figures.setdefault(name, {}).update(figures)


_PROOF = Proof({"sample": "sample", "1": "prove", "all": "all"}[_PROVE])
_BEGUN = time.monotonic()


@pytest.fixture(scope="session")
def proof() -> Proof:
    return _PROOF


def pytest_report_header() -> str:
    return f"proof: {_PROOF.scale}, PROVE_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not _PROOF.figures:
        return
    passed = len(terminalreporter.stats.get("passed", []))
    took = round((time.monotonic() - _BEGUN) / 60)
    whole = {"tests": passed, "minutes": took, "cores": os.cpu_count(), "seed": SEED}
    _PROOF.figures = {"the whole run": whole, **_PROOF.figures}
    terminalreporter.section(f"proof ({_PROOF.scale})")
    for name, figures in _PROOF.figures.items():
        told = ", ".join(f"{key} {value}" for key, value in figures.items())
        terminalreporter.line(f"{name}: {told}")
    if path := os.environ.get("PROVE_REPORT"):
        Path(path).write_text(json.dumps(_PROOF.figures, indent=2, default=str) + "\n")
