"""A group whose agent works in a box: can the box be made, and is in it what the agent needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from pynchy.cli.doctor.finding import Finding, fine, problem
from pynchy.config import GroupSettings, LauncherSettings
from pynchy.data_dir import DataFolder
from pynchy.errors import DeliveryFailed
from pynchy.launchers.binds import check_binds
from pynchy.launchers.bubblewrap import PROGRAM, TRIAL

_SECONDS = 20.0


def check_box(name: str, group: GroupSettings, data: DataFolder) -> Iterator[Finding]:
    """Look at the box of a group that has one."""
    launcher = group.launcher
    if launcher is None:
        return
    check, table = f"group {name}", f"[groups.{name}.launcher]"
    try:
        check_binds(launcher, data.path, name)
    except DeliveryFailed as exc:
        yield problem(check, f"its box cannot be made: {exc}", f"change the folders in {table}")
    if launcher.kind == "bubblewrap":
        yield _bubblewrap(check, group.agent_uid)
    else:
        yield from _engine(check, launcher, os.environ)


def _bubblewrap(check: str, uid: int | None) -> Finding:
    if uid not in {None, os.getuid()} and os.getuid():
        fix = "remove agent_uid, or run the host as root"
        return problem(check, f"only root can start its agent as user {uid}", fix)
    if shutil.which(PROGRAM) is None:
        return problem(check, "bwrap is not on the PATH", "apt-get install bubblewrap")
    if why := _failure([PROGRAM, *TRIAL]):
        fix = "allow user namespaces (kernel.unprivileged_userns_clone, AppArmor), or update bwrap"
        return problem(check, f"bwrap cannot make a box here: {why}", fix)
    return fine(check, "bwrap makes boxes here")


def _engine(
    check: str, launcher: LauncherSettings, environ: Mapping[str, str]
) -> Iterator[Finding]:
    engine, image = launcher.engine, launcher.image
    if shutil.which(engine, path=environ.get("PATH")) is None:
        yield problem(check, f"{engine} is not on the PATH", f"install {engine}")
    elif why := _failure([engine, "version"]):
        yield problem(check, f"{engine} cannot be used: {why}", "start its engine")
    elif _failure([engine, "image", "inspect", image]):
        fix = f"{engine} build -t {image} -f container/Dockerfile container"
        yield problem(check, f"{engine} has no image {image}", fix)
    else:
        yield fine(check, f"{engine} runs, and has the image {image}")


def _failure(command: list[str]) -> str | None:
    """Return the last words of a command that fails; None if it does not."""
    try:
        done = subprocess.run(  # noqa: S603 - programs that the settings name
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as exc:
        return str(exc)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else (lines or [f"exit code {done.returncode}"])[-1]
