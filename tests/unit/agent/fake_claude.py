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
reply          wait for a reply to a request, and add it to the file FAKE_REPLIES
remove PATH    remove a folder and all that is in it
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

PAUSE_SECONDS = 0.01


def main() -> int:
    prompt = read_prompt()
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
        elif word == "exit":
            return int(rest)
        else:
            do(word, rest)
    return 0


def do(word: str, rest: str) -> None:
    if word == "pid":
        Path(rest).write_text(str(os.getpid()))
    elif word == "reply":
        with Path(os.environ["FAKE_REPLIES"]).open("a") as file:
            file.write(json.dumps(next_reply()) + "\n")
    elif word == "remove":
        shutil.rmtree(rest)
    elif word == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def read_prompt() -> str:
    """Return the prompt, however it is put: all of stdin, or the first message on it."""
    if "--input-format" not in sys.argv:
        return sys.stdin.read()
    told = (json.loads(line) for line in iter(sys.stdin.readline, ""))
    [content] = next(one for one in told if one["type"] == "user")["message"]["content"]
    text: str = content["text"]
    return text


def next_reply() -> object:
    """Return what we are told next in reply to a request; None if we are told nothing more."""
    told = (json.loads(line) for line in iter(sys.stdin.readline, ""))
    return next((one["response"] for one in told if one["type"] == "control_response"), None)


def lines(script: str, *, is_bare: bool) -> list[str]:
    told = script.splitlines()
    return [line.removeprefix("bare ") for line in told if is_bare or not line.startswith("bare ")]


if __name__ == "__main__":
    sys.exit(main())
