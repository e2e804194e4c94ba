"""Run every part and print the report. Nothing is written but stdout."""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import (
    agents,
    desktop,
    echo,
    foreign,
    inbox,
    latency,
    lookups,
    parking,
    recovery,
    servers,
    slack,
    status,
    terminal,
)
from tests.bench.figures import Line, as_json, as_table

PARTS: dict[str, Callable[[Path, bool], list[Line]]] = {
    "latency": latency.measure,
    "servers": servers.measure,
    "lookups": lookups.measure,
    "recovery": recovery.measure,
    "slack": slack.measure,
    "inbox": inbox.measure,
    "status": status.measure,
    "agents": agents.measure,
    "parking": parking.measure,
    "terminal": terminal.measure,
    "foreign": foreign.measure,
    "desktop": desktop.measure,
    "echo": echo.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them by default")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it runs")
    options = parser.parse_args()
    machine, lines = _machine(), list[Line]()  # the load before we add our own
    for name in options.parts or PARTS:
        print(f"measuring {name} …", file=sys.stderr)  # noqa: T201 - progress
        with tempfile.TemporaryDirectory(prefix="pynchy-bench-") as folder:
            lines += PARTS[name](Path(folder), options.quick)
    report = as_json(lines, machine) if options.json else f"{machine}\n\n{as_table(lines)}"
    print(report)  # noqa: T201 - the report
    return 0


def _machine() -> str:
    system = f"{platform.system()} {platform.release().partition('-')[0]}"
    python = platform.python_version()
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {system}, Python {python}, load {load:.1f}"


if __name__ == "__main__":
    sys.exit(main())
