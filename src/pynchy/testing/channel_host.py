"""The host's part in the plays that show whether a channel keeps its promises."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from pynchy.bridge.cards import card_of
from pynchy.channels.base import ChannelReplies
from pynchy.model import (
    Answer,
    Ending,
    Option,
    PendingQuestion,
    Question,
    Reply,
    ShortId,
    ShownCard,
    State,
)
from pynchy.testing.channel_world import Ability, ChannelWorld, FakeReplyHandler, SeenCard
from pynchy.testing.fakes import make_pending

T = TypeVar("T")
_PAUSE_SECONDS = 0.01
DEPLOY = Question("Deploy?", options=(Option("Yes"), Option("No")))


class PromiseBroken(AssertionError):
    """The channel does not keep the promise; the text says how."""


def expect(kept: object, otherwise: str) -> None:
    """Raise PromiseBroken unless that is so."""
    if not kept:
        raise PromiseBroken(otherwise)


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """A question that the channel shows: its request, the id it gave, and the card."""

    request_id: str
    message_id: str
    card: SeenCard


class HostRole:
    """The host's part of the play."""

    def __init__(self, world: ChannelWorld) -> None:
        self.world = world
        self.handler = FakeReplyHandler((world.first, world.second), world.chat)
        self._count = 0

    async def open(self) -> None:
        """Open the channel, and wait until it says that all is well."""
        channel = self.world.channel
        await channel.open(ChannelReplies(channel.name, self.handler))
        await self.until(lambda: self.world.channel.problem() is None, "the channel to be well")

    async def restart(self) -> None:
        """Start the channel again, with what the host knows of its cards."""
        await self.world.restart()
        await self.open()

    async def until(self, look: Callable[[], T | None], what: str) -> T:
        """Return the first true thing that is found. Raise PromiseBroken if none comes."""
        deadline = time.monotonic() + self.world.patience_seconds
        while not (found := look()):
            expect(time.monotonic() < deadline, f"waited in vain for {what}")
            await asyncio.sleep(_PAUSE_SECONDS)
        return found

    async def show(self, *questions: Question, repeated: bool = False) -> ShownQuestion:
        """Let the channel show the questions, and wait until a person sees them."""
        pending = self.next_question(*questions)
        return await self.show_again(pending, repeated=repeated)

    def next_question(self, *questions: Question) -> PendingQuestion:
        """Return a question that nobody has been asked yet."""
        self._count += 1
        number = self._count
        short_id = ShortId(f"ab{number}c")
        pending = make_pending(f"request-{number}", short_id=short_id, questions=questions)
        self.handler.put(pending)
        return pending

    async def show_again(self, pending: PendingQuestion, *, repeated: bool) -> ShownQuestion:
        """Let the channel show this very question."""
        message_id = await self.send(pending, repeated=repeated)
        is_id = isinstance(message_id, str) and message_id
        expect(is_id, f"showing a card returned {message_id!r}, which is no id")
        shown = ShownCard(
            self.world.chat, message_id, pending.request_id, pending.questions, card_of(pending)
        )
        self.handler.put(pending, shown)
        copies = await self.until(lambda: self.copies(pending), f"a card with #{pending.short_id}")
        return ShownQuestion(pending.request_id, message_id, copies[-1])

    async def send(self, pending: PendingQuestion, *, repeated: bool = False) -> str:
        """Call the channel with a card."""
        card = replace(card_of(pending), repeated=repeated)
        async with asyncio.timeout(self.world.patience_seconds):
            return await self.world.channel.send_ask_user(
                self.world.chat, pending.request_id, pending.questions, card=card
            )

    def copies(self, pending: PendingQuestion) -> list[SeenCard]:
        """Return the cards that show this question."""
        return [card for card in self.world.cards() if pending.short_id in card.text]

    async def answered(self, asked: ShownQuestion) -> tuple[Answer, ...]:
        """Wait until the question is answered, and return the answers."""

        def look() -> Ending | None:
            return self.handler.questions[asked.request_id].ending

        return (await self.until(look, "the reply to reach the host")).answers

    def replies(self, asked: ShownQuestion) -> list[Reply]:
        """Return the replies to this question that were accepted."""
        short_id = self.handler.questions[asked.request_id].short_id
        return [r for r in self.handler.accepted if r.target in {asked.request_id, short_id}]

    async def settle(
        self, asked: ShownQuestion, ending: Ending | None = None, note: str = ""
    ) -> None:
        """Let the card show how the question ended."""
        pending = self.handler.questions[asked.request_id]
        pending = replace(pending, ending=pending.ending or ending, state=State.DELIVERING)
        self.handler.put(pending)
        async with asyncio.timeout(self.world.patience_seconds):
            await self.world.channel.settle_card(
                self.world.chat,
                asked.message_id,
                pending.request_id,
                pending.questions,
                card=replace(card_of(pending), delivery=note),
            )

    async def show_answered(self) -> ShownQuestion:
        """Return a card whose question the first person has answered with Yes."""
        asked = await self.show(DEPLOY)
        await self.world.choose(self.world.first, asked.card, "Yes")
        await self.answered(asked)
        return asked

    async def sees(self, *words: str) -> None:
        """Wait until the chat says these words."""

        def look() -> bool:
            text = self.world.sees().casefold()
            return all(word.casefold() in text for word in words)

        await self.until(look, f"{words} in the chat")

    async def sees_over(self, asked: ShownQuestion, *words: str) -> None:
        """Wait until the card of a question that is over says so, or is gone where it cannot."""
        if Ability.KEEP_CARDS not in self.world.cannot:
            await self.sees(*words)
            return
        pending = self.handler.questions[asked.request_id]
        await self.until(lambda: not self.copies(pending), f"#{pending.short_id} to be gone")

    async def is_told(self, user: str, words: str = "", count: int = 1) -> None:
        """Wait until the person was told something with these words."""

        def look() -> bool:
            told = [text for text in self.world.told(user) if words.casefold() in text.casefold()]
            return len(told) >= count

        await self.until(look, f"{user} to be told {words!r}")
