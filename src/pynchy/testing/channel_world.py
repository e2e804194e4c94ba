"""What the suite asks of a channel's surroundings: the service behind it, and its people.

The suite plays the host: it has a reply handler that judges as the real one does and remembers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from pynchy.bridge import matching
from pynchy.channels.base import Channel, ReplyHandler
from pynchy.errors import AlreadyOver, NotAllowed, ReplyRejected, UnknownQuestion
from pynchy.model import Ending, OutcomeKind, PendingQuestion, Reply, ShownCard, State
from pynchy.testing.fakes import NOON


class Ability(StrEnum):
    """What not every channel can do, or not every stand-in can play."""

    CHOOSE_SEVERAL = "several options can be chosen"
    OWN_WORDS = "people can write words of their own"
    PARTS = "the questions of a card can be answered one after another"
    DECLINE = "people can decline"
    TELL_ALONE = "one person can be told something that others do not see"
    TELL_STRANGERS = "people who may not answer are told so"
    TELL_APART = "several people use it, and are told apart"
    KEEP_CARDS = "a card stays when its question is over"
    CHANGE_CARDS = "a card that is shown can be changed"
    REMOVE_CARDS = "a card that is shown can vanish"
    REPEAT_EVENTS = "the service may tell of the same thing twice"
    LOSE_REPLIES = "the service may take a card, and its reply be lost"
    GO_DOWN = "the service may be down"


class NothingToDo(LookupError):
    """The card offers nothing of that kind, as one that is settled."""


@dataclass(frozen=True, slots=True)
class SeenCard:
    """A card as a person sees it.

    `mentions` is whatever the service made of its text by itself: people who are called, links.
    `handle` is for the world alone, to find the card again.
    """

    text: str
    takes_answers: bool
    handle: object
    mentions: tuple[str, ...]


class ChannelWorld(ABC):
    """A channel with the service and the people behind it; one for each promise.

    `first` and `second` may answer, `stranger` may not; they are user ids as `allowed_users` has
    them. `cannot` says what the channel cannot do, and why that is right. `channel` is made, and
    not opened.
    """

    channel: Channel
    chat: str
    first: str
    second: str
    stranger: str
    cannot: Mapping[Ability, str] = MappingProxyType({})
    # How long the suite waits for what does not happen.
    patience_seconds = 20.0

    async def __aenter__(self) -> Self:
        """Let the service run, and make the channel."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the channel and end the service."""
        await self.channel.close()

    @abstractmethod
    async def restart(self) -> None:
        """Close the channel, and make a new one that finds what the old one left on the disk."""

    @abstractmethod
    def cards(self) -> list[SeenCard]:
        """Return the cards in the chat as they are seen now, the oldest first."""

    def sees(self) -> str:
        """Return everything that all people see in the chat."""
        return "\n".join(card.text for card in self.cards())

    @abstractmethod
    def told(self, user: str) -> list[str]:
        """Return what this person was told, alone or in reply to something that they said."""

    @abstractmethod
    async def choose(self, user: str, card: SeenCard, *labels: str) -> None:
        """Choose these options of the card's only question, and send them. Raise NothingToDo."""

    # Not abstract: what `cannot` names is never called, and need not be there.

    async def write(self, user: str, card: SeenCard, text: str) -> None:
        """Answer the card's only question in one's own words."""
        raise NotImplementedError

    async def choose_part(self, user: str, card: SeenCard, number: int, label: str) -> None:
        """Answer the question of this number, from 1, and leave the others for later."""
        raise NotImplementedError

    async def decline(self, user: str, card: SeenCard) -> None:
        """Say that one will not answer."""
        raise NotImplementedError

    async def repeat(self) -> None:
        """Let the service tell of what a person did last a second time."""
        raise NotImplementedError

    async def remove(self, card: SeenCard) -> None:
        """Let the card vanish, as if a person had removed it."""
        raise NotImplementedError

    async def lose_reply(self) -> None:
        """Let the service take the next card, and its reply be lost."""
        raise NotImplementedError

    async def go_down(self) -> None:
        """Let the service be out of reach."""
        raise NotImplementedError

    async def come_back(self) -> None:
        """Let the service be there again."""
        raise NotImplementedError


class FakeReplyHandler(ReplyHandler):
    """Judges replies as the host does, remembers them, and can be told to refuse the next one."""

    def __init__(self, allowed: Collection[str], chat: str) -> None:
        self._allowed = frozenset(allowed)
        self._chat = chat
        self._refusal: ReplyRejected | None = None
        self._shown: dict[str, ShownCard] = {}
        self.questions: dict[str, PendingQuestion] = {}
        self.accepted: list[Reply] = []
        self.refused: list[Reply] = []
        self.dismissed: list[tuple[Reply, str]] = []

    def put(self, pending: PendingQuestion, shown: ShownCard | None = None) -> None:
        """Know a question, and where it is shown."""
        self.questions[pending.request_id] = pending
        if shown is not None:
            self._shown[pending.request_id] = shown

    def refuse(self, refusal: ReplyRejected) -> None:
        """Refuse the next reply, whatever it is."""
        self._refusal = refusal

    async def answer(self, reply: Reply) -> PendingQuestion:
        """See ReplyHandler."""
        pending = self._judged(reply)
        try:
            given = matching.read_reply(pending, reply)
            ending = matching.complete(pending, given, NOON)
        except ReplyRejected:
            self.refused.append(reply)
            raise
        self.accepted.append(reply)
        if ending is not None:
            return self._end(pending, ending)
        drafts = {draft.question: draft for draft in (*pending.drafts, *given)}
        return self._keep(replace(pending, drafts=tuple(drafts.values())))

    async def decline(self, reply: Reply, reason: str | None = None) -> PendingQuestion:
        """See ReplyHandler."""
        pending = self._judged(reply)
        self.accepted.append(reply)
        ending = Ending(
            OutcomeKind.DECLINED, NOON, by=reply.by, reason=reason, channel=reply.channel
        )
        return self._end(pending, ending)

    async def dismiss(self, reply: Reply, implied_choice: str = "") -> None:
        """See ReplyHandler."""
        self._judged(reply)
        self.dismissed.append((reply, implied_choice))

    def open_cards(self, channel: str) -> list[ShownCard]:
        """See ReplyHandler."""
        del channel
        return [
            replace(shown, answered=self.questions[request_id].answered)
            for request_id, shown in self._shown.items()
            if self.questions[request_id].ending is None
        ]

    def _judged(self, reply: Reply) -> PendingQuestion:
        try:
            return self._judge(reply)
        except ReplyRejected:
            self.refused.append(reply)
            raise

    def _judge(self, reply: Reply) -> PendingQuestion:
        refusal, self._refusal = self._refusal, None
        pending = self.questions.get(reply.target) or self._with_short_id(reply.target)
        if refusal is not None:
            raise refusal
        if pending is None or reply.group not in {None, pending.group}:
            raise UnknownQuestion(f"no question has the id {reply.target}")
        if reply.user_id not in self._allowed or reply.chat != self._chat:
            raise NotAllowed("you are not on the list of people who may answer this")
        if pending.ending is not None:
            raise AlreadyOver(pending.ending)
        return pending

    def _with_short_id(self, short_id: str) -> PendingQuestion | None:
        return next((p for p in self.questions.values() if p.short_id == short_id), None)

    def _end(self, pending: PendingQuestion, ending: Ending) -> PendingQuestion:
        return self._keep(replace(pending, ending=ending, state=State.DELIVERING, drafts=()))

    def _keep(self, pending: PendingQuestion) -> PendingQuestion:
        self.questions[pending.request_id] = pending
        return pending
