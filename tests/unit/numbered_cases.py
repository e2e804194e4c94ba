"""Cards to reply to, and what came of a reply in a few letters."""

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

from pynchy.channels.numbered import (
    Answers,
    ChatMessage,
    Decline,
    Hint,
    NotForUs,
    NumberedCard,
    Reading,
    TooLate,
    read,
)
from pynchy.model import Answer, GroupName, Option, Question, RequestId, ShortId

ASKED = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
LATER = ASKED + timedelta(minutes=5)


def question(text: str, *labels: str, multi: bool = False) -> Question:
    return Question(text, options=tuple(map(Option, labels)), multi_select=multi)


DEPLOY = question("Deploy?", "Yes", "No", "Later")
COLOURS = question("Which colours?", "Red", "Blue", "Green", multi=True)
REASON = question("Why?")


def card(short_id: str, *questions: Question, **more: Any) -> NumberedCard:
    return NumberedCard(
        ShortId(short_id),
        RequestId(f"request-{short_id}"),
        GroupName(more.pop("group", "g")),
        questions,
        more.pop("asked_at", ASKED),
        frozenset({f"card-{short_id}"}),
        **more,
    )


def hear(
    text: str,
    *cards: NumberedCard,
    private: bool = True,
    quoted: str | None = None,
    at: datetime = LATER,
) -> str:
    """Return what `read` makes of it, in a few letters."""
    return spell(read(ChatMessage(text, at, private, quoted), cards))


def spell(reading: Reading) -> str:
    match reading:
        case Answers(to, parts):
            if len(to.questions) == 1:
                return f"{to.short_id}: {_spell(parts[0].answer)}"
            said = [f"{part.number}={_spell(part.answer)}" for part in parts]
            return f"{to.short_id}: {' '.join(said)}"
        case Decline(to, reason):
            return f"declines {to.short_id}" + (f": {reason}" if reason else "")
        case Hint(text):
            return f"hint: {text}"
        case TooLate(to):
            return f"late: {to.short_id}"
        case NotForUs():
            return "-"
        case _:
            assert_never(reading)


def _spell(answer: Answer) -> str:
    chosen = "+".join(answer.selected)
    return chosen + (f"“{answer.text}”" if answer.text is not None else "")


def readable(value: object) -> str | None:
    """Return the id of a case: what is not ASCII by the name of its first letter."""
    if not isinstance(value, str):
        return None
    text = value.replace("“", '"').replace("”", '"')
    strange = [sign for sign in text if not sign.isascii()]
    named = f" ({unicodedata.name(strange[0], 'unnamed').lower()})" if strange else ""
    plain = text.encode("ascii", "ignore").decode()
    return f"{plain[:40]!r}"[1:-1] + named
