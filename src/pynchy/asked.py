"""What is asked, what it accepts, and what is said to it.

Renderers and matching go by a question's options and `accepts_text`, never by its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What sort of thing waits for a person; a word for listings, and nothing else."""

    APPROVAL = "approval"
    PERMISSION = "permission"
    QUESTION = "question"


class AcceptsText(StrEnum):
    """What a person's own words are to a question that has options.

    The answer, like an option; a note that goes along with a choice; or nothing that counts.
    """

    ANSWER = "answer"
    NOTE = "note"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Option:
    """One of the choices that the agent offers.

    `value` names it whatever its label says; it is the label where nothing else is given.
    """

    label: str
    description: str = ""
    preview: str = ""
    value: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", self.value or self.label)


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that the agent asks."""

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    default: tuple[str, ...] = ()
    accepts_text: AcceptsText = AcceptsText.ANSWER

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the options, in order."""
        return tuple(option.label for option in self.options)

    @property
    def takes_words(self) -> bool:
        """True if a person may write something, be it only beside a choice."""
        return not self.options or self.accepts_text is not AcceptsText.NO

    @property
    def takes_words_alone(self) -> bool:
        """True if a person's own words are an answer by themselves."""
        return not self.options or self.accepts_text is AcceptsText.ANSWER


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person chose and wrote for one question."""

    selected: tuple[str, ...] = ()
    text: str | None = None

    def describe(self) -> str:
        """The answer in one line."""
        parts = [", ".join(self.selected)] if self.selected else []
        return " — ".join([*parts, self.text] if self.text else parts)
