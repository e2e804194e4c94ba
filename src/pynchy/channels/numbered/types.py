"""What goes into reading a numbered reply, and the closed list of what can come out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self, TypeAlias

from pynchy.channels.numbered.choosing import LabelIndex
from pynchy.model import Answer, GroupName, Question, Reply, RequestId, ShortId, ShownCard


@dataclass(frozen=True, slots=True)
class NumberedCard:
    """A card as it stands in the chat. Questions are counted from 1, as people count.

    There is one for each request, however often it was shown: `message_ids` are all messages that
    stand for it, repeats and what was said about it since. `asked_at` is by the clock that stamps
    what people say, so the service's own time of the card where it tells that. A card that is
    `over` stays in the list for a while, with its questions or without, so that those who come
    second can be told; `ended_elsewhere_at` is when it ended without an answer from this chat.
    """

    short_id: ShortId
    request_id: RequestId
    group: GroupName
    questions: tuple[Question, ...]
    asked_at: datetime
    message_ids: frozenset[str] = frozenset()
    answered: frozenset[int] = frozenset()
    over: bool = False
    ended_elsewhere_at: datetime | None = None
    choices: tuple[LabelIndex, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", tuple(map(LabelIndex.of, self.questions)))

    @classmethod
    def of(cls, shown: ShownCard, asked_at: datetime | None = None) -> Self:
        """Return what the reply handler knows of an open card."""
        card = shown.card
        return cls(
            card.short_id,
            shown.request_id,
            card.group,
            shown.questions,
            asked_at or card.timestamp,
            frozenset({shown.message_id}),
            shown.answered,
        )

    @property
    def needs_word(self) -> bool:
        """True if a choice is typed as its word and the id, see Question."""
        return any(question.needs_word for question in self.questions)

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the questions that nobody has answered yet."""
        numbers = range(1, len(self.questions) + 1)
        return tuple(number for number in numbers if number not in self.answered)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a person: its text (of a picture the caption), and what surrounds it."""

    text: str
    at: datetime
    private: bool
    quoted: str | None = None


@dataclass(frozen=True, slots=True)
class Reacted:
    """A reaction to a message; one that was taken back has no emoji."""

    emoji: str
    message_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The answer to one question of a card, by the question's number from 1."""

    number: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Answers:
    """The message answers these questions of this card. What was chosen is a label of it."""

    card: NumberedCard
    parts: tuple[PartAnswer, ...]

    def replies(self, sender: Reply) -> tuple[Reply, ...]:
        """Return the replies to pass on, one after another; stop at the first refusal.

        `sender` says who speaks, in which channel and chat; its target is filled in here.
        """
        sender = aim(self.card, sender)
        answers = tuple(part.answer for part in self.parts)
        if len(self.parts) == len(self.card.questions):
            return (replace(sender, answers=answers),)
        return tuple(
            replace(sender, answers=(part.answer,), question=part.number) for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Decline:
    """The person will not answer the card."""

    card: NumberedCard
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """Nothing was answered: say this, where there is a card as a reply to it."""

    text: str
    card: NumberedCard | None = None


@dataclass(frozen=True, slots=True)
class TooLate:
    """The message is for a card that is over: tell how it ended."""

    card: NumberedCard


@dataclass(frozen=True, slots=True)
class NotForUs:
    """The message is no answer: leave it alone and say nothing."""


Reading: TypeAlias = Answers | Decline | Hint | TooLate | NotForUs


def aim(card: NumberedCard, sender: Reply) -> Reply:
    """Return the reply aimed at the card's request; for a decline it needs nothing more."""
    return replace(sender, target=card.request_id, group=card.group)
