"""Fail when a test was skipped that the list of allowed skips does not name."""

import fnmatch
import sys
from pathlib import Path
from xml.etree import ElementTree as ET


def main(report: str, allowed_file: str) -> int:
    """Return 0 when every skipped test of the JUnit report is allowed."""
    lines = Path(allowed_file).read_text().splitlines()
    allowed = [line.split(" # ")[0].strip() for line in lines if line and line[0] != "#"]
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - our own pytest wrote it
    skipped = [
        f"{c.get('classname')}::{c.get('name')}" for c in cases if c.find("skipped") is not None
    ]
    surprising = [name for name in skipped if not any(fnmatch.fnmatch(name, p) for p in allowed)]
    for name in surprising:
        print(f"skipped, and not on the list of allowed skips: {name}", file=sys.stderr)
    return 1 if surprising else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
