"""The desktop's part of the benchmark runs; what it measures is not judged here."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_desktops_lines_are_reported() -> None:
    command = [sys.executable, "-m", "tests.bench", "--quick", "--json", "desktop"]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=100)

    lines = {line["id"]: line for line in json.loads(ran.stdout)["lines"]}
    assert set(lines) == {"m1.1", "m1.2"}
    assert all(line["p50"] > 0 for line in lines.values())
