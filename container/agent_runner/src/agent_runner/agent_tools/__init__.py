"""The MCP server that an agent asks through: `python -m agent_runner.agent_tools`.

Nothing but JSON-RPC reaches stdout. When stdin ends, or on SIGTERM, waiting calls are cancelled,
the host is told, and the process ends with 0.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from agent_runner.agent_tools import _server
from agent_runner.agent_tools._ask_user import PROGRESS_SECONDS, Identity, Tools
from agent_runner.agent_tools._server import Server
from agent_runner.agent_tools._stdio import Writer, is_read, start_reader
from agent_runner.agent_tools._tasks import TaskBook, Tasks
from agent_runner.asking import Asker
from agent_runner.errors import MailboxMissing
from agent_runner.session_ids import state_folder

EXIT_USAGE = 2
NOTIFY = "notify"

_FLUSH_SECONDS = 1.0


def main(
    ipc_dir: Path, identity: Identity, state_dir: Path | None = None, profile: str = ""
) -> int:
    """Serve the client on stdin and stdout until it ends. Return the exit code."""
    stdout = _take_stdout()
    serving = serve(ipc_dir, identity, stdin=0, stdout=stdout, state_dir=state_dir, profile=profile)
    try:
        asyncio.run(serving)
    except MailboxMissing as exc:
        return complain(
            f"{exc}. Start the host (`pynchy serve`), which makes the mailbox of each group,"
            " and mount its tasks, responses and input folders where PYNCHY_IPC_DIR points."
        )
    return 0


def main_as_told(
    ipc_dir: Path, environ: Mapping[str, str], client: str = "", profile: str = ""
) -> int:
    """Serve as the environment says who asks and how long its client waits.

    `client` is the agent program, where it is known: it may say which session it is. For `profile`
    see `serve`.
    """
    max_wait = _seconds(environ.get("PYNCHY_MAX_WAIT", ""))
    if max_wait is not None and not max_wait > 0:
        return complain("PYNCHY_MAX_WAIT must be a number of seconds, such as 300.")
    called = environ.get("PYNCHY_CALLED")
    told = environ.get("PYNCHY_SESSION_ID", "")
    identity = Identity(
        session_id=told or _server.session_in(environ, client),
        session_key="" if told else _server.session_key(client),
        agent=environ.get("PYNCHY_AGENT") or client,
        task=environ.get("PYNCHY_TASK") or (_server.workplace() if client else ""),
        max_wait=max_wait,
        called=Path(called) if called else None,
        granted=environ.get("PYNCHY_RESUMED", ""),
        denies=environ.get("PYNCHY_DENIES") == "1",
        permits=environ.get("PYNCHY_PERMISSIONS") == "1",
    )
    return main(ipc_dir, identity, _state_dir(environ), profile)


def _state_dir(environ: Mapping[str, str]) -> Path | None:
    try:
        return state_folder(environ)
    except RuntimeError:  # there is no home
        return None


def _seconds(text: str) -> float | None:
    """Return the number; None where none is given, and nan for what is not a number."""
    try:
        return float(text) if text else None
    except ValueError:
        return float("nan")


def complain(message: str) -> int:
    """Say on stderr what is wrong and what to do. Return the exit code for it."""
    print(f"pynchy: {message}", file=sys.stderr)  # noqa: T201 - stdout belongs to the client
    return EXIT_USAGE


async def serve(  # noqa: PLR0913 - all that one client needs
    ipc_dir: Path,
    identity: Identity,
    *,
    stdin: int,
    stdout: int,
    progress_seconds: float = PROGRESS_SECONDS,
    state_dir: Path | None = None,
    profile: str = "",
) -> None:
    """Serve one client over two file descriptors. Raise MailboxMissing.

    Without a `state_dir` no call becomes a task, and what a hook has told is not known. `profile`
    is NOTIFY for OpenFlow's tools in place of our own.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    asker = Asker(
        ipc_dir,
        session_id=identity.session_id,
        max_wait=identity.max_wait,
        is_heard=partial(is_read, stdout),
        granted=identity.granted,
        confirms=True,
        state_dir=state_dir,
        agent=identity.agent,
        task=identity.task,
    )
    writer = Writer(stdout, on_broken=stop.set)
    async with asker:
        async with asyncio.TaskGroup() as tasks:
            if profile == NOTIFY:
                from agent_runner.agent_tools._notify import NotifyTools  # noqa: PLC0415 - few do

                tools: Tools = NotifyTools(asker, identity, tasks, progress_seconds)
            else:
                waiting = Tasks(asker, TaskBook(state_dir, ipc_dir)) if state_dir else None
                tools = Tools(asker, identity, tasks, progress_seconds, waiting)
            server = Server(tools, writer, tasks, session_key=identity.session_key)
            start_reader(stdin, server.receive, stop.set)
            await stop.wait()
            server.cancel_all()
        # Before the lease ends: what is still to be passed on would be taken for lost.
        await asyncio.to_thread(writer.close, _FLUSH_SECONDS)


def _take_stdout() -> int:
    """Keep stdout for JSON-RPC: whatever else prints goes to stderr."""
    own = os.dup(1)
    os.dup2(2, 1)
    return own
