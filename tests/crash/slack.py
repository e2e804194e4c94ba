"""Questions in Slack, asked and answered in every way that there is."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.support import Json, MailboxAgent, Runs
from tests.crash.telling import Step, Story
from tests.slack.support import ANA, BEN, EVE, group_table, people, settings
from tests.standins.slack import Message, NothingThere, SlackStandIn, look

DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}
LONG = {"question": "why not " * 1_900, "options": ["Yes", "No"]}

Act = Callable[["SlackStory", Message, str], None]


def press(story: "SlackStory", card: Message, word: str) -> None:
    story.ana.press(card, word)


def reply(story: "SlackStory", card: Message, word: str) -> None:
    story.ana.reply(card, word)


def submit(story: "SlackStory", card: Message, word: str) -> None:
    story.ana.choose(card, word, question=0)
    story.ana.type(card, f"{word} indeed", number=1)
    story.ana.press(card, "Submit")


@dataclass(frozen=True)
class Kind:
    """A way to be asked and to answer."""

    name: str
    act: Act = press
    questions: tuple[Json, ...] = (DEPLOY,)
    place: str = "channel"
    is_late: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def least(self) -> int:
        """How many steps it has at least: some ten less than were counted."""
        return 65 if self.is_late else 36


CLICK = Kind("click")
OTHERS = (
    Kind("reply", reply),
    Kind("batch", submit, (DEPLOY, {"question": "Why?"})),
    Kind("several messages", questions=(LONG,)),
    Kind("direct message", place="direct"),
    Kind("thread", reply, place="thread"),
    Kind("session thread", settings={"thread_per_session": True}),
    Kind("late", is_late=True),
)


class SlackStory(Story):
    """One question in one Slack; Ana says yes, and no as soon as that has counted."""

    channel = "slack"

    def __init__(self, base: Path, kind: Kind) -> None:
        super().__init__(base)
        self.kind = kind
        self.slack = SlackStandIn().start()
        self.environ = {
            "SLACK_BOT_TOKEN": self.slack.bot_token,
            "SLACK_APP_TOKEN": self.slack.app_token,
        }
        people(self.slack)
        self.slack.workspace.add_channel("C1", ANA, BEN, EVE)
        self.ana = self.slack.person(ANA)
        self.ana.say("C1", "the agents ask below")
        [top] = self.slack.messages("C1")
        direct = self.slack.workspace.direct(ANA).id
        chat, self.room = {
            "channel": ("C1", "C1"),
            "direct": (ANA, direct),
            "thread": (f"C1/{top.ts}", "C1"),
        }[kind.place]
        self.runs = Runs(base)
        tables = [group_table("team", chat), "[http]\nport = 0\n"]
        if kind.is_late:
            tables += ['receipt_grace = "100ms"', self.runs.launcher("acknowledge")]
        self.configure(settings(self.slack, *tables, **kind.settings))
        self._answered: set[tuple[str, int]] = set()

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self.slack.stop)

    async def tell(self, *steps: Step) -> list[Step]:
        agent = MailboxAgent(self.person.group("team"))
        agent.ask(request_id="q1", questions=list(self.kind.questions))
        waiter = asyncio.create_task(agent.responded("q1"))
        waiter.add_done_callback(lambda done: done.cancelled() or agent.take("q1"))
        if self.kind.is_late:
            waiter.cancel()
            agent.die()
        passed: list[Step] = []
        try:
            for step in [*steps, None]:
                await self.start(step)
                closed = await self.finished(self._answer)
                if step is not None:
                    await self.dies()
                passed = passed or self.passed()
        finally:
            waiter.cancel()
        assert closed is not None
        self.check(agent, closed)
        return passed

    def cards(self) -> list[Message]:
        return [m for m in self.slack.workspace.all_in(self.room) if m.by_bot]

    async def _answer(self) -> None:
        for card in self.cards():
            # A click that reaches no socket is lost, as in life: the person presses again.
            key = (card.ts, self.slack.sockets.opened)
            if card.is_open and self.slack.sockets.count and key not in self._answered:
                self._answered.add(key)
                kept = (self.person.group("team") / "outcomes" / "q1.json").exists()
                with contextlib.suppress(NothingThere):
                    self.kind.act(self, card, "No" if kept else "Yes")

    def check(self, agent: MailboxAgent, closed: Json) -> None:
        self.check_answer(agent)
        assert closed["delivered"] == ("late" if self.kind.is_late else "live")
        assert {"answered", "delivered"} <= set(self.person.kinds("q1"))
        assert self.person.outcome("team", "q1")["by"] == "Ana"
        # It was shown once, or what was shown again says so; and no card can still be clicked.
        parts: set[int] = set()
        for card in self.cards():
            assert card.metadata is not None
            part = card.metadata["event_payload"]["part"]
            first = json.dumps(card.versions[0] if card.versions else card.to_json())
            assert part not in parts or "repeat" in first.lower()
            parts.add(part)
            assert not card.is_open, look(card).text
            assert "Answered" in look(card).text
            assert "Ana" in look(card).text
        assert [call.error for call in self.slack.refused()] == []

    def check_answer(self, agent: MailboxAgent) -> None:
        if self.kind.is_late:
            [first, *more] = self.runs.started()
            assert all(run["initial"] == first["initial"] for run in more)
            answers = first["initial"]["answers"]
        else:
            response = agent.response("q1")
            assert response is not None
            assert response["answered_by"] == "Ana"
            answers = response["answers"]
        assert answers[0]["selected"] == ["Yes"]
        assert len(self.kind.questions) == 1 or answers[1]["text"] == "Yes indeed"


def told_by(kind: Kind) -> Callable[[Path], SlackStory]:
    return partial(SlackStory, kind=kind)


def from_the_posting(passed: list[Step]) -> list[Step]:
    """Return the steps after the card has begun to be posted.

    How often Ana still clicks when the answer has counted depends on how soon she sees that.
    """
    posting = next(n for n, step in enumerate(passed) if "chat_postMessage" in step.what)
    answered = next(n for n, step in enumerate(passed) if "outcomes/q1.json" in step.what)
    clicks = sum(step.what == "before async_dispatch" for step in passed[:answered])
    return [s for s in passed[posting:] if "async_dispatch" not in s.what or s.number <= clicks]
