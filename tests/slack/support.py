"""A host beside the stand-in Slack, and rooms: a group with its channel, its people, its agent."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import Host, Json
from tests.standins.slack import Message, Person, SlackStandIn, look
from tests.waiting import until

from agent_runner.asking import Asker, Option, Outcome, Question, Request, RequestId, Result

ANA, BEN, EVE = "U0ANA", "U0BEN", "U0EVE"
YES_NO = (Option("Yes"), Option("No"))
DEPLOY = Question("Deploy?", options=YES_NO)


def settings(slack: SlackStandIn, *tables: str, **channel: Any) -> str:
    """Return pynchy.toml with the Slack channel at the stand-in."""
    options = {"api_url": slack.url, "ping_interval": "300ms"} | channel
    head = [line for line in tables if not line.lstrip().startswith("[")]
    rest = [line for line in tables if line.lstrip().startswith("[")]
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    return "\n".join([*head, "[channels.slack]", *lines, *rest, ""])


def group_table(name: str, chat: str, *channels: str) -> str:
    """Return the table of a group where ana and ben may answer."""
    routed = json.dumps(channels or ("slack",))
    return (
        f"[groups.{name}]\nchannels = {routed}\n"
        f'chat = {{ slack = "{chat}" }}\nallowed_users = {{ slack = ["{ANA}", "{BEN}"] }}\n'
    )


def people(slack: SlackStandIn) -> None:
    for user, name in ((ANA, "Ana"), (BEN, "Ben"), (EVE, "Eve")):
        slack.workspace.add_user(user, name)


@contextmanager
def tokens_of(slack: SlackStandIn) -> Iterator[pytest.MonkeyPatch]:
    """Put the tokens where hosts look for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLACK_BOT_TOKEN", slack.bot_token)
        patch.setenv("SLACK_APP_TOKEN", slack.app_token)
        yield patch


@dataclass
class Asked:
    """A question that an agent waits for."""

    request_id: str
    call: "asyncio.Task[Result]"

    async def result(self) -> Result:
        return await self.call

    async def answer(self) -> tuple[tuple[str, ...], str | None]:
        """Return what was selected and written, of a single question."""
        result = await self.call
        assert result.outcome is Outcome.ANSWERED, result
        [answer] = result.answers
        return answer.selected, answer.text


class Workplace:
    """A group of a host, with its agent."""

    def __init__(self, host: Host, group: str) -> None:
        self.host = host
        self.group = group
        self._stack = AsyncExitStack()
        self._asker: Asker | None = None

    async def ask(self, *questions: Question, **fields: Any) -> Asked:
        """Let the group's agent ask, with the real waiting side."""
        asker = await self._agent()
        asked = () if "approval" in fields else questions or (DEPLOY,)
        request = Request(asked, **({"wait_seconds": 60.0} | fields))
        return Asked(str(request.request_id), asyncio.create_task(asker.ask(request)))

    async def withdraw(self, asked: Asked) -> None:
        await (await self._agent()).withdraw(RequestId(asked.request_id))

    def short_id(self, asked: Asked) -> str:
        return str(self.host.question(asked.request_id)["short_id"])

    async def close(self) -> None:
        await self._stack.aclose()

    async def _agent(self) -> Asker:
        if self._asker is None:
            mailbox = self.host.group(self.group)
            for name in ("tasks", "responses", "input"):
                (mailbox / name).mkdir(parents=True, exist_ok=True)
            asker = Asker(mailbox, session_id=f"session-of-{self.group}")
            self._asker = await self._stack.enter_async_context(asker)
        return self._asker


