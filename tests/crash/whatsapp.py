"""A question in WhatsApp whose host or child dies."""

import asyncio
from pathlib import Path

from tests.acceptance.support import MailboxAgent
from tests.crash.dying import CHILD, HOST
from tests.crash.telling import Step, Story
from tests.standins.whatsapp import SentText, WhatsAppStandIn, environ
from tests.waiting import until
from tests.whatsapp.support import ANA, TEAM, group_table, pair, settings

from pynchy.safe_folder import TMP_PREFIX


class WhatsAppStory(Story):
    """One question; Ana answers it, and again when there is another child."""

    channel = "whatsapp"

    def __init__(self, base: Path, victim: str = HOST) -> None:
        super().__init__(base)
        self.victim = victim
        self.whatsapp = WhatsAppStandIn().start()
        self.environ = environ(self.whatsapp.address)
        self.ana = self.whatsapp.person(ANA, "Ana")
        self.configure(settings(group_table("team", TEAM), "[http]\nport = 0\n"))
        pair(base / "data")
        self._answered: set[int] = set()

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self.whatsapp.stop)

    async def tell(self, *steps: Step) -> list[Step]:
        agent = MailboxAgent(self.person.group("team"))
        agent.ask(request_id="q1")
        waiter = asyncio.create_task(agent.responded("q1"))
        waiter.add_done_callback(lambda done: done.cancelled() or agent.take("q1"))
        passed: list[Step] = []
        try:
            for step in [*steps, None]:
                if step is None and self.deaths and self.victim == CHILD:
                    break  # the host lives on
                await self.start(step, self.victim)
                closed = await self.finished(self._answer)
                if step is not None:
                    await (self.dies() if self.victim == HOST else self._child_dies(step))
                passed = passed or (
                    self.passed() if self.victim == HOST else self.passed_with_a_child()
                )
        finally:
            waiter.cancel()
        assert closed is not None
        await until(lambda: not self._queued(), "an empty queue")
        self.check(agent)
        return passed

    def _queued(self) -> list[Path]:
        """Return what is on the queue; a half that a killed child was writing is no message."""
        inbox = self.base / "data" / "whatsapp" / "inbox"
        return [path for path in inbox.iterdir() if not path.name.startswith(TMP_PREFIX)]

    async def _child_dies(self, step: Step) -> None:
        await until(lambda: step in self.passed(), "the death of the child")
        await until(lambda: len(set(self.whatsapp.pids)) > 1, "another child")
        self.deaths += 1

    async def _answer(self) -> None:
        """Answer the first card, once for each child.

        What the library has thanked for and a killed child has not kept is lost, as in life: the
        person says it again when there is another child.
        """
        child = len(self.whatsapp.pids)
        if child not in self._answered and self.whatsapp.connected and self.texts():
            self._answered.add(child)
            self.ana.say(TEAM, "1", quote=self.texts()[0])

    def texts(self) -> list[SentText]:
        return self.whatsapp.texts(TEAM)

    def told(self) -> str:
        return f"{self.victim}: {super().told()}\n{[text.text for text in self.texts()]}"

    def check(self, agent: MailboxAgent) -> None:
        response = agent.response("q1")
        assert response is not None
        assert response["answers"][0]["selected"] == ["Yes"]
        assert response["answered_by"] == f"Ana (+{ANA})"
        cards = [text for text in self.texts() if "Deploy?" in text.text and not text.quotes]
        over = [text for text in self.texts() if "over already" in text.text]
        endings = [text for text in self.texts() if text.quotes and text not in over]
        assert len(cards) + len(endings) + len(over) == len(self.texts())
        # She was asked once and told once that she has answered; a death repeats that at most once,
        # and what is repeated says so.
        assert 1 <= len(cards) <= 1 + self.deaths
        assert all("repeat" in card.text.lower() for card in cards[1:])
        assert 1 <= len(endings) <= 1 + self.deaths
        assert all("Answered: Yes" in ending.text for ending in endings)
        assert all("sent again" in ending.text.lower() for ending in endings[1:])
        # Only who says it again hears that it is over, and how.
        assert len(over) < len(self._answered)
        assert all("answered by Ana" in text.text and "Yes" in text.text for text in over)
