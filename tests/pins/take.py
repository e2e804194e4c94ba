"""Take the snapshots again from the code as it is: python -m tests.pins.take.

What the difference shows is what others would notice. The data folder of 0.1 is not taken again.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from tests.pins import still
from tests.pins.agents_side import see_agents_side
from tests.pins.shapes import write_snapshot
from tests.pins.shell import see_agent_runner
from tests.pins.world import see_world

STILL = {
    "commands": still.commands,
    "exit-codes": still.exit_codes,
    "settings": still.settings,
    "variables": still.variables,
    "routes": still.http_routes,
    "words": still.words,
    "seams": still.seams,
    "programs": still.programs,
    "names": still.public_names,
}


def main() -> None:
    """Write every snapshot."""
    for name, look in STILL.items():
        write_snapshot(name, look())
    with tempfile.TemporaryDirectory() as folder:
        for name, seen in asyncio.run(see_world(Path(folder, "world"))).items():
            write_snapshot(name, seen)
        write_snapshot("runner", asyncio.run(see_agent_runner(Path(folder, "runner"))))
        for name, seen in asyncio.run(see_agents_side(Path(folder, "ipc"))).items():
            write_snapshot(f"agent-{name}", seen)


def plain(value: object) -> object:
    """Return the value as a snapshot holds it."""
    return json.loads(json.dumps(value))


if __name__ == "__main__":
    main()
