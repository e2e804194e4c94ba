"""The inbox's part of the benchmark runs. What it measures is not judged here."""

import asyncio
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def test_the_inbox_is_measured() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench", "--quick", "--json", "inbox"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()

    assert process.returncode == 0
    lines = {line["id"]: line for line in json.loads(out)["lines"]}
    assert set(lines) == {"f1", "f2", "f3"}
    assert lines["f2"]["passed"]
