"""Run the sources. Nothing that one does stops the host or another source.

A source that ends by itself is started again after a growing pause, and that is told as a problem.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from pynchy.aio import is_being_cancelled
from pynchy.errors import MalformedRequest
from pynchy.sources.base import SeenAgent, Source, SourceHandler

log = logging.getLogger(__name__)
T = TypeVar("T")

_RESTART_SECONDS = 2.0
_RESTART_MAX_SECONDS = 300.0
# For so long a fault is told of.
_TOLD_SECONDS = 600.0
_RETRY_SECONDS = 1.0
_RETRY_MAX_SECONDS = 60.0


async def keep_trying(work: Callable[[], Awaitable[T]], event: str) -> T:
    """Return what comes of the work, which is done again until it works: a disk may be full.

    What fails is logged as the event. Raise MalformedRequest: that would be so again.
    """
    pause = _RETRY_SECONDS
    while True:
        try:
            return await work()
        except MalformedRequest:
            raise
        except Exception:
            log.exception(event)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _RETRY_MAX_SECONDS)


class RunningSources:
    """The sources of a host, and what they tell."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        # What a source has done that none should, and when that was.
        self._faults: dict[str, tuple[float, str]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of all."""
        return frozenset(source.name for source in self._sources)

    def start(self, handler: SourceHandler, tasks: asyncio.TaskGroup) -> None:
        """Run each for as long as the task group does."""
        for source in self._sources:
            tasks.create_task(self._keep_running(source, handler), name=f"source {source.name}")

    def agents(self) -> list[SeenAgent]:
        """Return the agents that they see just now."""
        return self._ask_all(lambda source: source.agents())

    def problems(self) -> list[str]:
        """Say what is wrong with them, in words for a person."""
        own = self._ask_all(lambda source: filter(None, [source.problem]))
        now = time.monotonic()
        return [*(told for at, told in self._faults.values() if now - at < _TOLD_SECONDS), *own]

    def warnings(self) -> list[str]:
        """Say what is odd at agents that nobody has configured."""
        return self._ask_all(lambda source: source.warnings)

    def _ask_all(self, look: Callable[[Source], Iterable[T]]) -> list[T]:
        found: list[T] = []
        for source in self._sources:
            try:
                found += look(source)
            except Exception as exc:
                log.exception("source.unreadable", extra={"source": source.name})
                self._note_fault(source, f"cannot be asked ({type(exc).__name__})")
        return found

    def _note_fault(self, source: Source, what: str) -> None:
        self._faults[source.name] = time.monotonic(), f"{source.name}: {what}"

    async def _keep_running(self, source: Source, handler: SourceHandler) -> None:
        pause = _RESTART_SECONDS
        while True:
            began = time.monotonic()
            why = await _run(source, handler)
            self._note_fault(source, f"stopped ({why}) and is started again")
            if time.monotonic() - began > _TOLD_SECONDS:
                pause = _RESTART_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, _RESTART_MAX_SECONDS)


async def _run(source: Source, handler: SourceHandler) -> str:
    """Return why the source does not run any more."""
    try:
        await source.run(handler)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        why = "it cancelled itself"
    except Exception as exc:
        log.exception("source.failed", extra={"source": source.name})
        return type(exc).__name__
    else:
        why = "it ended by itself"
    log.error("source.stopped", extra={"source": source.name, "why": why})
    return why
