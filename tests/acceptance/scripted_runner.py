"""A runner program that speaks the contract of `agent_runner`, and does as a file tells it.

finish    say so, and end
fail      say so, and end with exit code 3
work      stay until the mode changes, then do that
hang      heed no SIGTERM and never end by itself
ask       ask a person and wait; then do what the mode says by then
ask-die   ask a person, and be killed as soon as the answer has been received
silent    end well without a word
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

from tests.acceptance.runner import record, wait_while

from agent_runner.asking import Asker, Option, Question, Request, ask
from agent_runner.initial import acknowledge, load_initial

ASKS = {"ask", "ask-die"}


def main(runs: Path, mode_file: Path, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    for name in ("--initial", "--agent", "--session"):
        parser.add_argument(name, required=True)
    told = parser.parse_args(arguments)
    initial = json.loads(Path(told.initial).read_bytes())
    environ = {k: v for k, v in os.environ.items() if k.startswith("PYNCHY_") or k == "HOME"}
    cwd = str(Path.cwd())
    fields = {"initial": initial, "session_id": told.session, "agent": told.agent}
    record(runs, "started", **fields, environ=environ, cwd=cwd)
    mode = mode_file.read_text()
    if mode == "silent":
        return 0
    say("started")
    print(f"hello from {told.agent}", flush=True)  # noqa: T201 - its output
    if "request_id" in initial:
        acknowledge(load_initial(Path(told.initial)), Path(os.environ["PYNCHY_IPC_DIR"]))
    if mode in ASKS:
        answer_of(mode, runs)
        mode = wait_while(mode, mode_file)
    if mode == "hang":
        signal.signal(signal.SIGTERM, lambda *_: record(runs, "asked to end"))
        record(runs, "deaf")
    mode = wait_while("hang" if mode == "hang" else "work", mode_file)
    if mode == "fail":
        say("failed", "it broke")
        return 3
    record(runs, "succeeded", session_id=told.session)
    say("finished")
    return 0


def answer_of(mode: str, runs: Path) -> None:
    ipc_dir, session = Path(os.environ["PYNCHY_IPC_DIR"]), os.environ["PYNCHY_SESSION_ID"]
    request = Request((Question("Deploy?", options=(Option("Yes"), Option("No"))),))

    async def wait() -> None:
        say("waiting")
        result = await ask(ipc_dir, request, session_id=session)
        record(runs, "answered", answers=[list(a.selected) for a in result.answers])

    async def wait_and_die() -> None:
        async with Asker(ipc_dir, session_id=session) as asker:
            await asker.ask(request)
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(wait_and_die() if mode == "ask-die" else wait())


def say(event: str, detail: str | None = None) -> None:
    """Publish a word of the session."""
    request_id = os.urandom(8).hex()
    body = {
        "v": 1,
        "type": "session:event",
        "request_id": request_id,
        "session_id": os.environ["PYNCHY_SESSION_ID"],
        "agent": os.environ["PYNCHY_AGENT"],
        "event": event,
    } | ({"detail": detail} if detail else {})
    tasks = Path(os.environ["PYNCHY_IPC_DIR"]) / "tasks"
    temporary = tasks / f".{request_id}.tmp"
    temporary.write_text(json.dumps(body))
    temporary.rename(tasks / f"{request_id}.json")
    deadline = time.monotonic() + 30
    while (tasks / f"{request_id}.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