class Room(Workplace):
    """A group that asks in a Slack channel of its own."""

    def __init__(self, slack: SlackStandIn, host: Host, group: str, channel: str) -> None:
        super().__init__(host, group)
        self.slack = slack
        self.channel = channel
        self.ana, self.ben, self.eve = (slack.person(user) for user in (ANA, BEN, EVE))

    async def card(self, count: int = 1) -> Message:
        """Wait for the card and return it: the last of so many messages."""
        found: list[Message] = await until(
            lambda: len(self.cards()) >= count and self.cards(), f"{count} cards"
        )
        return found[count - 1]

    def cards(self) -> list[Message]:
        return [m for m in self.slack.messages(self.channel) if m.by_bot]

    async def asked(self, question: Question, **fields: Any) -> tuple[Asked, Message]:
        """Ask one question, wait until the host knows that it is shown, and return its card."""
        asked = await self.ask(question, **fields)
        await self.host.state(asked.request_id, "open")
        said = self.slack.workspace.all_in(self.channel)
        return asked, next(m for m in said if m.by_bot and question.question in look(m).text)

    async def restart(self) -> None:
        """Kill the host and start it again, and wait until it is connected."""
        await self.kill()
        await self.start()

    async def start(self) -> None:
        """Start the next host, and wait until it is connected."""
        await self.host.start()
        await until(lambda: self.slack.sockets.count, "the new host's socket")

    async def kill(self) -> None:
        """Kill the host, and wait until Slack knows: what it sends to a dead socket is lost."""
        self.host.kill()
        await until(lambda: not self.slack.sockets.count, "the end of the host's socket")

    async def shown(self, asked: Asked) -> Message:
        """Wait until the host knows that the card is shown, and return its first message."""
        await self.host.state(asked.request_id, "open")
        return await self.card()

    async def shown_here(self, asked: Asked) -> None:
        """Wait until the host knows that Slack shows the question, whoever else does."""

        def is_shown() -> bool:
            return self.host.card_states(asked.request_id)["slack"] == "shown"

        await until(is_shown, "the card in Slack")

    async def settled(self, card: Message, *words: str) -> str:
        """Wait until the card has no controls and says these words; return what it says."""

        def look_at() -> str | None:
            text = look(card).text
            fits = all(word.lower() in text.lower() for word in words)
            return text if fits and not card.is_open else None

        found: str = await until(look_at, f"a card that says {words}, not {look(card).text!r}")
        return found

    async def told(self, person: Person, *words: str, count: int = 1) -> str:
        """Wait until the person alone was told something with these words, in this channel."""

        def look_at() -> str | None:
            texts = [look(e).text for e in person.told if e.channel == self.channel]
            fits = [t for t in texts if all(word.lower() in t.lower() for word in words)]
            return fits[-1] if len(fits) >= count else None

        found: str = await until(look_at, f"{person.user.name} to be told {words}")
        return found


class Lobby:
    """One stand-in and one host, with many rooms to hand out."""

    def __init__(self, folder: Path, rooms: int, **channel: Any) -> None:
        self.slack = SlackStandIn().start()
        people(self.slack)
        self.numbers = itertools.count()
        tables = []
        for number in range(rooms):
            self.slack.workspace.add_channel(f"C{number}", ANA, BEN, EVE)
            tables.append(group_table(f"team{number}", f"C{number}"))
        self.slack.workspace.add_channel("CPAIR", ANA, BEN, EVE)
        tables.append(group_table("pair", "CPAIR", "slack", "local"))
        self.host = Host(folder / "data", settings(self.slack, *tables, **channel))

    async def start(self) -> "Lobby":
        with tokens_of(self.slack):
            await self.host.start()
        await until(lambda: self.slack.sockets.count, "the host's socket")
        return self

    def room(self) -> Room:
        number = next(self.numbers)
        return Room(self.slack, self.host, f"team{number}", f"C{number}")

    async def mend(self) -> None:
        """Undo whatever a test has done to Slack."""
        self.slack.faults.clear()
        self.slack.limit_rate(None)
        self.slack.come_back()
        await until(lambda: self.slack.sockets.count, "the host's socket")

    def close(self) -> None:
        self.host.kill()
        self.slack.stop()


Look = Callable[[], Any]
__all__ = ["Json", "Lobby", "Room"]
