"""Tell phux, in whose terminal this runs, that an agent waits for a person.

A report is made beside the question: it never holds it up, and never makes it fail. Each is one
call of `phux ask`, which is killed when it takes too long. Nothing is written into the terminal.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Thread

from agent_runner.asking._model import Question, Request
from agent_runner.asking.wire import whole

_SECONDS = 5.0
_ELLIPSIS = "…"
# As phux takes them, in bytes.
_MAX_QUESTION, _MAX_ID, _MAX_SUGGESTION, _MAX_SUGGESTIONS = 4_096, 128, 512, 16
_TERMINAL = re.compile(r"@?([0-9]{1,10})")
# An argument cannot hold the first of them, and a viewer's terminal would take others for commands.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def report(prefix: str, request: Request, environ: Mapping[str, str]) -> None:
    """Let phux know what is asked, in the background.

    What was read from the title of a terminal is not reported: phux knows that better.
    """
    calls = [] if request.terminal is not None else list(_calls(prefix, request, environ))
    if calls:
        with suppress(RuntimeError):  # there are as many threads as there may be
            Thread(target=_make, args=(calls, dict(environ)), daemon=True).start()


def _calls(prefix: str, request: Request, environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Give the arguments of each call: one for each question."""
    terminal = _TERMINAL.fullmatch(environ.get("PHUX_TERMINAL_ID", ""))
    socket = environ.get("PHUX_SOCKET")
    at = [f"--socket={socket}"] if socket else []
    for number, question in enumerate(_asked(request), 1):
        name = f"{prefix}:{request.request_id}" + (f"#{number}" if number > 1 else "")
        text = _cut(question.question, _MAX_QUESTION)
        # A name that is cut short would not be known again as ours.
        if terminal and text and len(name.encode(errors="replace")) <= _MAX_ID:
            offered = [_cut(option.label, _MAX_SUGGESTION) for option in question.options]
            suggested = [f"--suggest={one}" for one in offered if one][:_MAX_SUGGESTIONS]
            # Behind "--" nothing is an option, whatever it begins with.
            yield ["ask", f"--id={name}", *suggested, *at, "--", f"@{terminal[1]}", text]


def _asked(request: Request) -> tuple[Question, ...]:
    if request.approval is not None:
        return (Question(request.approval.action),)
    if request.permission is not None:
        return (Question(f"May {request.permission.program} use {request.permission.tool}?"),)
    return request.questions


def _cut(text: str, most: int) -> str:
    """Return at most so many bytes of the text, in whole characters and one line."""
    data = _CONTROL.sub(" ", whole(text)).strip().encode()
    if len(data) <= most:
        return data.decode()
    return data[: most - len(_ELLIPSIS.encode())].decode(errors="ignore") + _ELLIPSIS


def _make(calls: list[list[str]], environ: dict[str, str]) -> None:
    program = shutil.which("phux", path=environ.get("PATH"))
    for arguments in calls if program else ():
        with suppress(OSError, ValueError):
            _call([str(program), *arguments], environ)


def _call(command: list[str], environ: dict[str, str]) -> None:
    process = subprocess.Popen(  # noqa: S603 - phux on the person's own PATH, and no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
        start_new_session=True,
    )
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
