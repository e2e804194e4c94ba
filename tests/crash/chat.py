"""A question in a chat that outlives the host, asked by who waits or by who is gone."""

import asyncio
import contextlib
import http.client
import json
from functools import partial
from pathlib import Path

from tests.acceptance.support import HttpReply, Json, MailboxAgent, Runs
from tests.crash.telling import Step, Story

HTTP = "[http]\nport = 0\n"


class ChatStory(Story):
    """Several people answer, one after another; the first to be recorded wins."""

    channel = "chat"

    def __init__(self, base: Path, mode: str) -> None:
        super().__init__(base)
        self.mode = mode
        self.runs = Runs(base)
        launcher = self.runs.launcher(mode, backoff="10ms")
        self.configure(f'{HTTP}[groups.team]\nchannels = ["chat", "local"]\n{launcher}')
        self.acknowledged: list[str] = []

    @property
    def is_late(self) -> bool:
        return self.mode != "live"

    async def tell(self, *steps: Step) -> list[Step]:
        agent = MailboxAgent(self.person.group("team"))
        request_id = agent.ask("Deploy?", request_id="q1")
        waiter = asyncio.create_task(agent.responded(request_id))
        if self.is_late:
            waiter.cancel()
            agent.die()
        else:
            waiter.add_done_callback(lambda _: agent.take(request_id))
        passed: list[Step] = []
        closed = None
        clickers = iter(["ana", "ben", "cleo", "dan"])
        for number, step in enumerate([*steps, None]):
            if closed is not None:
                break
            await self.start(step)
            by = next(clickers)
            await self.click("1" if by == "ana" else "2", by=by)
            closed = await self.finished(_nothing)
            if step is not None and number == 0:
                await self.dies()
            passed = passed or self.passed()
        assert closed is not None
        last = await self.click("1", by="eve")
        if last is None:  # a host may also die after the question's last step
            await self.start()
            last = await self.click("1", by="eve")
        assert last is not None
        await self.kill()
        await self.check(agent, closed, last)
        return passed

    async def click(self, value: str, by: str) -> HttpReply | None:
        """Answer as soon as the host knows the question. None if it dies over that."""
        while not self.is_dead():
            with contextlib.suppress(OSError, http.client.HTTPException):
                reply = await asyncio.to_thread(self.person.answer, "q1", value, by=by)
                if reply.status == 200:
                    self.acknowledged.append(by)
                if reply.status != 404:
                    return reply
            await asyncio.sleep(0.01)
        return None

    def shown(self, what: str) -> list[Json]:
        lines = (self.base / "chat.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["what"] == what]

    async def check(self, agent: MailboxAgent, closed: Json, last: HttpReply) -> None:
        outcome = self.person.outcome("team", "q1")
        [answer] = closed["ending"]["answers"]

        # Exactly one outcome, and whoever was told "yours" is the one.
        assert self.acknowledged in ([], [outcome["by"]])
        assert outcome["by"] == closed["ending"]["answered_by"]
        assert last.status == 409
        assert last.body["answered_by"] == outcome["by"]
        assert answer["selected"] == outcome["answers"][0]["selected"]
        # It arrived once, as it was recorded.
        response = agent.response("q1")
        assert response is not None
        assert response["answers"] == [answer]
        assert response["answered_by"] == outcome["by"]
        if self.is_late:
            assert closed["delivered"] == "late"
            assert len(self.runs.succeeded()) == 1
            for run in self.runs.started():
                assert run["initial"]["answers"] == [answer]
        else:
            assert closed["delivered"] == "live"
            assert self.runs.started() == []
        self.check_cards()
        self.check_events()
        # Nothing is left over: the next host finds nothing to do.
        assert await self.start()
        assert self.person.pending() == []
        await self.kill()
        for folder in ("pending_questions", "outcomes", "history"):
            names = [path.name for path in (self.person.group("team") / folder).iterdir()]
            assert names == ([] if folder == "pending_questions" else ["q1.json"])

    def check_cards(self) -> None:
        """It was shown; what is shown again says so, under the same id; the card tells the end."""
        first, *others = self.shown("shown")
        assert all(card["repeated"] for card in others)
        assert {card["short_id"] for card in others} <= {first["short_id"]}
        settled = {card["message_id"] for card in self.shown("settled")}
        assert (first, *others)[-1]["message_id"] in settled

    def check_events(self) -> None:
        """A crash may repeat an event but not hide it, and no number is used twice."""
        events = self.person.events("q1")
        kinds = {event["type"] for event in events}
        assert kinds >= {"asked", "shown", "answered", "delivered", "closed"}
        assert len({event["seq"] for event in events}) == len(events)
        assert len({event.get("by") for event in events if event["type"] == "answered"}) == 1


async def _nothing() -> None:
    return


LIVE, ACKNOWLEDGED, ENDED_WELL = (
    partial(ChatStory, mode=mode) for mode in ("live", "acknowledge", "exit-0")
)


def that_matter(make: object, passed: list[Step]) -> list[Step]:
    """Return the steps to die at: without a waiting agent, those from the answer on.

    Whether anybody will be there to take it makes no difference before the answer.
    """
    ended = next(n for n, step in enumerate(passed) if "outcomes/q1.json" in step.what)
    return passed if make is LIVE else passed[ended:]
