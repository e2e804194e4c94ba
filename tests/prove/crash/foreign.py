"""Foreign agents in the sweep: an OpenCode server asks, and the host that asks for it is hit.

The server is a stand-in that outlives the host. Whatever happens: what it asks is one question, it
is told one answer, which is the one that is on the disk, and what it asks no more is cleared.
"""

import json
from typing import ClassVar

from tests.prove.crash.checks import require
from tests.prove.crash.may_i import ALLOW, DENY
from tests.prove.crash.scenarios import Scenario
from tests.prove.crash.stage import GROUP, Stage, until
from tests.standins.opencode import OpenCodeStandIn


class ForeignAsk(Scenario):
    """A session of OpenCode asks something: it is recorded and shown."""

    by_mailbox = False
    # What ana chooses, what ben chooses, and what OpenCode is told then.
    choice = "Red"
    other: ClassVar[str] = "Green"
    told: ClassVar = {"Red": {"answers": [["Red"]]}, "Green": {"answers": [["Green"]]}}

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.server = OpenCodeStandIn()
        self.asked_id = ""

    @classmethod
    def ends_by_itself(cls) -> bool:
        return True  # somebody else answers in `finish`, where it is still asked

    async def set_up(self) -> None:
        await self.server.start()
        table = {"group": GROUP, "urls": [self.server.url], "discover": False, "poll": "100ms"}
        self.stage.settings["sources"] = {"opencode": table}
        await self.start_and_join()
        await until(lambda: self.server.has_listener, "the server to be followed")

    async def act(self) -> None:
        await self.ask_there()

    async def ask_there(self) -> None:
        self.asked_id = self.ask_something(self.server.session())
        await self.server.publish("question.asked", **self.server.questions[self.asked_id])

    def ask_something(self, session: str) -> str:
        return self.server.ask(session, "Which colour?", "Red", "Green")

    def goal(self) -> bool:
        return self.is_open()

    def rests(self) -> bool:
        return self.is_open() or self.stage.is_closed()

    def is_open(self) -> bool:
        asked = [*self.stage.mailbox.glob("pending_questions/[!.]*.json")]
        if asked:
            self.stage.request_id = asked[0].stem
        return self.stage.state() == "open"

    def is_asked(self) -> bool:
        """True if OpenCode still waits."""
        return bool(self.server.questions or self.server.permissions)

    async def finish(self) -> None:
        """Let somebody else answer what is still open."""
        if self.is_asked() and not self.stage.is_over():
            await until(self.rests, "the question to be asked again")
            await self.stage.click("ben", self.other)
        await until(self.stage.is_closed, "the question to be closed")

    async def tear_down(self) -> None:
        await self.server.stop()
        await super().tear_down()

    def look_at_the_dead(self) -> None:
        """OpenCode has been told nothing that is not on the disk."""
        if self.server.replies:
            require(self.stage.is_over(), "what OpenCode is told is on the disk")

    async def look_at_the_end(self, *, faultless: bool) -> None:
        stage = self.stage
        eve = await stage.click("eve", self.choice)
        require(eve.status == 409, "whoever comes last is told that it is over", eve)
        closed = [*stage.mailbox.glob("history/[!.]*.json")]
        require(len(closed) == 1, "what is asked once is one question", closed)
        history = json.loads(closed[0].read_bytes())
        self._check_ending(history, faultless=faultless)
        self._check_cards(history)
        events = [e["type"] for e in stage.events() if e.get("id") == stage.request_id]
        expected = {"asked", history["ending"]["outcome"], "closed"}
        is_hidden = not expected <= set(events) and "events.jsonl" not in stage.hit()
        require(not is_hidden, "every step is in the event log", expected, events)

    def _check_ending(self, history: dict[str, object], *, faultless: bool) -> None:
        ending, delivered = history["ending"], history["delivered"]
        assert isinstance(ending, dict)
        thanked = [click.by for click in self.stage.clicks if click.status == 200]
        require(thanked in ([], [ending["by"]]), "the acknowledged answer wins", thanked, ending)
        said = [body for _, body in self.server.replies]
        if ending["outcome"] != "answered":
            require(ending["outcome"] == "cleared", "what is asked no more is cleared", ending)
            require(not said, "nobody answers in a person's place", said)
            return
        [answer] = ending["answers"]
        right = said == [self.told[answer["selected"][0]]]
        require(right, "OpenCode is told the answer, once", said, answer)
        # Where nobody could note that it was taken, it is recorded as one that nobody waited for.
        known = {"live"} if faultless else {"live", "dismissed"}
        require(delivered in known, "the record tells that it has arrived", delivered)

    def _check_cards(self, history: dict[str, object]) -> None:
        cards = [c for c in self.stage.cards() if c["request_id"] == self.stage.request_id]
        shown = [card for card in cards if card["what"] == "shown"]
        require(all(c["repeated"] for c in shown[1:]), "a repeated card says so", shown)
        require(len({c["short_id"] for c in cards}) <= 1, "a repeat has the same id", cards)
        ending = history["ending"]
        assert isinstance(ending, dict)
        failed = any(event["type"] == "settle_failed" for event in self.stage.events())
        for last in [] if failed else cards[-1:]:
            right = last["what"] == "settled" and last["outcome"] == ending["outcome"]
            require(right, "no card stays wrong", cards)


class ForeignAnswer(ForeignAsk):
    """Somebody answers it elsewhere, and OpenCode is told."""

    async def set_up(self) -> None:
        await super().set_up()
        await self.ask_there()
        await until(self.is_open, "the question to be shown")

    async def act(self) -> None:
        await self.stage.click("ana", self.choice)

    def goal(self) -> bool:
        return self.stage.is_closed()


class ForeignPermission(ForeignAnswer):
    """A session may not do something by itself, and somebody allows it."""

    choice = ALLOW
    other = DENY
    told: ClassVar = {ALLOW: {"reply": "once"}, DENY: {"reply": "reject"}}

    async def ask_there(self) -> None:
        self.asked_id = self.server.ask_permission(self.server.session(), "git status")
        await self.server.publish("permission.asked", **self.server.permissions[self.asked_id])


class ForeignThere(ForeignAnswer):
    """It is answered in OpenCode: the card is cleared."""

    async def act(self) -> None:
        asked = self.server.questions.pop(self.asked_id)
        session = asked["sessionID"]
        await self.server.publish("question.replied", sessionID=session, requestID=self.asked_id)


class ForeignAgain(ForeignAnswer):
    """A host starts where another has died: what is still asked is found again, and answered."""

    from_start = True

    async def set_up(self) -> None:
        await super().set_up()
        await self.stage.kill()
        await self.stage.fork(gated=True)

    async def act(self) -> None:
        self.stage.open_gate()
        if await self.stage.is_ready():
            await self.stage.click("ana", self.choice)


class ForeignGone(ForeignAgain):
    """The same, and OpenCode has forgotten it meanwhile."""

    async def act(self) -> None:
        self.server.questions.clear()
        self.server.busy.clear()
        self.stage.open_gate()
        await self.stage.is_ready()


FOREIGN: dict[str, type[Scenario]] = {
    "foreign-ask": ForeignAsk,
    "foreign-answer": ForeignAnswer,
    "foreign-permission": ForeignPermission,
    "foreign-there": ForeignThere,
    "foreign-again": ForeignAgain,
    "foreign-gone": ForeignGone,
}
