"""The launcher of agents in containers, by the command line of Docker or Podman.

A container is no child of ours: killing the command that started it does not end it. So it bears
its session's name, which lets it exist only once, and labels by which a host finds it again; and
whatever becomes of the runner, its container is removed before that counts as ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pynchy.errors import DeliveryFailed
from pynchy.launchers import sandbox_monitor
from pynchy.launchers.base import Launch
from pynchy.launchers.box_folders import BoxFolders
from pynchy.launchers.jobs import Program
from pynchy.launchers.sandbox import Bind, Sandbox, SandboxLauncher
from pynchy.model import SessionId

log = logging.getLogger(__name__)

LABEL = "pynchy"
IPC, HOME, WORKSPACE = "/ipc", "/home/agent", "/workspace"
# Where a container finds the far end of its way out.
SOCKET_INSIDE = "/run/pynchy/proxy"
_ENGINE_SECONDS = 20.0
_NAME_LETTERS = 24
# What the engine's own command needs of the environment must not be changed by the agent's.
_ENGINES_OWN = frozenset({"HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR"})
_ENGINES_PREFIXES = ("DOCKER_", "CONTAINER", "PODMAN_", "BUILDAH_", "LD_")
# The value of --mount is a line of comma-separated fields, which the engines read differently.
_NOT_IN_MOUNTS = frozenset(',"\n\r')


class DockerLauncher(SandboxLauncher):
    """Runs each runner in a container of its own."""

    def inside(self, path: Path, places: BoxFolders) -> str:
        """See SandboxLauncher."""
        names = {places.home: HOME, places.workspace: WORKSPACE}
        known = {self._data / "ipc" / self._group: IPC}
        known |= {given: names.get(given, str(given)) for given in places.given}
        for outside, inside in known.items():
            if path.is_relative_to(outside):
                return str(inside / path.relative_to(outside))
        return str(path)

    def runner(self) -> str:
        """See SandboxLauncher."""
        return self._settings.runner

    async def adopt(self) -> None:
        """Also end the containers of runners that have ended without them."""
        await super().adopt()
        await asyncio.to_thread(self._remove_strays)

    def clear_way(self, launch: Launch) -> None:
        """See JobLauncher. What bears the session's name now is left over."""
        self._engine("rm", "--force", self.name(launch.session_id))

    def name(self, session_id: SessionId) -> str:
        """Return the name of the session's container, of which there can be only one."""
        key = f"{self._data}\0{self._group}\0{session_id}".encode(errors="surrogateescape")
        return f"pynchy-{hashlib.sha256(key).hexdigest()[:_NAME_LETTERS]}"

    def box(self, box: Sandbox) -> Program:
        """See SandboxLauncher."""
        name = self.name(box.launch.session_id)
        engine = self.tool(self._settings.engine)
        argv = [engine, "run", "--rm", "--init", "--name", name]
        argv += [*self._labels(box.launch), *self._walls(), *self._limits()]
        for bind in box.binds:
            argv += ["--mount", _mount(bind)]
        argv += [*self._variables(box.env), "--workdir", box.cwd, *self._settings.options]
        # What an image starts by itself would take our command for its arguments.
        argv += ["--entrypoint", "", self._settings.image, *self._command(box)]
        if self._settings.proxy:
            argv = self.monitored(argv)
        env = {**self._env(), **{k: v for k, v in box.env.items() if not _is_engines_own(k)}}
        return Program(argv, None, env, (engine, "rm", "--force", name))

    def _command(self, box: Sandbox) -> list[str]:
        boxed = ["python3", "-P", "-m", "agent_runner.boxed"]
        if not self._settings.proxy:
            return box.command
        return self.first(boxed, box.command, "--socket", SOCKET_INSIDE)

    def _labels(self, launch: Launch) -> Iterator[str]:
        labels = {"data": self._key(), "session": launch.session_id, "launch": launch.stem}
        for name, value in {**labels, "group": self._group}.items():
            yield from ("--label", f"{LABEL}.{name}={value}")

    def _key(self) -> str:
        """Return what tells this host's containers from those of others."""
        return hashlib.sha256(os.fsencode(self._data)).hexdigest()[:_NAME_LETTERS]

    def _walls(self) -> Iterator[str]:
        uid = os.getuid() if self._uid is None else self._uid
        gid = os.getgid() if self._uid is None else self._uid
        yield from ("--user", f"{uid}:{gid}")
        if self._settings.engine == "podman" and os.getuid():
            # Without this, a user's own podman maps that number to nobody's.
            yield from ("--userns", "keep-id")
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only")
        proxied = self._settings.network == "proxy"
        yield from ("--network", "none" if proxied else self._settings.network)
        if proxied:
            source = Path(sandbox_monitor.SOCKETS, sandbox_monitor.SOCKET)
            yield from ("--mount", _mount(Bind(source, SOCKET_INSIDE, writable=True)))

    def _limits(self) -> Iterator[str]:
        memory = str(self._settings.memory)
        yield from ("--memory", memory, "--memory-swap", memory)
        yield from ("--pids-limit", str(self._settings.pids))
        yield from ("--ulimit", f"fsize={self._settings.disk}")
        yield from ("--tmpfs", f"/tmp:rw,nosuid,nodev,mode=1777,size={memory}")  # noqa: S108 - of the box

    def _variables(self, env: dict[str, str]) -> Iterator[str]:
        """Name the variables; their values stay out of the list of processes."""
        for name, value in env.items():
            yield from ("--env", f"{name}={value}" if _is_engines_own(name) else name)

    def _remove_strays(self) -> None:
        """Remove the containers of this group that no living runner has."""
        filters = [f"label={LABEL}.data={self._key()}", f"label={LABEL}.group={self._group}"]
        wanted = [part for text in filters for part in ("--filter", text)]
        found = self._engine("ps", "--all", *wanted, "--format", "{{json .Names}}")
        # Adopted are also those of which only now is found out that they are gone.
        followed = [(stem, session_id) for stem, (session_id, _) in [*self._live.items()]]
        alive = {self.name(session_id) for stem, session_id in followed if self._is_running(stem)}
        for name in sorted(_names(found) - alive):
            log.info("container.stray_removed", extra={"container": name})
            self._engine("rm", "--force", name)

    def _env(self) -> dict[str, str]:
        """Return the engine's own environment: it, too, looks for programs on the PATH."""
        return {**self._environ, "PATH": self.tool_path(self._settings.engine)}

    def _engine(self, *arguments: str) -> str:
        """Ask the engine, and return what it says; nothing if it cannot be asked."""
        try:
            argv = [self.tool(self._settings.engine), *arguments]
            return subprocess.run(  # noqa: S603 - the engine that the settings name
                argv,
                env=self._env(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ENGINE_SECONDS,
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError, DeliveryFailed) as exc:
            extra = {
                "engine": self._settings.engine,
                "about": arguments[0],
                "why": type(exc).__name__,
            }
            log.debug("container.engine_failed", extra=extra)
            return ""


def _names(listed: str) -> set[str]:
    """Return the containers' names: Docker says a text for each, Podman a list."""
    names: set[str] = set()
    for line in listed.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        names.update(said if isinstance(said, list) else str(said).split(","))
    return names


def _mount(bind: Bind) -> str:
    if _NOT_IN_MOUNTS & {*str(bind.source), *bind.inside}:
        raise DeliveryFailed(f"{bind.source!s} cannot be mounted: it has a comma or a quote in it")
    mount = f"type=bind,source={bind.source},target={bind.inside}"
    return mount if bind.writable else f"{mount},readonly"


def _is_engines_own(name: str) -> bool:
    return name in _ENGINES_OWN or name.startswith(_ENGINES_PREFIXES)
