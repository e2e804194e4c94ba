"""The running host, and what it complains of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pynchy.cli.doctor.finding import Finding, fine, problem
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError, NoHost, PynchyError

_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Health:
    """What the host says of itself; `problems` is None where there is no telling."""

    findings: tuple[Finding, ...]
    problems: tuple[str, ...] | None = None


def look_at_host(data: DataFolder) -> Health:
    """Ask the host how it is."""
    try:
        address = data.host()
        client = HostClient(address, _TIMEOUT_SECONDS)
        health = client.health()
        undelivered = [v for v in client.pending() if v.get("state") == "undelivered"]
    except NoHost:
        gone = problem("host", "not running: nobody is asked anything", "pynchy serve")
        return Health((gone,))
    except (HostError, PynchyError) as exc:
        return Health((problem("host", str(exc), "see its log, and restart pynchy serve"),))
    problems = tuple(map(str, health.get("problems", ())))
    running = fine("host", f"running at {address.url}, {health.get('open', 0)} open")
    return Health((running, *_complaints(problems), *_undelivered(len(undelivered))), problems)


def _complaints(problems: tuple[str, ...]) -> Iterator[Finding]:
    for text in problems:
        yield problem("host", text, "mend that, or restart pynchy serve and read its log")


def _undelivered(count: int) -> Iterator[Finding]:
    if count:
        told = "1 answer did not arrive" if count == 1 else f"{count} answers did not arrive"
        yield problem("host", told, "pynchy pending shows why; then pynchy retry ID")
