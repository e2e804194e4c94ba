"""kill -9 of the host between every two steps, and every promise is kept.

A run that fails names its points: `die_at(N)` repeats it.
"""

import asyncio
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.acceptance.support import RUNNER, HttpReply, Json, MailboxAgent, Person, Runs
from tests.waiting import until

DYING_HOST = Path(__file__).with_name("dying_host.py")
AT_ONCE = 8

pytestmark = pytest.mark.timeout(600)


class Zygote:
    """The process that forks hosts."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, DYING_HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fork(self, order: Json) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


@dataclass
class Story:
    """One question on one data folder, through as many hosts as it takes."""

    base: Path
    zygote: Zygote
    mode: str
    pid: int = 0
    deaths: int = 0
    acknowledged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base.mkdir()
        self.person = Person(self.base / "data")
        self.runs = Runs(self.base)
        self.runs.do(self.mode)

    @property
    def is_late(self) -> bool:
        return self.mode != "live"

    async def start(self, point: int | None) -> bool:
        """Start a host that dies at the point. Return whether it lived to be ready."""
        command = [sys.executable, str(RUNNER), str(self.runs.path), str(self.base / "mode")]
        launcher = {"command": [*command, "{initial}", "{session_id}"], "backoff": "10ms"}
        order = {"base": str(self.base), "point": point, "launcher": launcher}
        self.pid = self.zygote.fork(order)
        await until(lambda: self.is_dead() or self._is_ready(), "the host to be ready")
        return not self.is_dead()

    def is_dead(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        await until(self.is_dead, "the host's end")

    async def click(self, request_id: str, value: str, by: str) -> HttpReply | None:
        """Answer as soon as the host knows the question. None if it dies over that."""
        while not self.is_dead():
            with contextlib.suppress(OSError, http.client.HTTPException):
                reply = await asyncio.to_thread(self.person.answer, request_id, value, by=by)
                if reply.status == 200:
                    self.acknowledged.append(by)
                if reply.status != 404:
                    return reply
            await asyncio.sleep(0.01)
        return None

    async def finish(self, request_id: str) -> Json | None:
        """Wait until the question is closed, and return it. None if the host dies first."""
        while not self.is_dead():
            with contextlib.suppress(OSError, http.client.HTTPException):
                reply = self.person.http("GET", f"/api/questions/{request_id}")
                if reply.status == 200 and reply.body["state"] == "closed":
                    closed: Json = reply.body
                    return closed
            await asyncio.sleep(0.01)
        return None

    def points(self) -> list[str]:
        return (self.base / "points").read_text().splitlines()

    def chat(self, what: str) -> list[Json]:
        path = self.base / "chat.jsonl"
        found = [json.loads(line) for line in path.read_text().splitlines()]
        return [line for line in found if line["what"] == what]

    def _is_ready(self) -> bool:
        try:
            announced = json.loads((self.base / "data" / "host.json").read_bytes())
        except FileNotFoundError:
            return False
        self.person.url = announced["url"]
        return bool(announced["pid"] == self.pid)


async def live_through(story: Story, *points: int) -> list[str]:
    """Tell one story with hosts that die at these points, and hold it to every promise.

    Return the points that the first host passed.
    """
    agent = MailboxAgent(story.person.group("team"))
    request_id = agent.ask("Deploy?", request_id="q1")
    waiter = asyncio.create_task(agent.responded(request_id))
    if story.is_late:
        waiter.cancel()
        agent.die()
    else:
        waiter.add_done_callback(lambda _: agent.take(request_id))
    passed: list[str] = []
    closed = None
    clickers = iter(["ana", "ben", "cleo", "dan"])
    for point in [*points, None]:
        if closed is not None:
            break
        await story.start(point)
        by = next(clickers)
        await story.click(request_id, "1" if by == "ana" else "2", by=by)
        closed = await story.finish(request_id)
        story.deaths += story.is_dead()
        passed = passed or story.points()
    assert closed is not None
    last = await story.click(request_id, "1", by="eve")
    if last is None:  # a host may also die after the question's last step
        await story.start(None)
        last = await story.click(request_id, "1", by="eve")
    assert last is not None
    await story.kill()
    await check(story, agent, closed, last)
    return passed


async def check(story: Story, agent: MailboxAgent, closed: Json, last: HttpReply) -> None:
    outcome = story.person.outcome("team", "q1")
    [answer] = closed["ending"]["answers"]

    # Exactly one outcome, and whoever was told "yours" is the one.
    assert story.acknowledged in ([], [outcome["by"]])
    assert outcome["by"] == closed["ending"]["answered_by"]
    assert last.status == 409
    assert last.body["answered_by"] == outcome["by"]
    assert answer["selected"] == outcome["answers"][0]["selected"]
    # It arrived once, as it was recorded.
    response = agent.response("q1")
    assert response is not None
    assert response["answers"] == [answer]
    assert response["answered_by"] == outcome["by"]
    if story.is_late:
        assert closed["delivered"] == "late"
        assert len(story.runs.succeeded()) == 1
        for run in story.runs.started():
            assert run["initial"]["answers"] == [answer]
    else:
        assert closed["delivered"] == "live"
        assert story.runs.started() == []
    check_cards(story)
    check_events(story)
    # Nothing is left over: the next host finds nothing to do.
    assert await story.start(None)
    assert story.person.pending() == []
    await story.kill()
    for folder in ("pending_questions", "outcomes", "history"):
        names = [path.name for path in (story.person.group("team") / folder).iterdir()]
        assert names == ([] if folder == "pending_questions" else ["q1.json"])


def check_cards(story: Story) -> None:
    """It was shown; what is shown again says so, under the same id; the card tells the end."""
    first, *others = story.chat("shown")
    assert all(card["repeated"] for card in others)
    assert {card["short_id"] for card in others} <= {first["short_id"]}
    settled = {card["message_id"] for card in story.chat("settled")}
    assert (first, *others)[-1]["message_id"] in settled


def check_events(story: Story) -> None:
    """A crash may repeat an event but not hide it, and no number is used twice."""
    events = story.person.events("q1")
    kinds = {event["type"] for event in events}
    assert kinds >= {"asked", "shown", "answered", "delivered", "closed"}
    assert len({event["seq"] for event in events}) == len(events)
    assert len({event.get("by") for event in events if event["type"] == "answered"}) == 1


@pytest.fixture
async def tell(zygote: Zygote, tmp_path: Path) -> AsyncIterator["Teller"]:
    teller = Teller(zygote, tmp_path)
    yield teller
    for story in teller.stories:
        await story.kill()


class Teller:
    """Tells stories side by side, and says which points the broken ones had."""

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        self._zygote = zygote
        self._folder = folder
        self._places = asyncio.Semaphore(AT_ONCE)
        self.stories: list[Story] = []

    async def die_at(self, mode: str, *points: int) -> list[str]:
        async with self._places:
            base = self._folder / "-".join(map(str, (mode, *points)))
            story = Story(base, self._zygote, mode)
            self.stories.append(story)
            try:
                return await live_through(story, *points)
            except Exception as exc:
                died = story.points()[-1]
                log = (base / "host.log").read_text()[-2_000:]
                exc.add_note(f"die_at({mode!r}, {points}) died at: {died}\n{log}")
                raise

    async def all(self, mode: str, points: list[tuple[int, ...]]) -> None:
        told = await asyncio.gather(
            *(self.die_at(mode, *each) for each in points), return_exceptions=True
        )
        broken = [error for error in told if isinstance(error, Exception)]
        if broken:
            raise ExceptionGroup(f"{len(broken)} of {len(points)} stories broke", broken)


@pytest.mark.parametrize("mode", ["live", "acknowledge", "exit-0"])
async def test_a_host_killed_at_any_point_keeps_every_promise(tell: Teller, mode: str) -> None:
    passed = await tell.die_at(mode)
    ended = next(n for n, point in enumerate(passed) if "outcomes/q1.json" in point)
    # Whether anybody will be there to take it makes no difference before the answer.
    first = 0 if mode == "live" else ended

    points = [(number,) for number in range(first + 1, len(passed) + 1)]
    await tell.all(mode, points)

    # The order of points varies a little, so that the last ones may not be reached.
    assert sum(story.deaths for story in tell.stories) > 0.9 * len(points)


@pytest.mark.parametrize("mode", ["live", "acknowledge"])
async def test_hosts_killed_one_after_another_keep_every_promise(tell: Teller, mode: str) -> None:
    passed = await tell.die_at(mode)
    chosen = random.Random(mode)  # noqa: S311 - the same choice in every run
    points = [(chosen.randint(5, len(passed)), chosen.randint(5, 40)) for _ in range(12)]

    await tell.all(mode, list(dict.fromkeys(points)))
