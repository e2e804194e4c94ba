"""The tmux server that is watched: whether it runs, and through which session.

A control client is attached to a session like any other client. Nobody is to notice it: it has no
size, selects no window, and keeps no session alive that is to end with its last client.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from pynchy.errors import PynchyError
from pynchy.terminals.foreground import look_at
from pynchy.terminals.tmux_control import ControlClient, TmuxRefused, quote

OLDEST = (3, 2)

_VERSION = re.compile(r"(\d+)\.(\d+)")
_FLAGS = "no-output,ignore-size"
_SESSIONS = "#{pid} #{session_id} #{session_attached} #{destroy-unattached} #{session_activity}"
_SESSION = re.compile(r"^(\d+) (\$\d+) (\d+) (\S*) (\d+)$", re.MULTILINE)
_HOLDER = "@pynchy_watch"
_MOST_TRIES = 3
_OFF = ("0", "off")


class CannotWatch(PynchyError):
    """There is no tmux that could be watched; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class TmuxSession:
    """A session of a server, `server` being its process."""

    server: int
    id: str
    attached: int
    ends_unattached: bool
    active_at: int


@dataclass(frozen=True, slots=True)
class TmuxServer:
    """One server, by its socket; by tmux's usual one if that is empty."""

    socket: str = ""

    @classmethod
    def of(cls, socket: str | None, env: Mapping[str, str]) -> TmuxServer:
        """Return the server at the socket, else the one that we run in, else the usual one."""
        return cls(socket or env.get("TMUX", "").rsplit(",", 2)[0])

    async def check(self) -> None:
        """Raise CannotWatch if there is no tmux that is new enough, or none is running."""
        if shutil.which("tmux") is None:
            raise CannotWatch("there is no tmux on this machine; install tmux 3.2 or newer")
        if not look_at(os.getpid()).started:
            raise CannotWatch("who asks in a pane can only be seen on Linux")
        _, version = await self._run("-V")
        number = _VERSION.search(version)
        # Builds without a number are newer than any with one.
        if number and (int(number[1]), int(number[2])) < OLDEST:
            raise CannotWatch(f"{version.strip()} is too old; install tmux 3.2 or newer")
        code, said = await self._run("list-sessions", "-F", "#{session_id}")
        if code:
            where = f" at {self.socket}" if self.socket else ""
            raise CannotWatch(
                f"no tmux server is running{where} ({said.strip()}); start tmux first, or name "
                "its socket with --tmux-socket"
            )

    async def session(self, server: int = 0) -> TmuxSession | None:
        """Return a session to attach to; None if that server has none that may be."""
        code, listed = await self._run("list-sessions", "-F", _SESSIONS)
        if code:
            return None
        found = [_read_session(one) for one in _SESSION.finditer(listed)]
        usable = [
            one
            for one in found
            if server in {0, one.server} and not (one.ends_unattached and not one.attached)
        ]
        # Where somebody is attached, one more makes no difference to who attaches next.
        usable.sort(key=lambda one: (one.ends_unattached, not one.attached, one.active_at))
        return usable[0] if usable else None

    def attach(self, session: TmuxSession) -> ControlClient:
        """Return a client of the session, to be entered."""
        words = ["-N", "-u", "-C", "attach-session", "-f", _FLAGS, "-t", session.id]
        return ControlClient([*self._tmux(), *words], _env())

    def _tmux(self) -> list[str]:
        return ["tmux", *(["-S", self.socket] if self.socket else [])]

    async def _run(self, *words: str) -> tuple[int, str]:
        """Return the exit code, and what was printed, or said to be wrong."""
        process = await asyncio.create_subprocess_exec(
            *self._tmux(),
            "-N",
            *words,
            env=_env(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
        code = await process.wait()
        return code, (error if code else out).decode("utf-8", "replace")


async def must_leave(client: ControlClient) -> bool:
    """True if the client alone keeps a session that is to end with its last client."""
    asked = "#{session_attached} #{destroy-unattached}"
    attached, _, ends = (await client.do(f"display-message -p {quote(asked)}"))[0].partition(" ")
    return attached == "1" and ends not in _OFF


async def hold(client: ControlClient) -> None:
    """Be the only watch of the server. Raise CannotWatch if there is another that lives."""
    us = look_at(os.getpid())
    set_holder = f"set-option -so {_HOLDER} {quote(f'{us.group} {us.started}')}"
    for _ in range(_MOST_TRIES):
        try:
            await client.do(set_holder)
        except TmuxRefused:
            held = " ".join(await client.do(f"show-options -sqv {_HOLDER}"))
        else:
            return
        pid, _, started = held.partition(" ")
        if held == f"{us.group} {us.started}":
            return
        if pid.isdecimal() and started and look_at(int(pid)).started == started:
            raise CannotWatch(f"process {pid} watches this tmux server already")
        await client.do(f"set-option -su {_HOLDER}")
    raise CannotWatch("several processes want to watch this tmux server")


async def release(client: ControlClient) -> None:
    """Let another watch the server."""
    await client.do(f"set-option -su {_HOLDER}")


def _read_session(line: re.Match[str]) -> TmuxSession:
    server, name, attached, ends, active_at = line.groups()
    return TmuxSession(int(server), name, int(attached), ends not in _OFF, int(active_at))


def _env() -> dict[str, str]:
    # Where this is set, tmux refuses to attach: for people, that would be one inside the other.
    return {name: value for name, value in os.environ.items() if name not in {"TMUX", "TMUX_PANE"}}
