"""The command of the sweep's launcher: record what initial.json says, then do as told.

acknowledge   say that the answer was taken in, and end well
exit-0        end well without a word
fail-first    the first run fails, every other acknowledges
wait          acknowledge when the file `go` is there
"""

import json
import os
import sys
import time
from pathlib import Path

from agent_runner.initial import acknowledge, find_ipc_dir, load_initial

PAUSE_SECONDS = 0.01
MAX_SECONDS = 60


def main(mode: str, runs: Path, initial: Path, session_id: str) -> int:
    first = not runs.exists()
    record(runs, "started", initial=json.loads(initial.read_bytes()), session_id=session_id)
    if mode == "fail-first" and first:
        return 3
    if mode == "wait":
        deadline = time.monotonic() + MAX_SECONDS
        while not runs.with_name("go").exists() and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
    record(runs, "applied")
    if mode != "exit-0":
        acknowledge(load_initial(initial), find_ipc_dir(initial))
    return 0


def record(runs: Path, what: str, **fields: object) -> None:
    line = json.dumps({"what": what, "pid": os.getpid(), **fields}) + "\n"
    fd = os.open(runs, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]))
