"""The launcher of real agents: `agent_runner` starts and resumes the agent program.

HOME and the working folder are those that the session began with: an agent program finds the
transcript of a session by them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from agent_runner import cores
from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers.base import Launch
from pynchy.launchers.command import runner_environ
from pynchy.launchers.jobs import JobLauncher, Program
from pynchy.model import GroupName

OWN_RUNNER = "agent_runner"


class ProcessLauncher(JobLauncher):
    """Runs `agent_runner` for each launch, with the group's agent or the one that was chosen."""

    def __init__(
        self, data: Path, group: GroupName, settings: LauncherSettings, environ: Mapping[str, str]
    ) -> None:
        super().__init__(data, group, settings)
        self._settings = settings
        self._environ = environ

    def check(self, launch: Launch) -> None:
        """See JobLauncher."""
        cwd = launch.cwd or self._settings.cwd or ""
        check_agent(launch, self._settings, {**self._environ, **self._settings.env}, Path(cwd))

    def program(self, launch: Launch) -> Program:
        """See JobLauncher."""
        settings = self._settings
        agent = launch.chosen or settings.agent or ""
        env = {**self._environ, **settings.env, "PYNCHY_AGENT": agent, **runner_environ(launch)}
        if launch.home:
            env["HOME"] = launch.home
        runner = find_runner(settings, env) or settings.runner
        argv = [runner, "--initial", str(launch.initial), "--agent", agent]
        argv += ["--session", launch.session_id, *settings.runner_args(agent)]
        cwd = launch.cwd or (str(settings.cwd) if settings.cwd else None)
        return Program(argv, cwd, env)


def check_agent(
    launch: Launch, settings: LauncherSettings, env: Mapping[str, str], cwd: Path
) -> None:
    """Raise DeliveryFailed if our own runner would not find its agent's program there."""
    agent = launch.chosen or settings.agent or ""
    if settings.runner != OWN_RUNNER or agent not in cores.names():
        return
    program = agent_program(agent, settings)
    if not program:
        raise DeliveryFailed(
            f"the agent {agent} needs a program: set acp_command in"
            f' [groups.{launch.group}.launcher], such as ["gemini", "--acp"]'
        )
    # A folder may be relative to where the agent works, and the host works elsewhere.
    folders = [str(cwd / folder) for folder in env.get("PATH", os.defpath).split(os.pathsep)]
    if shutil.which(program, path=os.pathsep.join(folders)) is None:
        raise DeliveryFailed(
            f"the agent program {program} is not on the PATH that the agent would have; install "
            f"it, or add its folder in [groups.{launch.group}.launcher]: env = {{ PATH = … }}"
        )


def agent_program(agent: str, settings: LauncherSettings) -> str:
    """Return the program of an agent as it is called; empty where the settings do not name it."""
    if agent not in cores.names():
        return agent
    return cores.load(agent).program or next(iter(settings.acp_command), "")


def find_runner(settings: LauncherSettings, environ: Mapping[str, str]) -> str | None:
    """Return where the runner's program is: beside this Python, or on the PATH; None if nowhere."""
    beside = Path(sys.executable).parent / settings.runner
    if "/" not in settings.runner and (found := shutil.which(str(beside))):
        return found
    path = settings.env.get("PATH", environ.get("PATH"))
    return shutil.which(str(Path(settings.runner).expanduser()), path=path)
