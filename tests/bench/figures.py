"""What the benchmark prints: lines of ours, the limit beside it, the goal, and pass or miss."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class Unit(StrEnum):
    MICROSECONDS = "µs"
    MILLISECONDS = "ms"
    KILOBYTES = "kB"
    MEGABYTES = "MB"
    PERCENT = "%"


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements of one thing."""

    values: Sequence[float]

    @property
    def p50(self) -> float:
        return self._at(0.50)

    @property
    def p99(self) -> float:
        return self._at(0.99)

    def _at(self, share: float) -> float:
        ranked = sorted(self.values)
        return ranked[min(round(share * len(ranked)), len(ranked) - 1)]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report. `passed` is None where there is no goal."""

    id: str
    what: str
    unit: Unit
    p50: float
    p99: float | None = None
    limit_p50: float | None = None
    limit_p99: float | None = None
    goal: str = ""
    passed: bool | None = None

    @property
    def ratio(self) -> float | None:
        return self.p50 / self.limit_p50 if self.limit_p50 else None


def line(  # noqa: PLR0913 - what a line has
    id_: str,
    what: str,
    unit: Unit,
    ours: Sample,
    limit: Sample | None = None,
    *,
    at_most: float | None = None,
    at_most_times: float | None = None,
) -> Line:
    """Return the line of a sample, with a goal in its unit or in multiples of the limit's p50."""
    goal, passed = "", None
    if at_most is not None:
        goal, passed = f"≤ {at_most:g} {unit}", ours.p50 <= at_most
    elif at_most_times is not None and limit is not None:
        goal, passed = f"≤ {at_most_times:g} x limit", ours.p50 <= at_most_times * limit.p50
    return Line(
        id_,
        what,
        unit,
        ours.p50,
        ours.p99,
        limit and limit.p50,
        limit and limit.p99,
        goal,
        passed,
    )


def as_json(lines: Sequence[Line], machine: str) -> str:
    rows = [asdict(line) | {"ratio": line.ratio} for line in lines]
    return json.dumps({"machine": machine, "lines": rows}, indent=2, ensure_ascii=False)


def as_table(lines: Sequence[Line]) -> str:
    """Return a Markdown table: docs/benchmarks.md holds one."""
    rows = [
        ("", "what", "p50", "p99", "limit p50", "limit p99", "ratio", "goal", ""),
        *(_row(line) for line in lines),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    head, *body = [_padded(row, widths) for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([head, rule, *body])


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
    return "| " + " | ".join(cells) + " |"


def _row(line: Line) -> tuple[str, ...]:
    ratio = line.ratio
    verdict = {True: "pass", False: "MISS", None: ""}[line.passed]
    return (
        line.id,
        line.what,
        _number(line.p50, line.unit),
        _number(line.p99, line.unit),
        _number(line.limit_p50, line.unit),
        _number(line.limit_p99, line.unit),
        "" if ratio is None else f"{ratio:.2f}",
        line.goal,
        verdict,
    )


def _number(value: float | None, unit: Unit) -> str:
    return "" if value is None else f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
