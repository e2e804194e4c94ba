"""The benchmark runs and reports every line. What it measures is not judged here.

The inbox's part needs a browser: tests/browser runs it. That of the agents needs their programs.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
WITH_PYTHON_ALONE = ("latency", "servers", "lookups", "recovery", "slack", "status", "echo")
LINES = {
    *("a1", "a2", "a3"),
    *(f"b{server}.{figure}" for server in (1, 2) for figure in range(1, 6)),
    *(f"c{way}.{figure}" for way in (1, 2, 3) for figure in range(1, 4)),
    *("d1", "d2", "e1", "e2", "g1", "g2", "g3", "n1.1", "n1.2"),
}


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.bench", "--quick", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_every_line_is_reported_with_its_goal() -> None:
    report = json.loads(run("--json", *WITH_PYTHON_ALONE))

    lines = {line["id"]: line for line in report["lines"]}
    assert set(lines) == LINES
    assert all(line["p50"] > 0 for line in lines.values())
    judged = {id_ for id_, line in lines.items() if line["passed"] is not None}
    assert judged == {id_ for id_, line in lines.items() if line["goal"]}
    assert {"a1", "b1.1", "b1.4", "c1.2", "d1"} <= judged


def test_one_part_alone_is_printed_as_a_table() -> None:
    report = run("lookups")

    assert "lookup by short id" in report
    assert "| pass |" in report or "| MISS |" in report
