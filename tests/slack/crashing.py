"""Questions in Slack with a host that is killed (-9) at a chosen step, and what must hold then.

A run that fails names its point: `die_at(N)` repeats it.
"""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.support import Json, MailboxAgent, Person, Runs
from tests.slack.support import ANA, BEN, EVE, group_table, people, settings
from tests.waiting import until

from pynchy.testing_slack import Message, NothingThere, SlackStandIn, look

ROOT = Path(__file__).parents[2]
AT_ONCE = 4
DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}
LONG = {"question": "why not " * 1_900, "options": ["Yes", "No"]}

Act = Callable[["Story", Message, str], None]


def press(story: "Story", card: Message, word: str) -> None:
    story.ana.press(card, word)


def reply(story: "Story", card: Message, word: str) -> None:
    story.ana.reply(card, word)


def submit(story: "Story", card: Message, word: str) -> None:
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


class Zygote:
    """The process that forks hosts."""

    def __init__(self, module: str = "tests.slack.dying_host") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fork(self, order: Json) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class Story:
    """One question on one data folder in one Slack, through as many hosts as it takes."""

    def __init__(self, base: Path, zygote: Zygote, kind: Kind) -> None:
        base.mkdir(parents=True)
        self.base = base
        self.kind = kind
        self.slack = SlackStandIn().start()
        people(self.slack)
        self.slack.workspace.add_channel("C1", ANA, BEN, EVE)
        self.ana = self.slack.person(ANA)
        self.ana.say("C1", "the agents ask below")
        [top] = self.slack.messages("C1")
        direct = self.slack.workspace.direct(ANA).id
        chat, self.channel = {
            "channel": ("C1", "C1"),
            "direct": (ANA, direct),
            "thread": (f"C1/{top.ts}", "C1"),
        }[kind.place]
        self.runs = Runs(base)
        tables = [group_table("team", chat), "[http]\nport = 0\n"]
        if kind.is_late:
            tables += ['receipt_grace = "100ms"', self.runs.launcher("acknowledge")]
        (base / "pynchy.toml").write_text(settings(self.slack, *tables, **kind.settings))
        self.person = Person(base / "data")
        self.pid = 0
        self.died = False
        self._zygote = zygote

    async def start(self, point: int | None) -> None:
        tokens = {"SLACK_BOT_TOKEN": self.slack.bot_token, "SLACK_APP_TOKEN": self.slack.app_token}
        order = {"base": str(self.base), "point": point, "environ": tokens}
        self.pid = self._zygote.fork(order)
        await until(lambda: self.is_dead() or self._is_ready(), "the host to be ready")

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

    def cards(self) -> list[Message]:
        return [m for m in self.slack.workspace.all_in(self.channel) if m.by_bot]

    async def live(self) -> Json | None:
        """Answer as soon as there is a card, until the question is closed or the host is dead."""
        answered: set[tuple[str, int]] = set()
        while not self.is_dead():
            for card in self.cards():
                # A click that reaches no socket is lost, as in life: the person presses again.
                key = (card.ts, self.slack.sockets.opened)
                if card.is_open and self.slack.sockets.count and key not in answered:
                    answered.add(key)
                    self.answer(card)
            with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                asked = self.person.http("GET", "/api/questions/q1")
                if asked.status == 200 and asked.body["state"] == "closed":
                    closed: Json = asked.body
                    return closed
            await asyncio.sleep(0.01)
        return None

    def answer(self, card: Message) -> None:
        """Say yes; once that has counted, say no, which must not count."""
        kept = (self.person.group("team") / "outcomes" / "q1.json").exists()
        with contextlib.suppress(NothingThere):
            self.kind.act(self, card, "No" if kept else "Yes")

    def points(self) -> list[str]:
        return (self.base / "points").read_text().splitlines()

    def _is_ready(self) -> bool:
        try:
            announced = json.loads((self.base / "data" / "host.json").read_bytes())
        except FileNotFoundError:
            return False
        self.person.url = announced["url"]
        return bool(announced["pid"] == self.pid)


