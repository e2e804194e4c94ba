"""The program `agent_runner`: start or resume one agent with what an initial.json says."""

import argparse
import io
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_runner import cores
from agent_runner.asking.wire import whole
from agent_runner.cores.base import McpServer
from agent_runner.errors import (
    AgentRunnerError,
    BadFile,
    Exit,
    MailboxMissing,
    ProgramMissing,
    SessionUnknown,
)
from agent_runner.initial import Initial, find_ipc_dir, load_start
from agent_runner.running import Job, run
from agent_runner.session_ids import SessionIds, state_folder

DEFAULT_AGENT = "claude"
DEFAULT_CALL_LIMIT_SECONDS = 86_400.0
# The programs count milliseconds in 32 bits.
MAX_CALL_LIMIT_SECONDS = 2_147_483.0

_EXITS: Mapping[type[AgentRunnerError], Exit] = {
    BadFile: Exit.BAD_INITIAL,
    MailboxMissing: Exit.NO_MAILBOX,
    ProgramMissing: Exit.NO_PROGRAM,
    SessionUnknown: Exit.NO_SESSION,
}

_EPILOG = """\
example:  agent_runner --initial /ipc/input/4f2a/initial.json --agent codex -- -m gpt-5-codex

What follows `--` is handed to the agent program; with --agent acp it is the program itself.
Exit codes: 0 finished, 1 the agent failed, 2 usage, 3 no usable initial.json, 4 no mailbox, 5 no
such program, 6 the program is without the MCP server for ask_user, 7 the program does not know the
session, 143 stopped by a signal.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the command line and the environment say. Return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The log holds whatever a model writes; a terminal may know fewer characters.
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = _parser()
    options = parser.parse_args(arguments)
    agent = options.agent or os.environ.get("PYNCHY_AGENT") or DEFAULT_AGENT
    if agent not in cores.names():
        parser.error(f"there is no agent {agent!r}; there are {', '.join(cores.names())}")
    if not cores.load(agent).program and not options.extra:
        parser.error(f"the agent {agent} needs the program's command, such as: -- gemini --acp")
    try:
        return run(*_job(agent, options, parser))
    except AgentRunnerError as exc:
        print(f"agent_runner: {exc}", file=sys.stderr)  # noqa: T201 - a program's last words
        return _EXITS.get(type(exc), Exit.FAILED)


def _job(
    agent: str, options: argparse.Namespace, parser: argparse.ArgumentParser
) -> tuple[Job, dict[str, str]]:
    initial = load_start(options.initial)
    ipc_dir = find_ipc_dir(options.initial).absolute()
    session_id = options.session or initial.session_id or os.environ.get("PYNCHY_SESSION_ID")
    if "\0" in (session_id or ""):
        raise BadFile(f"{options.initial}: its session_id has a NUL in it")
    env = {
        **os.environ,
        # Whoever started us may have changed the folder and not this; OpenCode believes it.
        "PWD": str(Path.cwd()),
        "PYNCHY_IPC_DIR": str(ipc_dir),
        # Without one, the questions of this run could not be answered to it later.
        "PYNCHY_SESSION_ID": whole(session_id or str(uuid.uuid4())),
        "PYNCHY_AGENT": os.environ.get("PYNCHY_AGENT") or agent,
    }
    # Where it is must not depend on what else the server inherits.
    state = env["PYNCHY_STATE_DIR"] = str(_state_folder(env, parser).absolute())
    server = _server(env, parser)
    # Each core says it to the server in its own way; a program may hand on all that it inherits.
    env.pop("PYNCHY_MAX_WAIT", None)
    env.pop("PYNCHY_RESUMED", None)
    job = Job(
        agent=agent,
        core=cores.load(agent),
        session_id=env["PYNCHY_SESSION_ID"],
        resumes=bool(session_id) and isinstance(initial, Initial),
        ipc_dir=ipc_dir,
        initial=initial,
        server=server,
        book=SessionIds(Path(state), agent, ipc_dir),
        extra=tuple(options.extra),
    )
    return job, env


def _state_folder(env: Mapping[str, str], parser: argparse.ArgumentParser) -> Path:
    try:
        return state_folder(env)
    except RuntimeError:
        parser.error("there is no home: set HOME, or PYNCHY_STATE_DIR")


def _server(env: Mapping[str, str], parser: argparse.ArgumentParser) -> McpServer:
    try:
        limit = float(env.get("PYNCHY_MAX_WAIT") or DEFAULT_CALL_LIMIT_SECONDS)
    except ValueError:
        limit = 0.0
    if not 0 < limit <= MAX_CALL_LIMIT_SECONDS:
        longest = f"at most {MAX_CALL_LIMIT_SECONDS:.0f}"
        parser.error(f"PYNCHY_MAX_WAIT must be a number of seconds, such as 300, {longest}")
    names = ("PYNCHY_IPC_DIR", "PYNCHY_SESSION_ID", "PYNCHY_AGENT", "PYNCHY_STATE_DIR")
    return McpServer(
        # -P: the agent's working folder must not be where modules come from.
        command=(sys.executable, "-P", "-m", "agent_runner.agent_tools"),
        env={name: env[name] for name in names},
        # The first line of a prompt, perhaps: not for everybody who can list processes.
        inherits=("PYNCHY_TASK",),
        call_limit_seconds=limit,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent_runner",
        description="Start or resume one agent with what an initial.json says.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--initial", type=Path, required=True, help="the initial.json to begin with"
    )
    parser.add_argument(
        "--agent", help=f"{', '.join(cores.names())}; else PYNCHY_AGENT, then claude"
    )
    parser.add_argument(
        "--session", help="the session's id; else initial.json or PYNCHY_SESSION_ID"
    )
    parser.add_argument("extra", nargs="*", metavar="-- …", help="arguments for the agent program")
    return parser
