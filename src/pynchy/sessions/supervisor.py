"""Run one command to its end, outlive the host, and write down how it ended.

Started as a program of its own (standard library only) with the path of a job file. It holds an
inherited lock for as long as it or the command lives, ends the command at its cap (term, then
kill), and leaves `<job>.result` behind, so that a host which died meanwhile can find out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType


@dataclass(frozen=True, slots=True)
class Job:
    """What the job file says. The environment is not in it: it is inherited, and may be secret."""

    argv: list[str]
    cwd: str | None
    timeout: float
    term_grace: float
    session_id: str
    lock_fd: int
    log: str
    result: str


def main(job_path: str) -> int:
    """Run the job and return 0 if its result was written."""
    job = Job(**json.loads(Path(job_path).read_bytes()))
    _write(Path(job.result), _run(job))
    return 0


def _run(job: Job) -> dict[str, object]:
    with open(job.log, "ab", opener=_for_owner) as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is the administrator's own
                job.argv,
                cwd=job.cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[job.lock_fd],
            )
        except OSError as exc:
            return {"exit_code": None, "error": f"could not start {job.argv[0]}: {exc.strerror}"}
    _forward_signals(process)
    return _wait(process, job.timeout, job.term_grace)


def _wait(process: subprocess.Popen[bytes], timeout: float, grace: float) -> dict[str, object]:
    try:
        return {"exit_code": process.wait(timeout), "error": None}
    except subprocess.TimeoutExpired:
        _signal_all(process, signal.SIGTERM)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        _signal_all(process, signal.SIGKILL)
        process.wait()
    return {"exit_code": process.returncode, "error": f"ended at its cap of {timeout:g} s"}


def _forward_signals(process: subprocess.Popen[bytes]) -> None:
    def forward(number: int, _frame: FrameType | None) -> None:
        _signal_all(process, signal.Signals(number))

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)


def _signal_all(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _for_owner(path: str, flags: int) -> int:
    """Open a file that nobody else may read, whatever the umask, which is the command's own."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _write(path: Path, result: dict[str, object]) -> None:
    tmp = path.with_name(f".{path.name}.tmp")
    with open(tmp, "w", opener=_for_owner) as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    tmp.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