async def live_through(story: Story, point: int | None) -> list[str]:
    """Tell one story with a host that dies at the point. Return the points that it passed."""
    agent = MailboxAgent(story.person.group("team"))
    agent.ask(request_id="q1", questions=list(story.kind.questions))
    waiter = asyncio.create_task(agent.responded("q1"))
    waiter.add_done_callback(lambda done: done.cancelled() or agent.take("q1"))
    if story.kind.is_late:
        waiter.cancel()
        agent.die()
    try:
        await story.start(point)
        closed = await story.live()
        passed = story.points()
        if closed is None:
            story.died = True
            await story.start(None)
            closed = await story.live()
    finally:
        waiter.cancel()
    assert closed is not None
    check(story, agent, closed)
    return passed


def check(story: Story, agent: MailboxAgent, closed: Json) -> None:
    check_answer(story, agent)
    assert closed["delivered"] == ("late" if story.kind.is_late else "live")
    assert story.person.kinds("q1").count("delivered") >= 1
    assert story.person.kinds("q1").count("answered") >= 1
    assert story.person.outcome("team", "q1")["by"] == "Ana"
    # It was shown once, or what was shown again says so; and no card is left that can be clicked.
    parts: set[int] = set()
    for card in story.cards():
        assert card.metadata is not None
        part = card.metadata["event_payload"]["part"]
        first = json.dumps(card.versions[0] if card.versions else card.to_json())
        assert part not in parts or "repeat" in first.lower()
        parts.add(part)
        assert not card.is_open, look(card).text
        assert "Answered" in look(card).text
        assert "Ana" in look(card).text
    assert [call.error for call in story.slack.refused()] == []


def check_answer(story: Story, agent: MailboxAgent) -> None:
    if story.kind.is_late:
        [first, *more] = story.runs.started()
        assert all(run["initial"] == first["initial"] for run in more)
        answers = first["initial"]["answers"]
    else:
        response = agent.response("q1")
        assert response is not None
        assert response["answered_by"] == "Ana"
        answers = response["answers"]
    assert answers[0]["selected"] == ["Yes"]
    assert len(story.kind.questions) == 1 or answers[1]["text"] == "Yes indeed"


class Teller:
    """Tells stories side by side, and says which points the broken ones had."""

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        self._zygote = zygote
        self._folder = folder
        self._places = asyncio.Semaphore(AT_ONCE)
        self.deaths = 0

    async def die_at(self, point: int | None, kind: Kind = CLICK) -> list[str]:
        async with self._places:
            base = self._folder / kind.name.replace(" ", "-") / f"at-{point}"
            story = Story(base, self._zygote, kind)
            try:
                return await live_through(story, point)
            except Exception as exc:
                log = story.base / "host.log"
                told = log.read_text()[-1_500:] if log.exists() else ""
                exc.add_note(f"{kind.name}: die_at({point}) at: {story.points()[-1]}\n{told}")
                raise
            finally:
                self.deaths += story.died
                await story.kill()
                await asyncio.to_thread(story.slack.stop)

    async def sweep(self, points: list[tuple[int, Kind]]) -> None:
        """Die at each of the points. Raise ExceptionGroup with every story that broke."""
        stories = [self.die_at(point, kind) for point, kind in points]
        told = await asyncio.gather(*stories, return_exceptions=True)
        broken = [error for error in told if isinstance(error, Exception)]
        if broken:
            raise ExceptionGroup(f"{len(broken)} of {len(points)} stories broke", broken)


def from_the_posting(passed: list[str]) -> range:
    """Return the numbers of the points after the card has begun to be posted."""
    shown = next(n for n, point in enumerate(passed) if "chat_postMessage" in point)
    return range(shown + 1, len(passed) + 1)
