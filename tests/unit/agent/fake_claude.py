"""A program that stands in for `claude`: do what the lines of the file FAKE_SCRIPT say.

lease          leave a lease of the session, as our MCP server does where files cannot be locked
call           say that a tool was called, as our MCP server does
print TEXT     print a line
complain TEXT  print a line to stderr
wait PATH      go on when the file is there
exit CODE      end
pid PATH       write the number of this process
deaf           pass over SIGTERM
bare LINE      do what the line says if there is no prompt
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

PAUSE_SECONDS = 0.01


def main() -> int:
    prompt = sys.stdin.read()
    Path(os.environ["FAKE_PROMPT"]).write_text(prompt)
    for line in lines(Path(os.environ["FAKE_SCRIPT"]).read_text(), is_bare=not prompt):
        word, _, rest = line.partition(" ")
        if word == "lease":
            tasks = Path(os.environ["PYNCHY_IPC_DIR"]) / "tasks"
            fields = {"v": 1, "boot_id": "", "session_id": os.environ["PYNCHY_SESSION_ID"]}
            (tasks / "server.lease").write_text(json.dumps(fields))
        elif word == "call":
            config = json.loads(sys.argv[sys.argv.index("--mcp-config") + 1])
            Path(config["mcpServers"]["pynchy"]["env"]["PYNCHY_CALLED"]).touch()
        elif word in {"print", "complain"}:
            out = sys.stdout if word == "print" else sys.stderr
            print(rest, file=out, flush=True)
        elif word == "wait":
            while not Path(rest).exists():
                time.sleep(PAUSE_SECONDS)
        elif word == "pid":
            Path(rest).write_text(str(os.getpid()))
        elif word == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif word == "exit":
            return int(rest)
    return 0


def lines(script: str, *, is_bare: bool) -> list[str]:
    told = script.splitlines()
    return [line.removeprefix("bare ") for line in told if is_bare or not line.startswith("bare ")]


if __name__ == "__main__":
    sys.exit(main())
