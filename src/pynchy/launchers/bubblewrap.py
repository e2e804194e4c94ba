"""The launcher of agents in bubblewrap: a box of namespaces, without a daemon and without root.

The agent sees the machine's programs and what these need, read-only at their usual paths, and
nothing else of the machine: what is not named here is not there. Its own folders lie where they lie
outside, so a session that was begun without a box can be resumed in one.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_runner import boxed
from pynchy.errors import DeliveryFailed
from pynchy.launchers import sandbox_monitor, syscall_filter
from pynchy.launchers.base import Launch
from pynchy.launchers.box_folders import BoxFolders, follow, outermost, pynchys_own, resolved
from pynchy.launchers.jobs import Program
from pynchy.launchers.process import agent_program, check_agent, find_runner
from pynchy.launchers.sandbox import Bind, Sandbox, SandboxLauncher, run_alone

PROGRAM = "bwrap"
# The smallest box that needs all that a true one needs.
TRIAL = [
    *("--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"),
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
# More mounts than that take long to make.
_MAX_PIECES = 500
_HARMLESS = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME")


class BubblewrapLauncher(SandboxLauncher):
    """Runs each runner in a bubblewrap box, which dies with its supervisor."""

    can_cover = True

    def inside(self, path: Path, places: BoxFolders) -> str:
        """See SandboxLauncher."""
        del places
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
        program = self.tool(PROGRAM)
        syscall_filter.own_abi()
        self._check_sight(box)
        argv = [program, *self._namespaces(program), "--seccomp", sandbox_monitor.FILTER]
        argv += [*self._root(), *self._mounts(box.binds)]
        # The folder may be closed to all but the agent's user, who is not there yet.
        first = self.first(run_alone(boxed.__name__), box.command, *self._first_options(box))
        argv += ["--chdir", "/", "--", *first]
        # Unread until the box is shut: a path for modules or libraries may lead into it.
        env = {**self.harmless(), boxed.ENVIRONMENT: json.dumps(box.env)}
        return Program(self.monitored(argv, "--deaf", *self._watched()), None, env)

    def hidden(self) -> list[Path]:
        """Return what is left out of the box though it lies among programs, nothing in another."""
        home = Path(self._environ.get("HOME", "/")).resolve()
        return outermost(sorted({p for p in (home, *self._left_out()) if _is_program(p)}))

    def _left_out(self) -> list[Path]:
        """Return what no folder of the box shows."""
        own = () if self.settings_file is None else (self.settings_file,)
        return [*resolved(self._settings.hide, own), self._data]

    def shown(self) -> list[Path]:
        """Return what of ours is shown though it does not lie among programs."""
        return [path for path in pynchys_own() if self._is_hidden(path)]

    def _is_online(self) -> bool:
        return self._settings.network == "host"

    def _is_hidden(self, path: Path) -> bool:
        return not _is_program(path) or any(path.is_relative_to(p) for p in self.hidden())

    def _namespaces(self, program: str) -> list[str]:
        argv = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
        argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if self._uid is None:
            argv += user_namespace(program, with_others=self._settings.user_namespaces)
        else:
            # Only until the first program has become the agent's user.
            argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        return argv if self._is_online() else [*argv, "--unshare-net"]

    def _view(self, *more: Path) -> View:
        uid = os.getuid() if self._uid is None else self._uid
        return View([*self._left_out(), *more], uid)

    def _root(self) -> Iterator[str]:
        size, view = str(self._settings.memory), self._view(*self.hidden())
        for path in _PROGRAMS:
            yield from view.as_it_is(path, path)
        yield from ("--dev", "/dev", "--proc", "/proc")
        yield from ("--size", size, "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108 - of the box
        yield from ("--size", size, "--perms", "1777", "--tmpfs", str(_TMP))
        for name in _DANGEROUS:
            if os.path.lexists(name):
                yield from ("--ro-bind", name, name)
        for name in _TELLTALE:
            if os.path.lexists(name):
                yield from ("--ro-bind", "/dev/null", name)
        for path in (p for pattern in _LOOKED_UP for p in sorted(Path("/etc").glob(pattern))):
            # A link may lead to where nothing is in the box.
            yield from view.as_it_is(path, path if _is_program(path.resolve()) else path.resolve())

    def _mounts(self, binds: list[Bind]) -> Iterator[str]:
        view = self._view()
        shown = {*self.shown(), *(bind.source for bind in binds if not bind.writable)}
        # Folders before what lies in them.
        read = sorted(path for path in shown if not path.is_relative_to(self._data))
        for path in read:
            yield from self._way_to(path)
            if view.is_partial(path):
                yield from view.in_pieces(path, path, "--tmpfs")
            else:
                yield from ("--ro-bind", str(path), str(path))
        early = [b for b in binds if b.writable and not b.source.is_relative_to(self._data)]
        for bind in early:
            yield from self._bind(bind)
        # Only now: one of those may hold the data folder.
        yield from self._way_to(self._data)
        yield from ("--tmpfs", str(self._data))
        for bind in binds:
            if bind.source.is_relative_to(self._data):
                yield from self._bind(bind)
        # Last: until now these had to take what is bound below them.
        partial = [path for path in read if view.is_partial(path) and path.is_dir()]
        for folder in (*partial, self._data, Path("/dev"), Path("/")):
            yield from ("--remount-ro", str(folder))

    def _bind(self, bind: Bind) -> Iterator[str]:
        yield from self._way_to(bind.source)
        yield from ("--bind" if bind.writable else "--ro-bind", str(bind.source), bind.inside)

    def _way_to(self, path: Path) -> Iterator[str]:
        return _folders(parent for parent in path.parents if self._is_hidden(parent))

    def _first_options(self, box: Sandbox) -> Iterator[str]:
        yield from ("--cwd", box.cwd, "--file-bytes", str(self._settings.disk))
        if self._settings.proxy:
            yield from ("--lines", sandbox_monitor.LINES)
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
        if self._settings.user_namespaces:
            yield "--user-namespaces"
        if self._uid is None and not os.getuid():
            yield "--guard-devices"

    def _check_sight(self, box: Sandbox) -> None:
        """Raise DeliveryFailed if the box hides a program that it is to run."""
        seen = [*self.shown(), *(bind.source for bind in box.binds)]
        path = box.env.get("PATH")
        agent = box.launch.chosen or self._settings.agent or ""
        name = agent_program(agent, self._settings)
        for program in (box.command[0], shutil.which(name, path=path) if name else None):
            for place in _ways_to(program):
                if self._is_hidden(place) and not any(place.is_relative_to(s) for s in seen):
                    raise DeliveryFailed(
                        f"{program} cannot be seen in its box, which hides {place.parent}; "
                        f'show it with read = ["{place.parent}"]'
                    )


def user_namespace(program: str, *, with_others: bool = False) -> list[str]:
    """Return how bwrap is told to give a box a user namespace, and others below it or none."""
    is_roots = not os.getuid() or Path(program).stat().st_mode & stat.S_ISUID
    if not is_roots and not with_others:
        return ["--unshare-user", "--disable-userns"]
    # Root can do without one, and so can a bwrap that is root's; the filter refuses others.
    return ["--unshare-user-try"]


def _is_program(path: Path) -> bool:
    """Return True for what lies where programs are; the path is one that was resolved."""
    return any(path.is_relative_to(place) for place in _PROGRAMS)


@dataclass(frozen=True, slots=True)
class View:
    """How folders of the machine are shown to a user: without what is left out of them."""

    left_out: list[Path]
    uid: int

    def as_it_is(self, path: Path, source: Path) -> Iterator[str]:
        """Show at that path what is there, a link as a link."""
        if not path.exists() or any(source.is_relative_to(hidden) for hidden in self.left_out):
            return
        yield from _folders(path.parents)
        if source.is_symlink():
            yield from ("--symlink", str(source.readlink()), str(path))
        elif self.is_partial(source):
            yield from self.in_pieces(path, source, "--dir")
        else:
            yield from ("--ro-bind", str(source), str(path))

    def is_partial(self, source: Path) -> bool:
        """Return True if something in it is left out, or all of it."""
        return any(hidden.is_relative_to(source) for hidden in self.left_out)

    def in_pieces(self, path: Path, source: Path, how: str) -> Iterator[str]:
        """Show what lies in the folder one by one, with the path made as bwrap is told.

        Nothing is put over the rest: the kernel takes a cover away when what lies beneath it is
        replaced outside.
        """
        if not source.is_dir():
            return
        yield from ("--perms", self._mode(source), how, str(path))
        for entry in self._entries(source):
            inside = path / entry.name
            if entry.is_symlink():
                yield from ("--symlink", str(entry.readlink()), str(inside))
            elif self.is_partial(entry):
                yield from self.in_pieces(inside, entry, "--dir")
            else:
                # Somebody may have removed it by then.
                yield from ("--ro-bind-try", str(entry), str(inside))

    def _entries(self, source: Path) -> list[Path]:
        if source in self.left_out:
            return []
        hidden = next(path for path in self.left_out if path.is_relative_to(source))
        try:
            entries = sorted(source.iterdir())
        except OSError as exc:
            why = f"{exc.strerror} in {source}"
        else:
            if len(entries) <= _MAX_PIECES:
                return entries
            why = f"{source} has more than {_MAX_PIECES} other entries"
        raise DeliveryFailed(f"{hidden} cannot be left out: {why}; move it to a folder of its own")

    def _mode(self, folder: Path) -> str:
        """Return the mode of what stands for the folder: the user may do as much in both."""
        if os.getuid():
            return "0755"
        info = folder.stat()
        bits = (info.st_mode >> 6 if info.st_uid == self.uid else info.st_mode) & 0o5
        return f"{bits * 0o111:04o}"


def _folders(parents: Iterable[Path]) -> Iterator[str]:
    """Make the folders for everybody: bwrap would make them for its own user alone."""
    for parent in sorted(parents):
        if parent != Path("/"):
            yield from ("--perms", "0755", "--dir", str(parent))


def _ways_to(program: str | None) -> list[Path]:
    """Return the program's path, and where that leads if it is a link."""
    if program is None or not Path(program).is_absolute():
        return []
    path = Path(program)
    # Not Path.resolve: links in a circle, which an agent can make, would be an error of its own.
    return [follow(path.parent).end / path.name, follow(path).end]
