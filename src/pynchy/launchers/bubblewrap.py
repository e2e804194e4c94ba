"""The launcher of agents in bubblewrap: a box of namespaces, without a daemon and without root.

The agent sees the machine's programs and what these need, read-only at their usual paths, and
nothing else of the machine: what is not named here is not there. Its own folders lie where they lie
outside, so a session that was begun without a box can be resumed in one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_runner import boxed, cores
from pynchy.errors import DeliveryFailed
from pynchy.launchers import sandbox_monitor, syscall_filter
from pynchy.launchers.base import Launch
from pynchy.launchers.box_folders import pynchys_own, resolved
from pynchy.launchers.jobs import Program
from pynchy.launchers.process import check_agent, find_runner
from pynchy.launchers.sandbox import Bind, Sandbox, SandboxLauncher, run_alone

PROGRAM = "bwrap"
# The smallest box that needs all that a true one needs.
TRIAL = [
    *("--unshare-user-try", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"),
    *("--dev", "/dev", "--proc", "/proc", "--size", "65536", "--perms", "1777"),
    *("--tmpfs", "/tmp", "--", "true"),  # noqa: S108 - the box has its own
]
_TMP = Path("/tmp")  # noqa: S108 - the box has its own
# Where programs are, with their libraries and data.
_PROGRAMS = (
    *map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")),
    *map(Path, ("/nix/store", "/gnu/store", "/sys/devices/system/cpu")),
)
# What programs look up, as patterns. Other files in /etc are about services and people.
_LOOKED_UP = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*"),
    *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "hostname", "resolv.conf"),
    *("gai.conf", "networks", "protocols", "services", "rpc", "ethertypes", "netconfig"),
    *("localtime", "timezone", "locale.alias", "locale.conf", "os-release", "debian_version"),
    *("lsb-release", "redhat-release", "alpine-release", "fonts", "mime.types", "magic"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted"),
    *("pki/java", "crypto-policies", "gnutls", "shells", "profile", "profile.d", "bash.bashrc"),
    *("bashrc", "bash_completion.d", "inputrc", "terminfo", "zsh", "vim", "vimrc", "nanorc"),
    *("gitconfig", "npmrc", "pip.conf", "wgetrc", "python3*", "perl", "php*", "java*"),
    *("maven", "xdg"),
    *("claude-code", "codex", "opencode", "static"),
)
# Root is their owner, with or without capabilities, and bwrap does not cover them all.
_DANGEROUS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
# They name the keys of everybody whose user is the agent's.
_TELLTALE = ("/proc/keys", "/proc/key-users")
_HARMLESS = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME")


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
        syscall_filter.own_abi()
        self._check_sight(box)
        argv = [program, *self._namespaces(), "--seccomp", sandbox_monitor.FILTER]
        argv += [*self._root(), *self._mounts(box.binds)]
        # The folder may be closed to all but the agent's user, who is not there yet.
        first = self.first(run_alone(boxed.__name__), box.command, *self._first_options(box))
        argv += ["--chdir", "/", "--", *first]
        # Unread until the box is shut: a path for modules or libraries may lead into it.
        env = {**self.harmless(), boxed.ENVIRONMENT: json.dumps(box.env)}
        return Program(self.monitored(argv, "--deaf", *self._watched()), None, env)

    def hidden(self) -> list[Path]:
        """Return what is empty in the box though it lies among programs, nothing in another."""
        home = Path(self._environ.get("HOME", "/")).resolve()
        paths = {p for p in (home, *self._covered()) if p.exists() and _is_program(p)}
        return sorted(p for p in paths if not any(o != p and p.is_relative_to(o) for o in paths))

    def _covered(self) -> list[Path]:
        own = () if self.settings_file is None else (self.settings_file,)
        return resolved(self._settings.hide, own)

    def shown(self) -> list[Path]:
        """Return what of ours is shown though it does not lie among programs."""
        return [path for path in pynchys_own() if path.exists() and self._is_hidden(path)]

    def _is_online(self) -> bool:
        return self._settings.network == "host"

    def _is_hidden(self, path: Path) -> bool:
        covers = (*self.hidden(), self._data)
        return not _is_program(path) or any(path.is_relative_to(cover) for cover in covers)

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
        for path in _PROGRAMS:
            yield from _as_it_is(path, path)
        yield from ("--dev", "/dev", "--proc", "/proc")
        yield from ("--size", size, "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108 - of the box
        yield from ("--size", size, "--perms", "1777", "--tmpfs", str(_TMP))
        for name in _DANGEROUS:
            if os.path.lexists(name):
                yield from ("--ro-bind", name, name)
        for name in _TELLTALE:
            if os.path.lexists(name):
                yield from _cover(Path(name))
        for path in (p for pattern in _LOOKED_UP for p in sorted(Path("/etc").glob(pattern))):
            # A link may lead to where nothing is in the box.
            yield from _as_it_is(path, path if _is_program(path.resolve()) else path.resolve())
        for hidden in self.hidden():
            yield from _cover(hidden)

    def _mounts(self, binds: list[Bind]) -> Iterator[str]:
        shown = [Bind(path, str(path), writable=False) for path in self.shown()]
        early = [bind for bind in binds if not bind.source.is_relative_to(self._data)]
        for bind in [*shown, *early]:
            yield from self._bind(bind)
        # Only now: one of those may hold the data folder.
        yield from self._way_to(self._data)
        yield from ("--tmpfs", str(self._data))
        for bind in binds:
            if bind not in early:
                yield from self._bind(bind)
        for path in self._covered():
            if any(path.is_relative_to(bind.source) for bind in binds):
                yield from _cover(path)
        # Last: until now these had to take what is bound below them.
        for hidden in (*self.hidden(), self._data, Path("/dev"), Path("/")):
            if hidden.is_dir():
                yield from ("--remount-ro", str(hidden))

    def _bind(self, bind: Bind) -> Iterator[str]:
        yield from self._way_to(bind.source)
        yield from ("--bind" if bind.writable else "--ro-bind", str(bind.source), bind.inside)

    def _way_to(self, path: Path) -> Iterator[str]:
        return _folders(parent for parent in path.parents if self._is_hidden(parent))

    def _first_options(self, box: Sandbox) -> Iterator[str]:
        yield from ("--cwd", box.cwd, "--file-bytes", str(self._settings.disk))
        if self._settings.proxy:
            yield from ("--channel", sandbox_monitor.CHANNEL)
        if self._uid is not None:
            yield from ("--uid", str(self._uid))
        elif os.getuid():
            # The kernel does not count root's processes, and those of others only for the box alone
            # where it has a user namespace.
            yield from ("--processes", str(self._settings.pids))

    def _watched(self) -> Iterator[str]:
        yield from ("--memory", str(self._settings.memory), "--tasks", str(self._settings.pids))
        if self._settings.has_unix_sockets:
            yield "--unix-sockets"

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


def _is_program(path: Path) -> bool:
    """Return True for what lies where programs are; the path is one that was resolved."""
    return any(path.is_relative_to(place) for place in _PROGRAMS)


def _as_it_is(path: Path, source: Path) -> Iterator[str]:
    """Show what is there: a link as a link."""
    if not path.exists():
        return
    yield from _folders(path.parents)
    if source.is_symlink():
        yield from ("--symlink", str(source.readlink()), str(path))
    else:
        yield from ("--ro-bind", str(source), str(path))


def _folders(parents: Iterable[Path]) -> Iterator[str]:
    """Make the folders for everybody: bwrap would make them for its own user alone."""
    for parent in sorted(parents):
        if parent != Path("/"):
            yield from ("--perms", "0755", "--dir", str(parent))


def _cover(path: Path) -> Iterator[str]:
    yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))


def _ways_to(program: str | None) -> list[Path]:
    """Return the program's path, and where that leads if it is a link."""
    if program is None or not Path(program).is_absolute():
        return []
    path = Path(program)
    return [path.parent.resolve() / path.name, path.resolve()]
