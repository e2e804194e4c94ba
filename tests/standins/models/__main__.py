"""Run the scripted model until it is interrupted: `python -m tests.standins.models SCRIPT`."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path

from tests.standins.models.script import load_script
from tests.standins.models.server import ModelStandIn


def main() -> int:
    """Serve the script of a JSON file and print the address."""
    parser = argparse.ArgumentParser(prog="python -m tests.standins.models", description=__doc__)
    parser.add_argument("script", type=Path, help='such as [[{"say": "Hello."}]]')
    options = parser.parse_args()
    try:
        turns = load_script(options.script)
    except (OSError, ValueError) as exc:
        parser.error(str(exc))
    with ModelStandIn(turns) as model:
        print(f"the scripted model is at {model.url}", flush=True)  # noqa: T201 - the point
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
