"""The launcher of agents in bubblewrap: a box of namespaces, without a daemon and without root.

The agent sees the machine's programs read-only at their usual paths. Everybody's homes, what other
programs keep for a while, and pynchy's data folder are hidden; its own folders lie where they lie
outside, so a session that was begun without a box can be resumed in one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from agent_runner import boxed, cores
from pynchy.errors import DeliveryFailed
from pynchy.launchers import sandbox_monitor
from pynchy.launchers.base import Launch
from pynchy.launchers.jobs import Program
from pynchy.launchers.process import check_agent, find_runner
from pynchy.launchers.sandbox import (
    SOCKET_INSIDE,
    Bind,
    Sandbox,
    SandboxLauncher,
    pynchys_own,
    resolved,
    run_alone,
)

PROGRAM = "bwrap"
# The smallest box that needs all that a true one needs.
TRIAL = [
    *("--unshare-user-try", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"),
    *("--dev", "/dev", "--proc", "/proc", "--size", "65536", "--perms", "1777"),
    *("--tmpfs", "/tmp", "--", "true"),  # noqa: S108 - the box has its own
]
_TMP = Path("/tmp")  # noqa: S108 - the box has its own
# What people and running programs keep: nothing of it is an agent's business.
_HIDDEN = tuple(map(Path, ("/home", "/root", "/run", "/tmp", "/var/tmp", "/mnt", "/media")))  # noqa: S108 - hidden, not used
# Root is their owner, with or without capabilities, and bwrap does not cover them all.
_DANGEROUS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
_HARMLESS = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME")
_RESOLV = Path("/etc/resolv.conf")


class BubblewrapLauncher(SandboxLauncher):
    """Runs each runner in a bubblewrap box, which dies with its supervisor."""

    can_cover = True

    def inside(self, path: Path) -> str:
        """See SandboxLauncher."""
        return str(path)

    def harmless(self) -> dict[str, str]:
        """See SandboxLauncher."""
        return {name: self._environ[name] for name in _HARMLESS if name in self._environ}

    def runner(self) -> str:
        """See SandboxLauncher."""
        return find_runner(self._settings, self._environ) or self._settings.runner

    def check(self, launch: Launch) -> None:
        """See JobLauncher."""
        check_agent(launch, self._settings, self.environment(), Path(launch.cwd))

    def box(self, box: Sandbox) -> Program:
        """See SandboxLauncher."""
        program = shutil.which(PROGRAM, path=self._environ.get("PATH"))
        if program is None:
            raise DeliveryFailed("bwrap is not installed (Debian: apt-get install bubblewrap)")
        self._check_sight(box)
        argv = [program, *self._namespaces(), *self._root(), *self._mounts(box.binds)]
        first = self.first(run_alone(boxed.__name__), box.command, *self._first_options())
        argv += ["--chdir", box.cwd, "--", *first]
        limits = ("--memory", str(self._settings.memory), "--tasks", str(self._settings.pids))
        # Unread until the box is shut: a path for modules or libraries may lead into it.
        env = {**self.harmless(), boxed.ENVIRONMENT: json.dumps(box.env)}
        return Program(self.monitored(argv, "--deaf", *limits), None, env)

    def hidden(self) -> list[Path]:
        """Return the folders that are empty in the box, none of them inside another."""
        home = Path(self._environ.get("HOME", "/"))
        paths = {p.resolve() for p in (*_HIDDEN, home, *self._covered()) if p.exists()}
        paths -= {Path("/")}
        return sorted(p for p in paths if not any(o != p and p.is_relative_to(o) for o in paths))

    def _covered(self) -> list[Path]:
        own = () if self.settings_file is None else (self.settings_file,)
        return resolved(self._settings.hide, own)

    def shown(self) -> list[Path]:
        """Return what is shown again though it lies in what is hidden."""
        wanted = [*pynchys_own(), *([_RESOLV.resolve()] if self._is_online() else [])]
        return [path for path in wanted if path.exists() and self._is_hidden(path)]

    def _is_online(self) -> bool:
        return self._settings.network == "host"

    def _is_hidden(self, path: Path) -> bool:
        return any(path.is_relative_to(hidden) for hidden in (*self.hidden(), self._data))

    def _namespaces(self) -> list[str]:
        argv = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
        argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if self._uid is None:
            argv.append("--unshare-user-try")
        else:
            # Only until the first program has become the agent's user.
            argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        return argv if self._is_online() else [*argv, "--unshare-net"]

    def _root(self) -> Iterator[str]:
        size = str(self._settings.memory)
        yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
        yield from ("--size", size, "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108 - of the box
        for path in _DANGEROUS:
            if os.path.lexists(path):
                yield from ("--ro-bind", path, path)
        for hidden in self.hidden():
            yield from _cover(hidden, size)

    def _mounts(self, binds: list[Bind]) -> Iterator[str]:
        shown = [Bind(path, str(path), writable=False) for path in self.shown()]
        early = [bind for bind in binds if not bind.source.is_relative_to(self._data)]
        for bind in [*shown, *early]:
            yield from self._bind(bind)
        # Only now: one of those may hold the data folder.
        yield from ("--tmpfs", str(self._data))
        for bind in binds:
            if bind not in early:
                yield from self._bind(bind)
        if self._settings.proxy:
            yield from (
                "--bind",
                f"{sandbox_monitor.SOCKETS}/{sandbox_monitor.SOCKET}",
                SOCKET_INSIDE,
            )
        for path in self._covered():
            if any(path.is_relative_to(bind.source) for bind in binds):
                yield from _cover(path, str(self._settings.memory))
        # Last: until now these had to take what is bound below them.
        for hidden in (*self.hidden(), self._data, Path("/dev")):
            if hidden != _TMP.resolve() and hidden.is_dir():
                yield from ("--remount-ro", str(hidden))

    def _bind(self, bind: Bind) -> Iterator[str]:
        if self._uid is not None:
            # What bwrap makes on the way is for its own user alone, who is not the agent.
            for parent in reversed(bind.source.parents):
                if self._is_hidden(parent):
                    yield from ("--perms", "0755", "--dir", str(parent))
        yield from ("--bind" if bind.writable else "--ro-bind", str(bind.source), bind.inside)

    def _first_options(self) -> list[str]:
        if self._uid is not None:
            return ["--uid", str(self._uid)]
        # The kernel does not count root's processes, and those of others only for the box alone
        # where it has a user namespace.
        return ["--processes", str(self._settings.pids)] if os.getuid() else []

    def _check_sight(self, box: Sandbox) -> None:
        """Raise DeliveryFailed if the box hides a program that it is to run."""
        seen = [*self.shown(), *(bind.source for bind in box.binds)]
        path = box.env.get("PATH")
        agent = box.launch.chosen or self._settings.agent or ""
        name = cores.load(agent).program if agent in cores.names() else agent
        for program in (box.command[0], shutil.which(name, path=path) if name else None):
            for place in _ways_to(program):
                if self._is_hidden(place) and not any(place.is_relative_to(s) for s in seen):
                    raise DeliveryFailed(
                        f"{program} cannot be seen in its box, which hides {place.parent}; "
                        f'show it with read = ["{place.parent}"]'
                    )


def _cover(path: Path, size: str) -> Iterator[str]:
    if not path.is_dir():
        yield from ("--ro-bind", "/dev/null", str(path))
    elif path == _TMP.resolve():
        yield from ("--size", size, "--perms", "1777", "--tmpfs", str(path))
    else:
        yield from ("--tmpfs", str(path))


def _ways_to(program: str | None) -> list[Path]:
    """Return the program's path, and where that leads if it is a link."""
    if program is None or not Path(program).is_absolute():
        return []
    path = Path(program)
    return [path.parent.resolve() / path.name, path.resolve()]
