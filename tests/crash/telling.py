"""A question whose host, or the child of that, is killed (-9) at a step: what the stories share.

A story that breaks names its steps: `die_at` with them repeats it.
"""

import asyncio
import contextlib
import http.client
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.acceptance.support import Json, Person
from tests.crash.dying import HOST
from tests.forking import Forked, forker
from tests.waiting import until

DYING = "tests.crash.dying:main"


class Step(NamedTuple):
    """Where a host dies: at the so-manieth time that it comes there."""

    what: str
    number: int


class Story(ABC):
    """One question on one data folder, through as many hosts as it takes."""

    channel: str

    def __init__(self, base: Path) -> None:
        base.mkdir(parents=True)
        self.base = base
        self.person = Person(base / "data")
        self.environ: dict[str, str] = {}
        self.deaths = 0
        self._process: Forked | None = None

    @abstractmethod
    async def tell(self, *steps: Step) -> list[Step]:
        """Live with hosts that die at these steps, and hold them to every promise.

        Return the steps that the first host passed.
        """

    def configure(self, settings: str) -> None:
        (self.base / "pynchy.toml").write_text(settings)

    async def start(self, step: Step | None = None, victim: str = HOST) -> bool:
        """Start a host in which the victim dies at the step. Was the host ready before that?"""
        order = {"base": str(self.base), "channel": self.channel, "step": step, "victim": victim}
        with (self.base / "host.log").open("ab") as log:
            self._process = forker().start(
                DYING,
                [json.dumps(order | {"environ": self.environ})],
                stdout=log.fileno(),
                stderr=log.fileno(),
            )
        await until(lambda: self.is_dead() or self._is_ready(), "the host to be ready")
        return not self.is_dead()

    def is_dead(self) -> bool:
        return self._process is None or self._process.poll() is not None

    async def dies(self) -> None:
        """Wait until the host has come to its step."""
        await until(self.is_dead, "the death of the host")
        self.deaths += 1

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await until(self.is_dead, "the host's end")

    async def close(self) -> None:
        """End all that belongs to the story."""
        await self.kill()

    async def finished(self, doing: Callable[[], Awaitable[None]]) -> Json | None:
        """Do that again and again until the question is closed; None if the host dies first."""
        while not self.is_dead():
            await doing()
            # OSError and a broken reply: it dies just now.
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                asked = self.person.http("GET", "/api/questions/q1")
                if asked.status == 200 and asked.body["state"] == "closed":
                    closed: Json = asked.body
                    return closed
            await asyncio.sleep(0.01)
        return None

    def passed(self) -> list[Step]:
        return [Step(what, number) for what, number, _ in self._notes()]

    def passed_with_a_child(self) -> list[Step]:
        """Return the steps that were passed while the host had a child."""
        return [Step(what, number) for what, number, child in self._notes() if child]

    def told(self) -> str:
        """Return what helps to understand a story that broke."""
        log = (self.base / "host.log").read_text()[-2_000:]
        return f"died at: {self.passed()[-1:]}\n{log}"

    def _notes(self) -> list[Any]:
        lines = (self.base / "points").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def _is_ready(self) -> bool:
        assert self._process is not None
        try:
            announced = json.loads((self.base / "data" / "host.json").read_bytes())
        except FileNotFoundError:
            return False
        self.person.url = announced["url"]
        return bool(announced["pid"] == self._process.pid)


_SESSION_RECORD = "team/session-"


class Teller:
    """Tells stories side by side, and says which steps the broken ones had."""

    def __init__(self, folder: Path, at_once: int) -> None:
        self._folder = folder
        self._places = asyncio.Semaphore(at_once)
        self._told = 0
        self.deaths = 0

    async def die_at(self, make: Callable[[Path], Story], *steps: Step) -> list[Step]:
        async with self._places:
            self._told += 1
            story = make(self._folder / f"story-{self._told}")
            try:
                return await story.tell(*steps)
            except Exception as exc:
                exc.add_note(f"die_at({', '.join(map(str, steps))}) {story.told()}")
                raise
            finally:
                self.deaths += story.deaths
                await story.close()

    async def steps(self, make: Callable[[Path], Story], least: int) -> list[Step]:
        """Return the steps that every telling comes to, in the order of the first.

        There must be so many at least: a story that lost its steps would prove nothing. How often
        a session's record is saved depends on what else runs: changes that come together are saved
        together. So the story is told as often, side by side, as it is later, and the last save of
        such a record is left out: on a busy machine there may be one less.
        """
        first, *others = await asyncio.gather(*(self.die_at(make) for _ in range(8)))
        shared = [step for step in first if all(step in other for other in others)]
        last = {step.what: step.number for step in shared if _SESSION_RECORD in step.what}
        found = [step for step in shared if last.get(step.what) != step.number]
        assert len(found) >= least, f"{len(found)} steps of {len(first)} are in every telling"
        return found

    async def sweep(
        self, stories: Iterable[tuple[Callable[[Path], Story], tuple[Step, ...]]]
    ) -> None:
        """Tell each of them. Raise ExceptionGroup with every story that broke."""
        telling = [self.die_at(make, *steps) for make, steps in stories]
        told = await asyncio.gather(*telling, return_exceptions=True)
        broken = [error for error in told if isinstance(error, Exception)]
        if broken:
            raise ExceptionGroup(f"{len(broken)} of {len(telling)} stories broke", broken)
