"""Who is there: our own lease of the session, that of the MCP server, and the sign of a first call.

The MCP server takes a lease when it starts, and creates the file that PYNCHY_CALLED names when the
model calls a tool: a call proves that the model has answered, and some programs print it late.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_runner.asking import _mailbox as files
from agent_runner.asking import _wire
from agent_runner.asking._lease import RENEW_SECONDS, Lease
from agent_runner.errors import BadFile

_MAX_BYTES = 64 * 1024
_POLL_SECONDS = 0.1


@contextmanager
def kept_alive(tasks: Path, session_id: str, say: Callable[[str], None]) -> Iterator[str]:
    """Hold a lease of the session and yield its name.

    Where that fails it is said, and the work goes on.
    """
    lease, ended = Lease(tasks, session_id=session_id), threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS):
            try:
                lease.renew()
            except OSError as exc:
                say(f"the lease cannot be renewed: {exc}")

    try:
        lease.take()
    except OSError as exc:
        say(f"the session cannot be leased: {exc}")
    beating = threading.Thread(target=renew, daemon=True)
    beating.start()
    try:
        yield lease.name
    finally:
        ended.set()
        beating.join()
        with suppress(OSError):
            lease.release()


class Lookout:
    """Remembers whether the session's MCP server has ever been there while the program ran.

    `own` is the name of our own lease, which is no sign of a server.
    """

    def __init__(self, tasks: Path, session_id: str, own: str) -> None:
        # The host passes over such names, and clears away what a killed runner leaves.
        self.called = tasks / f"{files.TEMPORARY}{own}.called"
        self._tasks = tasks
        self._session_id = session_id
        self._own = own
        self._seen = False
        self._over = threading.Event()

    @contextmanager
    def looking(self, on_call: Callable[[], None]) -> Iterator[None]:
        """Keep looking, and say once, from another thread, that the model has called a tool."""
        # From the start: a server may be gone again by the time that we hear of its program.
        looking = threading.Thread(target=self._keep_looking, args=(on_call,), daemon=True)
        looking.start()
        try:
            yield
        finally:
            self._over.set()
            looking.join()
            with suppress(OSError):
                self.called.unlink(missing_ok=True)

    def has_seen_server(self) -> bool:
        """Say whether another process than this one has had a lease, or was called."""
        self._seen = self._seen or self.called.exists() or any(self._held())
        return self._seen

    def _keep_looking(self, on_call: Callable[[], None]) -> None:
        over = False
        while not self.called.exists():
            if over:
                return
            self.has_seen_server()
            # Once more after the end: a call may have been the last thing.
            over = self._over.wait(_POLL_SECONDS)
        on_call()

    def _held(self) -> Iterator[Path]:
        others = (path for path in self._tasks.glob("*.lease") if path.stem != self._own)
        return (path for path in others if self._is_ours(path))

    def _is_ours(self, path: Path) -> bool:
        try:
            fields = _wire.decode(files.read_small(path, _MAX_BYTES))
            return fields.get("session_id") == self._session_id and _is_held(path, fields)
        except (OSError, BadFile):
            return False


def _is_held(path: Path, fields: dict[str, object]) -> bool:
    if not fields.get("boot_id"):
        return True  # without locks a lease is as good as its file
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
