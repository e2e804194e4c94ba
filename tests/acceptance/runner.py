"""The command of the test's launcher: record what initial.json says, then do as told.

acknowledge   say that the answer was taken in, and end
linger        say so, and stay until the mode changes
exit-0        end well without a word
fail          end with exit code 3
hang          heed no SIGTERM and never end by itself
wait          stay until the mode changes, then do that
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from agent_runner.initial import acknowledge, find_ipc_dir, load_initial

PAUSE_SECONDS = 0.02
MAX_SECONDS = 120


def main(runs: Path, mode_file: Path, initial: Path, session_id: str) -> int:
    fields = {"initial": json.loads(initial.read_bytes()), "session_id": session_id}
    record(runs, "started", **fields, environ=os.environ["PYNCHY_SESSION_ID"])
    mode = wait_while("wait", mode_file)
    if mode == "fail":
        return 3
    if mode == "hang":
        signal.signal(signal.SIGTERM, lambda *_: record(runs, "asked to end"))
        wait_while("hang", mode_file)
    if mode in {"acknowledge", "linger"}:
        known = load_initial(initial)
        acknowledge(known, find_ipc_dir(initial))
        record(runs, "acknowledged")
    wait_while("linger", mode_file)
    record(runs, "succeeded")
    return 0


def wait_while(mode: str, mode_file: Path) -> str:
    deadline = time.monotonic() + MAX_SECONDS
    while (found := mode_file.read_text()) in {mode, ""} and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    return found


def record(runs: Path, what: str, **fields: object) -> None:
    line = json.dumps({"what": what, "pid": os.getpid(), **fields}) + "\n"
    fd = os.open(runs, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:4]), sys.argv[4]))
