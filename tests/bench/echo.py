"""How much later a key is echoed that passes through `pynchy watch`.

Two terminals side by side in this process, each with the same program that echoes what it reads:
one bare, one under `watch`. A key is typed into one and then the other, so that whatever else the
machine does meets both.
"""

import fcntl
import os
import pty
import select
import signal
import sys
import time
import tty
from pathlib import Path

from tests.bench.figures import Line, Sample, Unit, line

ROUNDS = 1_000
QUICK_ROUNDS = 20
WARM_UP = 50
AT_MOST_MORE = 1
PAUSE_SECONDS = 0.002
MAX_SECONDS = 30.0
_READY = b"ready"
_ECHO = ["sh", "-c", "stty raw -echo; printf ready; exec cat"]


def measure(folder: Path, quick: bool) -> list[Line]:  # noqa: FBT001 - every part is called so
    rounds = QUICK_ROUNDS if quick else ROUNDS
    pynchy = str(Path(sys.executable).parent / "pynchy")
    watch = [pynchy, "watch", "--data-dir", str(folder / "data"), "--"]
    bare, watched = _Terminal(_ECHO), _Terminal([*watch, *_ECHO])
    try:
        for terminal in (bare, watched):
            terminal.wait_for(_READY)
        found = [(watched.echo(), bare.echo()) for _ in range(WARM_UP + rounds)][WARM_UP:]
    finally:
        bare.close()
        watched.close()
    ours, limit = zip(*found, strict=True)
    more = [through - without for through, without in found]
    ms = Unit.MILLISECONDS
    return [
        line("n1.1", "key typed → echo read, through watch", ms, Sample(ours), Sample(limit)),
        line("n1.2", "how much later than a bare pty", ms, Sample(more), at_most=AT_MOST_MORE),
    ]


class _Terminal:
    def __init__(self, command: list[str]) -> None:
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            os.execvp(command[0], command)  # noqa: S606 - what is measured
        fcntl.fcntl(self._master, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        tty.setraw(self._master)

    def echo(self) -> float:
        """Type a key. Return the milliseconds until it was read again."""
        time.sleep(PAUSE_SECONDS)
        typed = time.perf_counter()
        os.write(self._master, b"x")
        self.wait_for(b"x")
        return (time.perf_counter() - typed) * 1_000

    def wait_for(self, text: bytes) -> None:
        read = b""
        while text not in read:
            if not select.select([self._master], [], [], MAX_SECONDS)[0]:
                raise RuntimeError("a terminal of the benchmark says nothing")
            read += os.read(self._master, 4_096)

    def close(self) -> None:
        os.close(self._master)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
