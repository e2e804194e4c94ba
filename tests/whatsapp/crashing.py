"""A question in WhatsApp whose host or child is killed (-9) at a step, and what must hold then."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
from pathlib import Path

from tests.acceptance.support import Json, MailboxAgent, Person
from tests.slack.crashing import Zygote
from tests.waiting import until
from tests.whatsapp.support import ANA, STAND_IN, TEAM, group_table, pair, settings

from pynchy.testing_whatsapp import SentText, WhatsAppStandIn

AT_ONCE = 3
HOST, CHILD = "host", "child"


class Story:
    """One question on one data folder, through as many hosts and children as it takes."""

    def __init__(self, base: Path, zygote: Zygote) -> None:
        base.mkdir(parents=True)
        self.base = base
        self.whatsapp = WhatsAppStandIn().start()
        self.ana = self.whatsapp.person(ANA, "Ana")
        (base / "pynchy.toml").write_text(settings(group_table("team", TEAM), "[http]\nport = 0\n"))
        pair(base / "data")
        self.person = Person(base / "data")
        self.pid = 0
        self.deaths = 0
        self._zygote = zygote
        self._answered: set[int] = set()

    async def start(self, victim: str, point: int | None) -> None:
        environ = {STAND_IN: self.whatsapp.address}
        order = {"base": str(self.base), "point": point, "victim": victim, "environ": environ}
        self.pid = self._zygote.fork(order)
        await until(lambda: self.is_dead() or self._is_ready(), "the host to be ready")

    def is_dead(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    async def kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            await until(self.is_dead, "the host's end")
        await asyncio.to_thread(self.whatsapp.stop)

    async def live(self) -> Json | None:
        """Answer the first card; return the closed question, or None if the host died.

        What the library has thanked for and a killed child has not kept is lost, as in life: the
        person says it again when there is another child.
        """
        while not self.is_dead():
            child = len(self.whatsapp.pids)
            if child not in self._answered and self.whatsapp.connected and self.texts():
                self._answered.add(child)
                self.ana.say(TEAM, "1", quote=self.texts()[0])
            with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                asked = self.person.http("GET", "/api/questions/q1")
                if asked.status == 200 and asked.body["state"] == "closed":
                    closed: Json = asked.body
                    return closed
            await asyncio.sleep(0.02)
        return None

    def texts(self) -> list[SentText]:
        return self.whatsapp.texts(TEAM)

    def points(self) -> list[str]:
        return (self.base / "points").read_text().splitlines()

    def _is_ready(self) -> bool:
        try:
            announced = json.loads((self.base / "data" / "host.json").read_bytes())
        except FileNotFoundError:
            return False
        self.person.url = announced["url"]
        return bool(announced["pid"] == self.pid)


async def live_through(story: Story, victim: str, point: int | None) -> list[str]:
    """Tell one story in which the victim dies at the point. Return the points that it passed."""
    agent = MailboxAgent(story.person.group("team"))
    agent.ask(request_id="q1")
    waiter = asyncio.create_task(agent.responded("q1"))
    waiter.add_done_callback(lambda done: done.cancelled() or agent.take("q1"))
    try:
        await story.start(victim, point)
        closed = await story.live()
        passed = story.points()
        if closed is None:
            await story.start(HOST, None)
            closed = await story.live()
    finally:
        waiter.cancel()
    story.deaths = max(len(story.whatsapp.pids) - 1, 0)
    assert closed is not None
    inbox = story.base / "data" / "whatsapp" / "inbox"
    await until(lambda: not list(inbox.iterdir()), "an empty shelf")
    check(story, agent)
    return passed


def check(story: Story, agent: MailboxAgent) -> None:
    response = agent.response("q1")
    assert response is not None
    assert response["answers"][0]["selected"] == ["Yes"]
    assert response["answered_by"] == f"Ana (+{ANA})"
    cards = [text for text in story.texts() if "Deploy?" in text.text and not text.quotes]
    # A person who says it again to another host may hear that it is over, and how.
    over = [text for text in story.texts() if "over already" in text.text]
    assert all("answered by Ana" in text.text and "Yes" in text.text for text in over)
    endings = [text for text in story.texts() if text.quotes and text not in over]
    # What was sent twice says so, and nobody was told anything else.
    assert all("repeat" in card.text.lower() for card in cards[1:])
    assert [e for e in endings if "Answered: Yes" in e.text] == endings != []
    assert all("sent again" in ending.text.lower() for ending in endings[1:])
    assert len(cards) + len(endings) + len(over) == len(story.texts())


class Teller:
    """Tells stories side by side, and says which points the broken ones had."""

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        self._zygote = zygote
        self._folder = folder
        self._places = asyncio.Semaphore(AT_ONCE)
        self.deaths = 0

    async def die_at(self, point: int | None, victim: str = HOST) -> list[str]:
        async with self._places:
            story = Story(self._folder / victim / f"at-{point}", self._zygote)
            try:
                return await live_through(story, victim, point)
            except Exception as exc:
                told = (story.base / "host.log").read_text()[-1_500:]
                sent = [text.text for text in story.texts()]
                exc.add_note(f"{victim} at {point}: {story.points()[-1:]}\n{sent}\n{told}")
                raise
            finally:
                self.deaths += story.deaths > 0
                await story.kill()

    async def sweep(self, deaths: list[tuple[str, int]]) -> None:
        """Die so each time. Raise ExceptionGroup with every story that broke."""
        stories = [self.die_at(point, victim) for victim, point in deaths]
        told = await asyncio.gather(*stories, return_exceptions=True)
        broken = [error for error in told if isinstance(error, Exception)]
        if broken:
            raise ExceptionGroup(f"{len(broken)} of {len(deaths)} stories broke", broken)


def number_of(passed: list[str], step: str, which: int = 0) -> int:
    """Return the number of a step among those that were passed."""
    found = [n for n, point in enumerate(passed, 1) if point.partition(" ")[2] == step]
    return found[which]
